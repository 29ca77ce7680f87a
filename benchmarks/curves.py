"""Learning curves by theory against refits, forecasts, suspects and speed.

``python -m benchmarks.curves [--table] [--forecast] [--suspects] [--speed] [--quick]`` does what is
named, or everything, and writes curves.json and curves.md into results/. A part that is not named
keeps the numbers of its last run.
"""

import argparse
import json
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import curve_fit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as SklearnClassifier
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import ShuffleSplit
from sklearn.model_selection import learning_curve as sklearn_learning_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.contestants.common import timed
from benchmarks.data import synthetic
from benchmarks.measure import dpotrf, median, threads
from benchmarks.tables import markdown
from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    learning_curve,
    simulate_learning_curve,
)
from cavity.datasets import load_boston, load_crabs, load_pima, load_sonar

_RESULTS = Path(__file__).resolve().parent / "results"
_ROOT = Path(__file__).resolve().parent.parent
_SCRATCH = _ROOT / "build" / "curves"
_DOCS = _ROOT / "docs" / "validation.md"
# From one start alone the made-up classes are tuned to an optimum 19 nats below the best.
_TUNING = {"n_restarts_optimizer": 5, "random_state": 0}
_MARK = "<!-- written by python -m benchmarks.curves -->"
_FRACTIONS = {"subsample": (0.1, 0.25, 0.5, 0.75, 0.9), "bootstrap": (0.1, 0.25, 0.5, 1.0, 2.0)}
_ROUNDS = 5
_MEASURES = {
    "test_error": "error",
    "test_log_loss": "log loss",
    "test_brier": "Brier",
    "pool_error": "pool error",
    "posterior_variance": "variance",
}


class Plan(NamedTuple):
    """How much to do."""

    repeats: int
    halves: int
    seeds: int
    size: int
    large: int


_FULL = Plan(repeats=200, halves=50, seeds=20, size=500, large=2000)
_QUICK = Plan(repeats=20, halves=3, seeds=3, size=200, large=400)


class Task(NamedTuple):
    """A data set and a model for it."""

    X: np.ndarray
    y: np.ndarray
    model: Any


def tasks() -> dict[str, Task]:
    """Return the six data sets."""
    classes, target = _synthetic_classes(), _synthetic_target()
    return {
        "Pima": Task(*load_pima(return_X_y=True), _classifier(RBF([1.0] * 7))),
        "sonar": Task(*load_sonar(return_X_y=True), _classifier(RBF(3.0))),
        "crabs": Task(*load_crabs(return_X_y=True), _classifier(RBF([1.0] * 6))),
        "Boston": Task(*load_boston(return_X_y=True), _regressor(RBF([1.0] * 13))),
        "made-up classes": Task(*classes, _classifier(RBF([1.0] * 5))),
        "made-up target": Task(*target, _regressor(RBF([1.0] * 3))),
    }


def _classifier(kernel: Any) -> Any:
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(1.0 * kernel, **_TUNING))


def _regressor(kernel: Any) -> Any:
    kernel = 1.0 * kernel + WhiteKernel(0.1)
    return make_pipeline(
        StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, **_TUNING)
    )


def _synthetic_classes() -> tuple[np.ndarray, np.ndarray]:
    X, y, _, _ = synthetic(250, 5)
    return X, y


def _synthetic_target() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    f = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.3 * X[:, 2]
    return X, f + 0.3 * rng.standard_normal(len(f))


def table(plan: Plan) -> list[dict[str, Any]]:
    """Compare theory with refits in every cell: set, law, size and measure."""
    cells = []
    for name, task in tasks().items():
        model = clone(task.model).fit(task.X, task.y)
        for law, fractions in _FRACTIONS.items():
            _say(f"{name}, {law}")
            about = {"train_sizes": fractions, "resampling": law}
            refits = simulate_learning_curve(
                model, task.X, task.y, n_repeats=plan.repeats, random_state=0, **about
            )
            # What pairs of examples add is there for regression only.
            for theory in ("cavity", "pairs")[: 1 + (refits.task == "regression")]:
                curve = learning_curve(model, task.X, task.y, theory=theory, **about)
                front = {"set": name, "law": law, "by": theory}
                cells += [{**front, **cell} for cell in _cells(curve, refits)]
    return cells


def _cells(theory: Any, refits: Any) -> Iterator[dict[str, Any]]:
    for measure in _MEASURES:
        if getattr(theory, measure) is None:
            continue
        error = refits.standard_error[measure]
        columns = (theory.train_sizes, getattr(theory, measure), getattr(refits, measure), error)
        for size, ours, truth, se in zip(*columns, strict=True):
            near = abs(ours - truth) <= max(2.0 * se, 0.05 * abs(truth))
            yield {
                "size": int(size),
                "measure": measure,
                "theory": float(ours),
                "refits": float(truth),
                "standard_error": float(se),
                "near": bool(near),
            }


def forecast(plan: Plan) -> list[dict[str, Any]]:
    """Foresee from a random half what refits to nine tenths of the whole find."""
    rows = []
    for name, task in tasks().items():
        size = round(0.9 * len(task.y))
        whole = simulate_learning_curve(
            task.model, task.X, task.y, train_sizes=[size], n_repeats=200, random_state=0
        )
        for seed in range(plan.halves):
            _say(f"{name}, half {seed + 1} of {plan.halves}")
            # The rules of the forecast were settled on halves from other seeds.
            half = np.random.default_rng(100 + seed).permutation(len(task.y))[: len(task.y) // 2]
            for row in _foresee(task, half, size, seed):
                truth = float(getattr(whole, f"test_{row['measure']}")[0])
                rows.append({"set": name, "half": seed, "size": size, "truth": truth, **row})
    return rows


def _foresee(task: Task, half: np.ndarray, size: int, seed: int) -> Iterator[dict[str, Any]]:
    X, y = task.X[half], task.y[half]
    model = clone(task.model).fit(X, y)
    curve = learning_curve(model, X, y)
    refits = simulate_learning_curve(
        model, X, y, train_sizes=(0.2, 0.35, 0.5, 0.7, 0.9), n_repeats=20, random_state=seed
    )
    for measure in ("error", "log_loss"):
        ours = curve.forecast(size, measure)
        fitted = _power_law(refits.train_sizes, getattr(refits, f"test_{measure}"), size)
        yield {"measure": measure, **ours._asdict(), "power_law": fitted}


def _power_law(sizes: np.ndarray, values: np.ndarray, size: int) -> float:
    """Return a + b m^−c fitted to a simulated curve, at a size beyond it."""

    def law(m: np.ndarray, a: float, b: float, c: float) -> np.ndarray:
        return a + b * (m / sizes[-1]) ** -c

    low = -np.inf if np.min(values) < 0.0 else 0.0
    start = (max(values[-1] - np.ptp(values), low), np.ptp(values) + 1e-3, 0.5)
    bounds = ((low, 0.0, 0.05), (np.inf, np.inf, 5.0))
    try:
        found, _ = curve_fit(law, sizes, values, p0=start, bounds=bounds, maxfev=5000)
    except RuntimeError:
        return float(values[-1])
    return float(law(np.array(float(size)), *found))


def suspects(plan: Plan) -> list[dict[str, Any]]:
    """Turn 5 % of the labels round and look where they come in the ranking."""
    linear = _classifier(RBF([1.0] * 6))
    linear.steps[-1][1].kernel = 1.0 * RBF([1.0] * 6) + 1.0 * DotProduct()
    some = tasks()
    models = {"Pima": some["Pima"], "crabs": some["crabs"]._replace(model=linear)}
    rows = []
    for name, task in models.items():
        for seed in range(plan.seeds):
            _say(f"{name}, seed {seed + 1} of {plan.seeds}")
            rows.append({"set": name, "seed": seed, "auc": suspect_auc(task, seed)})
    return rows


def suspect_auc(task: Task, seed: int, share: float = 0.05) -> float:
    """Return how well the evidence against each label tells wrong labels from right ones."""
    n, (first, second) = len(task.y), np.unique(task.y)
    wrong = np.zeros(n, dtype=bool)
    wrong[np.random.default_rng(seed).choice(n, round(share * n), replace=False)] = True
    y = np.where(wrong, np.where(task.y == first, second, first), task.y)
    curve = learning_curve(clone(task.model), task.X, y, train_sizes=[n])
    return float(roc_auc_score(wrong, curve.point_evidence[-1]))


def speed(plan: Plan) -> dict[str, Any]:
    """Time ten sizes against refits, which are counted up from fewer, and against dpotrf(n)."""
    return {
        "threads": threads(),
        "refits_per_size": 100,
        "small": _alone(against_refits, plan.size),
        "large": _alone(against_floor, plan.large),
    }


def _alone(job: Callable[[int], dict[str, Any]], n: int) -> dict[str, Any]:
    """Do a job in a fresh process."""
    _say(f"{job.__name__}, n = {n}")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, n).result()


def _fixed(n: int) -> tuple[np.ndarray, np.ndarray, Any, np.ndarray]:
    """Return data, a classifier that is not tuned, and ten sizes."""
    X, y, _, _ = synthetic(n, 10)
    kernel = 30.0 * RBF([2.5, 3.5, 3.5, 8.0, *[100.0] * 6])
    return X, y, GaussianProcessClassifier(kernel, optimizer=None), np.linspace(0.1, 0.95, 10)


def against_refits(n: int) -> dict[str, Any]:
    """Time a curve, two of our refits at each size and one of scikit-learn's, in turn."""
    X, y, model, sizes = _fixed(n)
    _warm(X, y, model)
    model.fit(X, y)
    peer = SklearnClassifier(model.kernel, optimizer=None)
    about = {"train_sizes": sizes, "n_repeats": 2}

    def theirs(seed: int) -> Any:
        # Its largest training set is a share of the split's: give it all but what is judged.
        split = ShuffleSplit(1, train_size=0.95, random_state=seed)
        return sklearn_learning_curve(peer, X, y, train_sizes=sizes / 0.95, cv=split)

    rounds = [
        (
            timed(lambda: learning_curve(model, X, y, train_sizes=sizes))[0],
            timed(lambda k=k: simulate_learning_curve(model, X, y, random_state=k, **about))[0],
            timed(lambda k=k: theirs(k))[0],
        )
        for k in range(_ROUNDS)
    ]
    ours, refits, others = (median(list(seconds)) for seconds in zip(*rounds, strict=True))
    return {"n": n, "seconds": ours, "refits": 50.0 * refits, "scikit_learn": 100.0 * others}


def against_floor(n: int) -> dict[str, Any]:
    """Time a curve in units of dpotrf(n), and measure its memory above that of the fitted model."""
    X, y, model, sizes = _fixed(n)
    _warm(X, y, model)
    kept, peak = _memory(X, y, model, sizes)
    floor = dpotrf(n)
    seconds, curve = timed(lambda: learning_curve(model, X, y, train_sizes=sizes))
    each = seconds / len(sizes)
    floor = median(floor + dpotrf(n))
    return {
        "n": n,
        "seconds_per_size": each,
        "dpotrf": floor,
        "floors_per_size": each / floor,
        "iterations": [int(k) for k in curve.n_iter],
        "model_memory": kept / (8.0 * n * n),
        "memory": (peak - kept) / (8.0 * n * n),
    }


def _memory(X: np.ndarray, y: np.ndarray, model: Any, sizes: np.ndarray) -> tuple[int, int]:
    """Return the bytes that the fitted model keeps, and the most in use during a curve."""
    tracemalloc.start()
    model.fit(X, y)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    learning_curve(model, X, y, train_sizes=sizes[:2])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept, peak


def _warm(X: np.ndarray, y: np.ndarray, model: Any) -> None:
    """Load whatever is loaded lazily."""
    learning_curve(clone(model), X[:40], y[:40])


PARTS: dict[str, Callable[[Plan], Any]] = {
    "table": table,
    "forecast": forecast,
    "suspects": suspects,
    "speed": speed,
}


def main() -> None:
    """Measure what is asked for, and write everything that has been measured."""
    parser = argparse.ArgumentParser(prog="benchmarks.curves", description=__doc__)
    for part, job in PARTS.items():
        parser.add_argument(f"--{part}", action="store_true", help=(job.__doc__ or "").lower())
    parser.add_argument("--quick", action="store_true", help="a small part of the work")
    parser.add_argument("--out", type=Path, default=None, help="where the results go")
    options = parser.parse_args()
    # Most kernels here leave inputs out by a length scale at its bound.
    warnings.simplefilter("ignore", ConvergenceWarning)
    out = options.out or (_SCRATCH if options.quick else _RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    results = _read(out / "curves.json")
    asked = [part for part in PARTS if getattr(options, part)] or list(PARTS)
    for part in asked:
        begin = time.perf_counter()
        found = PARTS[part](_QUICK if options.quick else _FULL)
        seconds = round(time.perf_counter() - begin)
        results[part] = {"quick": options.quick, "seconds": seconds, "found": found}
        _write(out, results)
    print((out / "curves.md").read_text())


def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _write(out: Path, results: dict[str, Any]) -> None:
    (out / "curves.json").write_text(json.dumps(results, indent=1) + "\n")
    pages = [_PAGES[part](results[part]["found"]) for part in PARTS if part in results]
    text = "\n\n".join(pages)
    (out / "curves.md").write_text("# Learning curves by theory\n\n" + text + "\n")
    if out == _RESULTS and _DOCS.exists():
        before, _, _ = _DOCS.read_text().partition(_MARK)
        _DOCS.write_text(f"{before}{_MARK}\n\n{text}\n")


def table_page(cells: list[dict[str, Any]]) -> str:
    """Return one row per set, law, size and theory, and how many cells are near."""
    places = dict.fromkeys((cell["set"], cell["law"], cell["size"], cell["by"]) for cell in cells)
    found = {(c["set"], c["law"], c["size"], c["by"], c["measure"]): c for c in cells}
    rows = [
        [*map(str, place), *(_cell(found.get((*place, measure))) for measure in _MEASURES)]
        for place in sorted(places, key=lambda place: list(places).index((*place[:3], "cavity")))
    ]
    with_pairs = {cell["set"] for cell in cells if cell["by"] == "pairs"}
    plain = [cell for cell in cells if cell["by"] == "cavity"]
    better = [c for c in cells if c["by"] == ("pairs" if c["set"] in with_pairs else "cavity")]
    return "\n\n".join(
        [
            "## Agreement with refits",
            "Cells within two standard errors or 5 % of the refits:",
            f'- `theory="auto"`, the default, with pairs for the real targets: {_counts(better)}.\n'
            f'- `theory="cavity"`, without pairs: {_counts(plain)}.',
            "A cell is theory / refits ± standard error; **bold** cells are misses.",
            markdown(["set", "law", "m", "theory", *_MEASURES.values()], rows),
        ]
    )


def _counts(cells: list[dict[str, Any]]) -> str:
    near = sum(cell["near"] for cell in cells)
    sets = dict.fromkeys(cell["set"] for cell in cells)
    each = [f"{name} {_count([c for c in cells if c['set'] == name])}" for name in sets]
    return f"{near} of {len(cells)} ({100.0 * near / len(cells):.1f} %; {', '.join(each)})"


def _count(cells: list[dict[str, Any]]) -> str:
    return f"{sum(cell['near'] for cell in cells)}/{len(cells)}"


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    text = f"{cell['theory']:.4g} / {cell['refits']:.4g} ± {cell['standard_error']:.1g}"
    return text if cell["near"] else f"**{text}**"


def forecast_page(rows: list[dict[str, Any]]) -> str:
    """Return coverage and median errors for each set and measure."""
    groups = dict.fromkeys((row["set"], row["measure"]) for row in rows)
    lines = []
    for name, measure in groups:
        some = [r for r in rows if (r["set"], r["measure"]) == (name, measure)]
        value, truth, other = (
            np.array([r[key] for r in some]) for key in ("value", "truth", "power_law")
        )
        inside = np.array([r["low"] <= r["truth"] <= r["high"] for r in some])
        width = np.median([r["high"] - r["low"] for r in some])
        lines.append(
            [
                name,
                measure.replace("_", " "),
                f"{truth[0]:.4g}",
                f"{100.0 * inside.mean():.0f} %",
                f"{width:.3g}",
                f"{np.median(np.abs(value - truth)):.4g}",
                f"{np.median(np.abs(other - truth)):.4g}",
                f"{np.mean(value - truth):+.3g}",
            ]
        )
    return "\n\n".join(
        [
            "## Forecasts",
            f"From {len({r['half'] for r in rows})} random halves of each set, the kernel tuned on "
            "the half: the held-out error at 0.9 of the whole (truth: 200 refits, the kernel tuned "
            "on the whole). The power law is a + b m^-c fitted to 20 refits at each of five "
            "sizes of the same half.",
            markdown(
                [
                    "set",
                    "measure",
                    "truth",
                    "inside 90 % interval",
                    "median width",
                    "median error of forecast",
                    "of power law",
                    "mean deviation",
                ],
                lines,
            ),
        ]
    )


def suspects_page(rows: list[dict[str, Any]]) -> str:
    """Return the areas under the ROC curve."""
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows):
        auc = np.array([row["auc"] for row in rows if row["set"] == name])
        lines.append([name, str(len(auc)), f"{auc.mean():.3f}", f"{auc.min():.3f}"])
    return "\n\n".join(
        [
            "## Suspects",
            "5 % of the labels are flipped at random and the kernel is tuned on what results; the "
            "examples are ranked by the evidence against their labels.",
            markdown(["set", "seeds", "mean AUC", "least AUC"], lines),
        ]
    )


def speed_page(found: dict[str, Any]) -> str:
    """Return the times and what they are compared with."""
    small, large = found["small"], found["large"]
    rows = [
        (f"n = {small['n']}, ten sizes", f"{small['seconds']:.3g} s", "", ""),
        ("the same by 100 of our refits a size", *_times(small, "refits"), ">= 10 x"),
        ("the same by scikit-learn's learning_curve", *_times(small, "scikit_learn"), ">= 100 x"),
        (
            f"n = {large['n']}, one size",
            f"{large['seconds_per_size']:.3g} s",
            f"{large['floors_per_size']:.0f} dpotrf(n)",
            "<= 120 dpotrf(n)",
        ),
        (
            "its memory, above the fitted model's",
            f"{large['memory']:.2g} n² doubles",
            f"model {large['model_memory']:.2g}",
            "<= 6 n² doubles",
        ),
    ]
    return "\n\n".join(
        [
            "## Speed",
            "Classification with a fixed kernel, medians of five rounds. Refits are counted up: "
            "two of ours and one of scikit-learn's at each size, times 50 and 100. "
            f"Threads: {found['threads']}.",
            markdown(["work", "measured", "against theory", "bar"], rows),
        ]
    )


def _times(small: dict[str, Any], who: str) -> tuple[str, str]:
    return f"{small[who]:.3g} s", f"{small[who] / small['seconds']:.0f} x"


_PAGES: dict[str, Callable[[Any], str]] = {
    "table": table_page,
    "forecast": forecast_page,
    "suspects": suspects_page,
    "speed": speed_page,
}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
