"""
One example after the other: sonar and crabs
============================================

The second figure of Csató, Fokoué, Opper, Schottky and Winther, "Efficient approaches to Gaussian
process classification" (NIPS 12, 2000), shows the errors while examples are presented one by one.
The data are sonar and crabs, the kernel is the polynomial (1 + x·x'/d)², and the likelihood is a
step. Here are training and test errors against the number of presentations, for several random
orders. After the first sweep the training examples are presented again, either as if they were new
(the paper's heuristic) or after removing their old contributions (expectation propagation). The
paper finds that one sweep is enough for zero training errors on sonar, and that presenting the data
again helps only a little.

Run as a script it prints the errors after each sweep and writes ``output/sequential.png``;
``--quick`` uses two orders and coarse steps, ``--out`` another folder.
"""

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import DotProduct

from cavity import OnlineGaussianProcessClassifier
from cavity.datasets import load_crabs, load_sonar

_DATA = {"sonar": (load_sonar, 104), "crabs": (load_crabs, 80)}


class Task(NamedTuple):
    """One order of one data set."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def task(name: str, seed: int) -> Task:
    """Split and shuffle; inputs are standardised, and scaled so that x·x is x·x'/d."""
    load, n_train = _DATA[name]
    X, y = load(return_X_y=True)
    rows = np.random.default_rng(seed).permutation(len(y))
    train, test = rows[:n_train], rows[n_train:]
    Z = (X - X[train].mean(axis=0)) / X[train].std(axis=0) / np.sqrt(X.shape[1])
    return Task(Z[train], y[train], Z[test], y[test])


def estimator(sweeps: int = 1) -> OnlineGaussianProcessClassifier:
    """Return the estimator of the figure; the budget has room for every example."""
    return OnlineGaussianProcessClassifier(
        DotProduct(1.0) ** 2, likelihood="step", budget=200, sweeps=sweeps
    )


def errors(clf: OnlineGaussianProcessClassifier, t: Task) -> tuple[float, float]:
    """Return training and test error rates."""
    train = float(np.mean(clf.predict(t.X) != t.y))
    return train, float(np.mean(clf.predict(t.X_test) != t.y_test))


def presented(t: Task, sweeps: int, step: int) -> list[tuple[int, float, float]]:
    """Return the errors after every few presentations, over several sweeps through the data."""
    clf, found = estimator(), []
    n = len(t.y)
    for begin in range(0, sweeps * n, step):
        rows = np.arange(begin, min(begin + step, sweeps * n)) % n
        clf.partial_fit(t.X[rows], t.y[rows], classes=np.unique(t.y))
        found.append((begin + len(rows), *errors(clf, t)))
    return found


def removed(t: Task, sweeps: int) -> list[tuple[int, float, float]]:
    """Return the errors after each sweep, with old contributions removed first."""
    return [(k * len(t.y), *errors(estimator(k).fit(t.X, t.y), t)) for k in range(2, sweeps + 1)]


def main() -> None:
    """Draw the figure and print the errors after each sweep."""
    parser = argparse.ArgumentParser(description="Errors while examples are presented.")
    parser.add_argument("--quick", action="store_true", help="two orders, coarse steps")
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--sweeps", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "output")
    options = parser.parse_args()
    orders, step = (2, 26) if options.quick else (options.orders, 8)
    curves = {}
    for name in _DATA:
        tasks = [task(name, seed) for seed in range(orders)]
        again = np.array([presented(t, options.sweeps, step) for t in tasks])
        ep = np.array([removed(t, options.sweeps) for t in tasks])
        curves[name] = (again, ep, len(tasks[0].y))
        report(name, again, ep, tasks[0])
    draw(curves, options.out / "sequential.png")


def report(name: str, again: Any, ep: Any, t: Task) -> None:
    """Print errors after each sweep, for every order."""
    n, n_test = len(t.y), len(t.y_test)
    for k in range(1, 1 + int(again[0, -1, 0]) // n):
        at = np.argmin(np.abs(again[0, :, 0] - k * n))
        train, test = again[:, at, 1] * n, again[:, at, 2] * n_test
        line = f"{name}, {k} sweep(s): training errors {counts(train)} of {n}, "
        line += f"test errors {counts(test)} of {n_test}"
        if k > 1:
            line += (
                f"; with removal {counts(ep[:, k - 2, 1] * n)}, {counts(ep[:, k - 2, 2] * n_test)}"
            )
        print(line)


def counts(values: Any) -> str:
    """Return the errors of all orders, or their mean and range if there are many."""
    whole = np.round(values).astype(int)
    return f"{whole.mean():.1f} ({whole.min()} to {whole.max()})"


def draw(curves: dict[str, Any], path: Path) -> None:
    """Draw training and test errors, the mean over the orders and each of them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(curves), figsize=(11, 4))
    for ax, (name, (again, ep, n)) in zip(axes, curves.items(), strict=True):
        x = again[0, :, 0]
        for k, (label, colour) in enumerate([("training", "C0"), ("test", "C1")], start=1):
            ax.plot(x, again[:, :, k].T, color=colour, alpha=0.15, linewidth=0.8)
            ax.plot(x, again[:, :, k].mean(axis=0), color=colour, label=f"{label} error")
            ax.plot(ep[0, :, 0], ep[:, :, k].mean(axis=0), "o", color=colour, label=f"{label}, EP")
        ax.axvline(n, color="grey", linestyle="-.")
        ax.set(title=name, xlabel="presentations", ylabel="error rate", ylim=(0.0, 0.55))
        ax.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
