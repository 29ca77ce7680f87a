"""
Nine wrong numbers among 150
============================

A made-up curve with a little noise, in which nine targets were moved by one to three. Gaussian
noise has to explain them by a larger noise everywhere. A Student t has heavy tails: it takes them
for outliers and lets the others speak. ``cavity report outliers`` tries both and compares them.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity import GaussianProcessRegressor
from cavity.datasets import load_outliers
from cavity.model_selection import loo_losses

data = load_outliers()
X, y = data.data, data.target
models = {
    "Gaussian noise": GaussianProcessRegressor(
        1.0 * RBF(1.0) + WhiteKernel(0.1), normalize_y=True
    ).fit(X, y),
    "Student t": GaussianProcessRegressor(
        1.0 * RBF(1.0), likelihood="student_t", normalize_y=True
    ).fit(X, y),
}

# %%
# Scores of rows that are left out, and how far the curve is from the one that the rows were made
# from. The rows of the largest outlier scores are the nine.

grid = np.linspace(-3.0, 3.0, 300)[:, None]
truth = 0.3 + 0.4 * grid[:, 0] + 0.5 * np.sin(2.7 * grid[:, 0]) + 1.1 / (1.0 + grid[:, 0] ** 2)
for name, model in models.items():
    first = np.argsort(-model.outlier_score_)[:9]
    print(
        f"{name:14s} log loss left out {np.mean(loo_losses(model, y).log_loss):6.3f}, off the "
        f"true curve by {np.sqrt(np.mean((model.predict(grid) - truth) ** 2)):.3f}, outliers among "
        f"the first nine suspects: {np.sum(data.wrong[first])}"
    )

# %%
# Both curves, with the interval of a new observation.

figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    low, middle, high = model.predict_quantiles(grid, [0.05, 0.5, 0.95]).T
    ax.fill_between(grid[:, 0], low, high, color="#1f5f8b", alpha=0.2, lw=0)
    ax.plot(grid[:, 0], middle, color="#1f5f8b", lw=1.5)
    ax.plot(grid[:, 0], truth, color="#6b6b6b", lw=0.8, ls="--")
    ax.scatter(X[~data.wrong, 0], y[~data.wrong], s=8, c="#6b6b6b")
    ax.scatter(X[data.wrong, 0], y[data.wrong], s=22, c="#d1762a")
    ax.set(title=name, xlabel="x")
output = Path(__file__).resolve().parent / "output"
output.mkdir(exist_ok=True)
figure.savefig(output / "outliers.png", dpi=120)
