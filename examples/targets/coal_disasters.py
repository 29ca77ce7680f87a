"""
Coal-mining disasters: a rate that changes
==========================================

From 1851 to 1962 there were 191 disasters in British coal mines in which ten or more men were
killed. Their number in each year is a count, and the rate behind it is unknown: we model its
logarithm by a Gaussian process. The evidence says whether the counts scatter more than Poisson
counts would, and leave-one-out how well each year is predicted from all others.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import Matern

from cavity import GaussianProcessRegressor
from cavity.datasets import load_coal

coal = load_coal()
X, counts = coal.data, coal.target

# %%
# The length scale is tuned, within bounds of five years and two centuries. ``normalize_y`` puts the
# average rate into the mean of the function.

kernel = 1.0 * Matern(20.0, (5.0, 200.0), nu=2.5)
fits = {
    name: GaussianProcessRegressor(kernel, likelihood=name, normalize_y=True).fit(X, counts)
    for name in ("poisson", "negative_binomial")
}
for name, model in fits.items():
    print(
        f"{name:18s} log evidence {model.log_marginal_likelihood_value_:.1f}, leave-one-out log "
        f"loss {-np.mean(model.loo_log_prob_):.3f}, D² {model.score(X, counts):.2f}"
    )

# %%
# The two agree: the counts are Poisson. The rate falls from three a year to one around 1890. The
# band holds nine of ten counts, or more, since counts are whole.

model = fits["poisson"]
rate, (low, high) = model.predict(X), model.predict_quantiles(X, [0.05, 0.95]).T
figure, ax = plt.subplots(figsize=(8.0, 3.2), layout="constrained")
ax.bar(X[:, 0], counts, width=1.0, color="#d9d9d9", label="disasters in a year")
ax.fill_between(
    X[:, 0], low, high, step="mid", color="#1f5f8b", alpha=0.15, lw=0, label="90 % of counts"
)
ax.plot(X[:, 0], rate, color="#1f5f8b", lw=1.5, label="rate")
ax.set(xlabel="year", ylabel="disasters a year")
ax.legend(frameon=False)
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "coal_disasters.png", dpi=120)
