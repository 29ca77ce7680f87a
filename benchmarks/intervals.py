"""Intervals and sets of one fit beside MAPIE's of K fits: coverage and size on fresh rows.

    python -m benchmarks.intervals [--splits N] [--jobs J] [--quick]

writes results/intervals.md. MAPIE takes part if it is installed.
"""

import argparse
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_friedman1,
)
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.preprocessing import StandardScaler

from benchmarks.tables import markdown
from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.datasets import load_abalone, load_boston, load_pima

_RESULTS = Path(__file__).parent / "results" / "intervals.md"
_LEVELS = (0.8, 0.9)
_FOLDS = 10
_ABOUT = """
Means over {splits} splits of up to 1,000 fresh rows. Ours are jackknife+ from one fit; MAPIE's
cross-conformal ones are from {folds} fits of the same model, tuned again in each, with its default
scores. The model's own quantiles promise nothing if it is wrong. Sizes are mean widths of
intervals, in the target's units, and mean numbers of classes in a set. By
`python -m benchmarks.intervals`.
""".strip()


def _uneven(n: int = 1500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return targets whose noise grows along an input, which the model does not know."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, (n, 3))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + np.exp(X[:, 2] - 1.0) * rng.standard_normal(n)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    return load_digits(n_class=5, return_X_y=True)


NUMBERS: dict[str, tuple[Callable[[], Any], int]] = {
    "diabetes": (lambda: load_diabetes(return_X_y=True), 150),
    "Boston": (lambda: load_boston(return_X_y=True), 150),
    "abalone": (lambda: load_abalone(return_X_y=True), 200),
    "Friedman (made up)": (lambda: make_friedman1(1500, noise=2.0, random_state=0), 150),
    "uneven noise (made up)": (_uneven, 150),
}
CLASSES: dict[str, tuple[Callable[[], Any], int]] = {
    "Pima": (lambda: load_pima(subset="all", return_X_y=True), 200),
    "breast cancer": (lambda: load_breast_cancer(return_X_y=True), 100),
    "wine": (lambda: load_wine(return_X_y=True), 60),
    "digits 0–4": (_digits, 150),
}


def _model(classes: bool) -> Any:
    if classes:
        return GaussianProcessClassifier(1.0 * RBF(3.0))
    kernel = 1.0 * RBF(3.0) + WhiteKernel(0.1, (1e-4, 1e2))
    return GaussianProcessRegressor(kernel, normalize_y=True)


def _mapie(model: Any, classes: bool, level: float) -> Any:
    from mapie.classification import CrossConformalClassifier
    from mapie.regression import CrossConformalRegressor

    make = CrossConformalClassifier if classes else CrossConformalRegressor
    return make(clone(model), confidence_level=level, cv=_FOLDS)


def _scored(found: Any, y: np.ndarray, classes: bool) -> tuple[float, float]:
    """Return the share of targets inside, and the mean width or number of classes."""
    if classes:
        return float(np.mean(found[np.arange(len(y)), y])), float(np.mean(found.sum(axis=1)))
    low, high = found
    return float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low))


def measure(name: str, split: int) -> list[dict[str, Any]]:
    """Return coverage, size and seconds of everyone on one split."""
    classes = name in CLASSES
    load, n = (CLASSES if classes else NUMBERS)[name]
    X, y = load()
    y = np.unique(y, return_inverse=True)[1] if classes else np.asarray(y, dtype=float)
    order = np.random.default_rng(split).permutation(len(y))
    train, fresh = order[:n], order[n : n + 1000]
    scale = StandardScaler().fit(X[train])
    X, Z = scale.transform(X[train]), scale.transform(X[fresh])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            {"set": name, "n": n, "level": level, "who": who, "seconds": seconds}
            | dict(zip(("inside", "size"), _scored(found, y[fresh], classes), strict=True))
            for who, level, seconds, found in _answers(_model(classes), classes, X, y[train], Z)
        ]


def _answers(model: Any, classes: bool, X: Any, y: Any, Z: Any) -> Any:
    start = time.process_time()
    model.fit(X, y)
    fit = time.process_time() - start
    for level in _LEVELS:
        start = time.process_time()
        found = model.predict_set(Z, level) if classes else model.predict_interval(Z, level)
        yield "ours", level, fit + time.process_time() - start, found
        if not classes:
            side = 0.5 * (1.0 - level)
            yield "model's quantiles", level, fit, model.predict_quantiles(Z, [side, 1.0 - side]).T
        if find_spec("mapie"):
            start = time.process_time()
            other = _mapie(model, classes, level).fit_conformalize(X, y)
            their = other.predict_set(Z) if classes else other.predict_interval(Z)
            seconds, ends = time.process_time() - start, their[1][:, :, 0]
            yield "MAPIE", level, seconds, ends if classes else ends.T


def _cells(rows: list[dict[str, Any]], name: str, level: float) -> list[str]:
    def mean(who: str, field: str) -> float:
        one = [r for r in rows if (r["set"], r["level"], r["who"]) == (name, level, who)]
        return float(np.mean([r[field] for r in one])) if one else np.nan

    ours, theirs, own = "ours", "MAPIE", "model's quantiles"
    return [
        name,
        str(next(r["n"] for r in rows if r["set"] == name)),
        f"{level:.0%}",
        f"{mean(ours, 'inside'):.3f}",
        f"{mean(theirs, 'inside'):.3f}",
        "" if name in CLASSES else f"{mean(own, 'inside'):.3f}",
        f"{mean(ours, 'size'):.3f}",
        f"{mean(ours, 'size') / mean(theirs, 'size'):.3f}",
        f"{mean(theirs, 'seconds') / mean(ours, 'seconds'):.1f}",
    ]


def page(rows: list[dict[str, Any]], splits: int) -> str:
    """Return the tables."""
    names = [name for name in (*NUMBERS, *CLASSES) if any(r["set"] == name for r in rows)]
    head = "set, rows, level, ours inside, MAPIE inside, quantiles inside, our size, "
    head += "size / MAPIE's, MAPIE's time / ours"
    lines = [_cells(rows, name, level) for name in names for level in _LEVELS]
    gap = [abs(float(line[3]) - float(line[2][:-1]) / 100.0) for line in lines]
    parts = [
        "# Intervals and sets",
        _ABOUT.format(splits=splits, folds=_FOLDS),
        markdown(head.split(", "), lines),
        f"Mean distance of our coverage from the level: {np.mean(gap):.3f}.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="two splits, and nothing is written")
    options = parser.parse_args()
    splits = 2 if options.quick else options.splits
    tasks = [delayed(measure)(name, s) for name in (*NUMBERS, *CLASSES) for s in range(splits)]
    rows = [row for part in Parallel(options.jobs, verbose=1)(tasks) for row in part]
    text = page(rows, splits)
    if not options.quick:
        _RESULTS.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
