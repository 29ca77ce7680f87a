"""
Learning curves of Boston and Abalone, by theory and by refitting
=================================================================

Malzahn and Opper, "Learning curves and bootstrap estimates for inference with Gaussian processes"
(2002), predict the result of training on m random examples, without training. This script draws
their two figures with our theories and our refits. As in the paper, training sets are drawn with
replacement, kernels are fixed, targets are standardised, and the error is measured on the whole
pool, trained on or not. Run as a script it writes ``output/boston.png`` and
``output/abalone.png``; ``--quick`` uses fewer refits, sizes and subsets.

Theory computed from a subset of N examples gives the error on those N only. Once m exceeds N, most
of them have been trained on. The error is then lower than for m examples drawn from all of them:
the optimism of the simple bootstrap that the paper describes.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from sklearn.gaussian_process.kernels import RBF

from cavity import (
    GaussianProcessRegressor,
    LearningCurveDisplay,
    learning_curve,
    simulate_learning_curve,
)
from cavity.datasets import load_abalone, load_boston

mpl.use("Agg")
from matplotlib import pyplot as plt

OUTPUT = Path(__file__).parent / "output"
MEASURES = ("posterior_variance", "pool_error")
BLUE, GREEN, ORANGE, INK = "#1f5fa8", "#3b8a4f", "#d9822b", "#222222"
# Boston, all 506 examples: m, then posterior variance and pool error, each by 30 refits, by cavity
# theory and by variational theory, from an independent program.
REFERENCE = [
    (50, (0.1459, 0.1269, 0.1227), (0.447, 0.408, 0.393)),
    (200, (0.0396, 0.0342, 0.0297), (0.157, 0.149, 0.128)),
    (506, (0.01383, 0.01208, 0.00799), (0.0782, 0.0734, 0.0560)),
    (2000, (0.00186, 0.00186, 0.00161), (0.0257, 0.0262, 0.0244)),
]


class Task(NamedTuple):
    """A data set with the paper's kernel for it."""

    X: Any
    y: Any
    model: GaussianProcessRegressor


def task(loader: Any, square: float, power: float, noise: float) -> Task:
    """Return a data set and a model with K = exp(−Σ (x − x')²/(square · std^power))."""
    X, y = loader(return_X_y=True)
    length = np.sqrt(0.5 * square * X.std(axis=0) ** power)
    model = GaussianProcessRegressor(RBF(length), alpha=noise, optimizer=None)
    return Task(X, (y - y.mean()) / y.std(), model)


def theory(given: Task, rows: Any, sizes: Any, name: str = "cavity") -> Any:
    """Return the theoretical curve of some rows of a data set as the pool."""
    X, y = given.X[rows], given.y[rows]
    return learning_curve(given.model, X, y, train_sizes=sizes, resampling="bootstrap", theory=name)


def refits(given: Task, rows: Any, sizes: Any, repeats: int, n_jobs: int | None) -> Any:
    """Return the same curve by brute force."""
    return simulate_learning_curve(
        given.model,
        given.X[rows],
        given.y[rows],
        train_sizes=sizes,
        resampling="bootstrap",
        n_repeats=repeats,
        random_state=0,
        n_jobs=n_jobs,
    )


def panels(title: str) -> tuple[Any, Any]:
    """Return a figure with a panel for each measure."""
    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained")
    figure.suptitle(title)
    axes[0].set_yscale("log")
    for ax in axes:
        ax.set_xscale("log")
    return figure, axes


def draw(axes: Any, curve: Any, label: str, color: str, style: str = "-") -> None:
    """Draw a theoretical curve into all panels."""
    for ax, measure in zip(axes, MEASURES, strict=True):
        LearningCurveDisplay.from_curve(
            curve, measure=measure, ax=ax, label=label, color=color, linestyle=style
        )


def mark(axes: Any, curve: Any, label: str, marker: str, color: str = INK) -> None:
    """Draw a simulated curve into all panels as points with error bars."""
    for ax, measure in zip(axes, MEASURES, strict=True):
        ax.errorbar(
            curve.train_sizes,
            getattr(curve, measure),
            yerr=2.0 * curve.standard_error[measure],
            fmt=marker,
            color=color,
            markersize=5,
            capsize=2.5,
            label=label,
            zorder=3,
        )


def save(figure: Any, axes: Any, name: str) -> None:
    """Finish a figure and write it."""
    for ax in axes:
        ax.legend(frameon=False, fontsize=9)
    OUTPUT.mkdir(exist_ok=True)
    figure.savefig(OUTPUT / name, dpi=150)
    print(f"wrote {OUTPUT.name}/{name}\n")


def boston(quick: bool, n_jobs: int | None) -> None:
    """Draw figure 1: all of Boston, and each half of it by itself."""
    given = task(load_boston, 147.1, 1.0, 0.01)
    lines = np.unique(np.geomspace(20, 2000, 10 if quick else 25).astype(int))
    points = [50, 200, 506, 2000] if quick else [20, 50, 100, 200, 350, 506, 1000, 2000]
    repeats = 10 if quick else 30
    whole, first, second = slice(None), slice(0, 253), slice(253, None)
    figure, axes = panels("Boston housing: training sets of m examples, drawn with replacement")
    axes[1].set_yscale("log")
    draw(axes, theory(given, whole, lines), "cavity theory, all 506", BLUE)
    older = theory(given, whole, lines, "variational")
    draw(axes, older, "variational theory, all 506", BLUE, ":")
    draw(axes, theory(given, first, lines), "cavity theory, first half", GREEN, "-.")
    draw(axes, theory(given, second, lines), "cavity theory, second half", ORANGE, "-.")
    simulated = refits(given, whole, points, repeats, n_jobs)
    mark(axes, simulated, f"{repeats} refits, all 506", "o")
    mark(axes, refits(given, first, points, repeats, n_jobs), "refits, first half", "x", GREEN)
    boston_table(given, simulated, repeats)
    save(figure, axes, "boston.png")


def boston_table(given: Task, simulated: Any, repeats: int) -> None:
    """Print our numbers beside those of an independent program."""
    sizes = [row[0] for row in REFERENCE]
    curves = [simulated, theory(given, slice(None), sizes)]
    curves.append(theory(given, slice(None), sizes, "variational"))
    print(f"Boston, N = 506: {repeats} refits / cavity / variational (reference in brackets)")
    for size, *reference in REFERENCE:
        cells = []
        for measure, expected in zip(MEASURES, reference, strict=True):
            found = [value_at(curve, measure, size) for curve in curves]
            cells.append(f"{slashed(found)} ({slashed(expected)})")
        print(f"  m = {size:4d}  variance {cells[0]}   error {cells[1]}")


def value_at(curve: Any, measure: str, size: int) -> float:
    """Return a measure at one of the curve's sizes."""
    return float(getattr(curve, measure)[list(curve.train_sizes).index(size)])


def slashed(values: Any) -> str:
    """Return numbers as text."""
    return " / ".join(f"{value:.4f}" for value in values)


def abalone(quick: bool, n_jobs: int | None) -> None:
    """Draw figure 2: theory from random subsets of Abalone against refits on all of it."""
    given = task(load_abalone, 10.0, 2.0, 0.1)
    rng = np.random.default_rng(0)
    figure, axes = panels("Abalone: theory from random subsets, refits on all 4,177 examples")
    points = [50, 200, 800] if quick else [50, 100, 200, 500, 1000, 2000, 4000]
    simulated = refits(given, slice(None), points, 3 if quick else 5, n_jobs)
    mark(axes, simulated, "refits, all 4,177", "o")
    plan = [(1000, 4000, ORANGE, "-."), (2000, 3800, BLUE, "-")]
    for n, last, color, style in plan[: 1 if quick else 2]:
        lines = np.unique(np.append(np.geomspace(50, last, 5 if quick else 12).astype(int), points))
        curve = theory(given, rng.permutation(4177)[:n], lines[lines <= last])
        draw(axes, curve, f"cavity theory from {n:,} examples", color, style)
        abalone_table(curve, simulated, n)
        spread(axes, given, (n, last, color), 3 if quick else 20, rng)
    save(figure, axes, "abalone.png")


def abalone_table(curve: Any, simulated: Any, n: int) -> None:
    """Print theory from a subset beside the refits on everything."""
    print(f"Abalone: refits on all 4,177 / cavity theory from {n} random examples")
    for size in (size for size in simulated.train_sizes if size in curve.train_sizes):
        variance, error = (
            slashed([value_at(each, measure, size) for each in (simulated, curve)])
            for measure in MEASURES
        )
        print(f"  m = {size:4.0f}  variance {variance}   error {error}")


def spread(axes: Any, given: Task, bar: tuple[int, int, str], subsets: int, rng: Any) -> None:
    """Mark the range that theory from further random subsets covers at one size."""
    n, size, color = bar
    curves = [theory(given, rng.permutation(4177)[:n], [size]) for _ in range(subsets)]
    for ax, measure in zip(axes, MEASURES, strict=True):
        values = [value_at(curve, measure, size) for curve in curves]
        low, high = min(values), max(values)
        middle = 0.5 * (low + high)
        ax.errorbar(
            [size], [middle], yerr=[[middle - low], [high - middle]], color=color, capsize=5
        )
        print(f"  {subsets} subsets at m = {size}: {measure} from {low:.4f} to {high:.4f}")


def main() -> None:
    """Draw both figures."""
    parser = argparse.ArgumentParser(description="Learning curves of Boston and Abalone.")
    parser.add_argument("--quick", action="store_true", help="under a minute instead of many")
    parser.add_argument("--jobs", type=int, help="refits at a time")
    options = parser.parse_args()
    begin = time.perf_counter()
    boston(options.quick, options.jobs)
    abalone(options.quick, options.jobs)
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
