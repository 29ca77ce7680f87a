"""Write a file and a pickle of every kind: ``python -m tests.samples.write``."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    __version__,
)
from cavity.estimators import save
from cavity.tables.model import Settings, fit_model, save_model
from cavity.tables.prepare import prepare
from cavity.tables.table import Table

HERE = Path(__file__).parent
KERNEL = 2.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)
NEW = [[0.5, -0.5], [-1.0, 0.25], [0.0, 2.0]]
"""Inputs of which predictions are kept."""


def data() -> tuple[Any, Any]:
    """Return inputs and a smooth function of them."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1]


def models() -> dict[str, Any]:
    """Return a fitted estimator of every kind."""
    X, f = data()
    fixed: dict[str, Any] = {"optimizer": None}
    classifier, regressor = GaussianProcessClassifier, GaussianProcessRegressor
    labels, three = np.where(f > 0.0, "yes", "no"), np.digitize(f, [-0.5, 0.5])
    counts = np.round(np.exp(f))
    return {
        "labels": classifier(KERNEL, **fixed).fit(X, labels),
        "laplace": classifier(KERNEL, inference="laplace", likelihood="logit", **fixed).fit(
            X, three
        ),
        "points": classifier(RBF(1.0), n_inducing=4, random_state=0, **fixed).fit(X, labels),
        "multinomial": classifier(RBF(1.0), multi_class="multinomial", **fixed).fit(X, three),
        "ordinal": classifier(RBF(1.0), likelihood="ordinal", **fixed).fit(X, three),
        "numbers": regressor(KERNEL, alpha=0.01, normalize_y=True, **fixed).fit(X, f),
        "trend": regressor(DotProduct(1.0) + RBF(1.0), alpha=0.1, mean="linear", **fixed).fit(X, f),
        "outliers": regressor(RBF(1.0), likelihood="student_t", **fixed).fit(X, f),
        "counts": regressor(RBF(1.0), likelihood="poisson", **fixed).fit(X, counts),
        "stream of labels": OnlineGaussianProcessClassifier(RBF(1.0), budget=5).fit(X, labels),
        "stream of numbers": OnlineGaussianProcessRegressor(RBF(1.0), budget=5).fit(X, f),
    }


def answer(model: Any) -> Any:
    """Return what a model predicts at the kept inputs."""
    ask = "predict_proba" if hasattr(model, "classes_") else "predict"
    return getattr(model, ask)(np.array(NEW)).tolist()


def table(folder: Path) -> Any:
    """Write a model of a table, with a category; return its predictions."""
    X, f = data()
    columns = {"a": X[:, 0], "c": np.where(X[:, 1] > 0, "u", "v"), "t": np.where(f > 0, "y", "n")}
    given = Table(pl.DataFrame(columns), "made", "t")
    fitted, _ = fit_model(prepared := prepare(given), Settings("rbf"))
    save_model(folder / "table.model", prepared, fitted, Settings("rbf"))
    return fitted.predict_proba(prepared.X).tolist()


def main() -> None:
    """Write all samples of this version."""
    folder = HERE / __version__
    folder.mkdir(exist_ok=True)
    answers = {"table": table(folder)}
    for name, model in models().items():
        place = folder / f"{name.replace(' ', '_')}.model"
        (model.save if hasattr(model, "partial_fit") else lambda to, m=model: save(m, to))(place)
        place.with_suffix(".pickle").write_bytes(pickle.dumps(model, protocol=5))
        answers[name] = answer(model)
    text = json.dumps(answers, indent=1)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
