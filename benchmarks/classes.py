"""More than two classes: one model for all beside one against the rest, and beside peers.

    python -m benchmarks.classes [--quick]

writes results/classes.md: the mean log loss on fresh rows of five sets × ten splits, and how far
our own leave-one-out log loss is from it.
"""

import argparse
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.tables import markdown
from benchmarks.trust.models import models
from cavity import GaussianProcessClassifier
from cavity.datasets import load_crabs
from cavity.kernels import Linear

_RESULTS = Path(__file__).parent / "results" / "classes.md"
_PEERS = ("logistic", "forest", "SVC")
Table = tuple[np.ndarray, np.ndarray]


def _crabs() -> Table:
    """Return the crabs' five measurements, and which of four groups (species and sex) they are."""
    X, sex = load_crabs(return_X_y=True)
    return X[:, 1:], (2 * X[:, 0] + sex).astype(int)


def _digits() -> Table:
    X, y = load_digits(return_X_y=True)
    some = np.random.default_rng(0).permutation(len(y))[:500]
    X = X[some]
    return X[:, X.std(axis=0) > 0.0], y[some]


def _made_up() -> Table:
    """Return three classes that two of four inputs decide, all inputs seen through noise."""
    rng = np.random.default_rng(0)
    X = rng.random((400, 4))
    near = np.hypot(X[:, 0] - 0.4, X[:, 1] - 0.5) < 0.35
    y = np.where(near, 0, np.where(0.8 * X[:, 0] + 1.8 * X[:, 1] < 0.6, 1, 2))
    return X + 0.1 * rng.standard_normal(X.shape), y


SETS: dict[str, tuple[Callable[[], Table], int]] = {
    "iris": (lambda: load_iris(return_X_y=True), 75),
    "wine": (lambda: load_wine(return_X_y=True), 89),
    "crabs by species and sex": (_crabs, 100),
    "three made-up classes": (_made_up, 150),
    "digits, 500 rows": (_digits, 300),
}
"""Tables, and how many rows are learned from; the others are fresh."""


def _ours(multi_class: str, d: int) -> Any:
    linear = 1.0 * Linear(np.full(d, np.sqrt(d)), np.zeros(d))
    kernel = 1.0 * RBF(np.sqrt(d)) + linear + ConstantKernel(1.0, "fixed")
    model = GaussianProcessClassifier(kernel, multi_class=multi_class, hyperprior="hierarchical")
    return make_pipeline(StandardScaler(), model)


def _makers(d: int) -> dict[str, Callable[[], Any]]:
    found: dict[str, Callable[[], Any]] = {
        "multinomial": lambda: _ours("multinomial", d),
        "one against the rest": lambda: _ours("one_vs_rest", d),
    }
    peers = models("classes")
    return found | {name: lambda name=name: peers[name](d) for name in _PEERS}


def measure(name: str, split: int) -> list[dict[str, Any]]:
    """Return what every model scores on one split."""
    load, n = SETS[name]
    X, y = load()
    order = np.random.default_rng(split).permutation(len(y))
    train, fresh, rows = order[:n], order[n:], []
    for who, make in _makers(X.shape[1]).items():
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(X[train], y[train])
            p = np.clip(model.predict_proba(X[fresh]), 1e-15, 1.0)
            row = {"set": name, "n": n, "model": who, "seconds": time.process_time() - begin}
            row["fresh"] = log_loss(y[fresh], p, labels=np.unique(y))
            row["error"] = float(np.mean(model.classes_[np.argmax(p, axis=1)] != y[fresh]))
            if who not in _PEERS:
                row["loo"] = log_loss(y[train], model[-1].loo_proba_, labels=np.unique(y))
        rows.append(row)
    return rows


def page(rows: list[dict[str, Any]]) -> str:
    """Return the tables."""
    who = list(dict.fromkeys(row["model"] for row in rows))
    sets = list(dict.fromkeys(row["set"] for row in rows))

    def values(field: str, of_set: str, model: str) -> list[float]:
        return [r[field] for r in rows if r["set"] == of_set and r["model"] == model]

    def cell(of_set: str, model: str) -> str:
        found = values("fresh", of_set, model)
        return f"{np.mean(found):.3f} ± {np.std(found) / np.sqrt(len(found)):.3f}"

    lines = [[s, str(SETS[s][1]), *(cell(s, w) for w in who)] for s in sets]
    means = [np.mean([np.mean(values("fresh", s, w)) for s in sets]) for w in who]
    lines.append(["mean over sets", "", *(f"{m:.3f}" for m in means)])
    errors = [[s, *(f"{np.mean(values('error', s, w)):.3f}" for w in who)] for s in sets]
    honest = []
    for s in sets:
        for w in who[:2]:
            loo, fresh = (np.array(values(f, s, w)) for f in ("loo", "fresh"))
            cost = np.mean(values("seconds", s, w))
            gap = f"{np.mean(loo - fresh):+.3f} ± {np.std(loo - fresh) / np.sqrt(len(loo)):.3f}"
            honest.append([s, w, f"{np.mean(loo):.3f}", gap, f"{cost:.1f}"])
    paired = []
    for s in sets:
        one, rest = (np.array(values("fresh", s, w)) for w in who[:2])
        d = one - rest
        paired.append([s, f"{np.mean(d):+.3f} ± {np.std(d) / np.sqrt(len(d)):.3f}"])
    count = len(values("fresh", sets[0], who[0]))
    parts = [
        "# More than two classes",
        f"Mean log loss on fresh rows, ± standard error over {count} splits. Ours have the sum of "
        "a linear and a squared exponential kernel with one length scale under the hierarchical "
        "prior, on standardised inputs. By `python -m benchmarks.classes`.",
        markdown(["set", "rows", *who], lines),
        "Share of errors:",
        markdown(["set", *who], errors),
        "Multinomial minus one against the rest, split by split:",
        markdown(["set", "difference of log loss"], paired),
        "Leave-one-out log loss beside that on fresh rows, and CPU seconds of a fit with it:",
        markdown(["set", "model", "leave-one-out", "minus fresh", "seconds"], honest),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two splits of three sets")
    parser.add_argument("--splits", type=int, default=10)
    quick = parser.parse_args().quick
    splits = 2 if quick else parser.parse_args().splits
    rows: list[dict[str, Any]] = []
    for name in list(SETS)[: 3 if quick else None]:
        for split in range(splits):
            rows += measure(name, split)
            print(name, split, *(f"{r['model']} {r['fresh']:.3f}" for r in rows[-5:]), flush=True)
        if not quick:
            _RESULTS.write_text(page(rows), encoding="utf-8")
    print(page(rows))


if __name__ == "__main__":
    main()
