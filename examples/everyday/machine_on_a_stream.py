"""
A stream: a machine that wears out
==================================

A sensor reports a machine's load and temperature every minute, and now and then it fails. Rows
arrive for ever; the model keeps fifty basis points and a constant time per row. Half-way it is
overhauled and behaves differently: a model that forgets follows, the other stays behind.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from cavity import OnlineGaussianProcessClassifier

ROWS = 6_000 if "--quick" in sys.argv[1:] else 60_000
BATCH = 200
rng = np.random.default_rng(0)


def minutes(start):
    """Return a batch of minutes: inputs, and whether the machine failed."""
    X = rng.normal(size=(BATCH, 2))
    overhauled = start >= ROWS // 2
    danger = X[:, 0] - X[:, 1] if overhauled else X[:, 0] + X[:, 1]
    return X, danger + 0.5 * rng.normal(size=BATCH) > 1.0


# %%
# Every row is predicted before it is learned: the mean log loss of these predictions is a fair
# score without a test set.

models = {
    "remembers all": OnlineGaussianProcessClassifier(4.0 * RBF(2.0), budget=50),
    "forgets": OnlineGaussianProcessClassifier(4.0 * RBF(2.0), budget=50, forget=0.998),
}
losses = {name: [] for name in models}
for start in range(0, ROWS, BATCH):
    X, failed = minutes(start)
    for name, model in models.items():
        if start:
            p = np.clip(model.predict_proba(X)[np.arange(BATCH), failed.astype(int)], 1e-9, 1.0)
            losses[name].append(-np.mean(np.log(p)))
        model.partial_fit(X, failed, classes=[False, True])
for name, model in models.items():
    print(f"{name:14s} {len(model.basis_points_)} basis points, ", end="")
    print(f"last losses {np.mean(losses[name][-5:]):.3f}")

figure, ax = plt.subplots(figsize=(8.0, 3.2), layout="constrained")
for (name, found), colour in zip(losses.items(), ("#d1762a", "#1f5f8b"), strict=True):
    ax.plot(BATCH * np.arange(1, len(found) + 1), found, color=colour, label=name)
ax.axvline(ROWS // 2, color="#6b6b6b", lw=0.8)
ax.set(xlabel="minute", ylabel="log loss before learning", ylim=(0.0, None))
ax.legend(frameon=False)
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "machine_on_a_stream.png", dpi=120)
