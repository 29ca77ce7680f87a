"""
Claims in proportion to the policyholders
=========================================

64 groups of policyholders, by district, size of the car and age of the driver, and how many claims
each group made. A group of three thousand makes more claims than one of ten: the number of
policyholders is the exposure. Its logarithm is the ``offset``, and the model is of the rate.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import KFold

from cavity import GaussianProcessRegressor
from cavity.datasets import load_insurance
from cavity.kernels import Linear

data = load_insurance()
X, claims, holders = data.data, data.target, data.exposure
offset, spread = np.log(holders), X.std(axis=0)
kernel = (
    1.0 * Linear(3.0 * spread, X.mean(axis=0))
    + 0.1 * RBF(3.0 * spread)
    + ConstantKernel(1.0, "fixed")
)


def ours(likelihood="poisson"):
    """Return the model, not yet fitted."""
    return GaussianProcessRegressor(
        kernel, likelihood=likelihood, normalize_y=True, hyperprior="hierarchical"
    )


# %%
# Poisson or negative binomial? The second has one parameter more, whose price is ½ log 64 = 2.1.

for name in ("poisson", "negative_binomial"):
    found = ours(name).fit(X, claims, offset=offset).log_marginal_likelihood_value_
    print(f"{name:18s} log evidence {found:.1f}")

# %%
# Groups that are left out (ten folds), beside a Poisson regression of rates with the exposure as
# weights.

predicted = np.empty((3, len(claims)))
for train, test in KFold(10, shuffle=True, random_state=0).split(X):
    model = ours().fit(X[train], claims[train], offset=offset[train])
    predicted[0, test] = model.predict(X[test], offset=offset[test])
    peer = PoissonRegressor(alpha=1e-4, max_iter=1000)
    peer.fit(X[train], claims[train] / holders[train], sample_weight=holders[train])
    predicted[1, test] = holders[test] * peer.predict(X[test])
    predicted[2, test] = holders[test] * claims[train].sum() / holders[train].sum()
for name, mean in zip(("ours", "PoissonRegressor", "no inputs"), predicted, strict=True):
    print(f"{name:18s} deviance of left-out groups {mean_poisson_deviance(claims, mean):.2f}")

# %%
# Counts against their predictions, on logarithmic axes: the scatter is that of Poisson counts.

figure, ax = plt.subplots(figsize=(5.0, 4.0), layout="constrained")
grid = np.geomspace(1.5, 500.0, 100)
ax.fill_between(
    grid,
    np.maximum(grid - 2.0 * np.sqrt(grid), 0.5),
    grid + 2.0 * np.sqrt(grid),
    color="#1f5f8b",
    alpha=0.15,
    lw=0,
    label="two standard deviations",
)
ax.plot(grid, grid, color="#6b6b6b", lw=0.8)
ax.scatter(predicted[0], np.maximum(claims, 0.5), s=14, color="#1f5f8b")
ax.set(xscale="log", yscale="log", xlabel="predicted claims (left out)", ylabel="claims")
ax.legend(frameon=False)
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "insurance_claims.png", dpi=120)
