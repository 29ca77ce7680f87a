"""Write a file and a pickle of every kind: ``python -m tests.samples.write``."""

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tests.samples import HERE, KERNEL, answer, columns, data, place, targets

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


def table(path: Path, target: Any) -> Any:
    """Write a model of a table, with a category; return its predictions."""
    given = Table(pl.DataFrame(columns(target)), "made", "t")
    fitted, _ = fit_model(prepared := prepare(given), Settings("rbf"))
    save_model(path, prepared, fitted, Settings("rbf"))
    if prepared.task == "regression":
        return np.transpose(fitted.predict(prepared.X, return_std=True)).tolist()
    return fitted.predict_proba(prepared.X).tolist()


def main() -> None:
    """Write all samples of this version."""
    folder = HERE / __version__
    folder.mkdir(exist_ok=True)
    answers = {}
    for kind, target in targets(data()[1]).items():
        answers[f"table{kind}"] = table(place(folder, f"table{kind}"), target)
    for name, model in models().items():
        to = place(folder, name)
        (model.save if hasattr(model, "partial_fit") else partial(save, model))(to)
        place(folder, name, "pickle").write_bytes(pickle.dumps(model, protocol=5))
        answers[name] = answer(model)
    text = json.dumps(answers, indent=1)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
