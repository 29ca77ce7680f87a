"""Write what version 0.1.0 could: ``python -m tests.samples.write_first`` with its sources.

It could write models of tables, checkpoints of streams, and pickles.
"""

import json
import pickle
from typing import Any

import numpy as np
import polars as pl
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.samples import HERE, KERNEL, answer, columns, data, place, targets

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    __version__,
)
from cavity.likelihoods import Step


def batch() -> dict[str, Any]:
    """Return fitted estimators that only a pickle can keep."""
    X, f = data()
    labels, three = np.where(f > 0.0, "yes", "no"), np.digitize(f, [-0.5, 0.5])
    classifier, regressor = GaussianProcessClassifier, GaussianProcessRegressor
    return {
        "labels": classifier(KERNEL).fit(X, labels),
        "laplace": classifier(KERNEL, optimizer=None, inference="laplace", likelihood="logit").fit(
            X, three
        ),
        "pairs": classifier(RBF(1.0), optimizer=None, multi_class="one_vs_one").fit(X, three),
        "step": classifier(KERNEL, optimizer=None, likelihood=Step()).fit(X, labels),
        "numbers": regressor(KERNEL, alpha=0.01, normalize_y=True).fit(X, f),
        "targets": regressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, np.column_stack([f, -f])),
        "unfitted": classifier(KERNEL),
        "pipeline": make_pipeline(StandardScaler(), classifier(KERNEL)).fit(X, labels),
        "covariances": classifier("precomputed", optimizer=None).fit(RBF(1.0)(X), labels),
    }


def streams() -> dict[str, Any]:
    """Return online estimators, one of them in its warm-up."""
    X, f = data()
    labels, three = np.where(f > 0.0, "yes", "no"), np.digitize(f, [-0.5, 0.5])
    classifier, regressor = OnlineGaussianProcessClassifier, OnlineGaussianProcessRegressor
    return {
        "stream of labels": classifier(RBF(1.0), budget=5).fit(X, labels),
        "stream of classes": classifier(RBF(1.0), budget=5, tol=1e-4, forget=0.99).fit(X, three),
        "stream of numbers": regressor(RBF(1.0), budget=5, warmup=8).fit(X, f),
        "stream waiting": classifier(RBF(1.0), budget=5, warmup=100).partial_fit(
            X, labels, classes=["no", "yes"]
        ),
    }


def main() -> None:
    """Write all samples of version 0.1.0."""
    # Rooms that only that version has.
    from cavity.report.model import Settings, fit_model
    from cavity.report.modelfile import load_model, save_model
    from cavity.report.prepare import prepare
    from cavity.report.table import Table

    folder = HERE / __version__
    folder.mkdir(exist_ok=True)
    answers = {}
    for kind, target in targets(data()[1]).items():
        given = Table(pl.DataFrame(columns(target)), "made", "t")
        path, prepared = place(folder, f"table{kind}"), prepare(given)
        fitted, _ = fit_model(prepared, Settings("rbf"))
        save_model(path, prepared, fitted, Settings("rbf"))
        found = load_model(path).predict(given)
        answers[f"table{kind}"] = found.select(pl.col(pl.Float64)).rows()
    for name, model in (batch() | streams()).items():
        if hasattr(model, "partial_fit"):
            model.save(place(folder, name))
        place(folder, name, "pickle").write_bytes(pickle.dumps(model, protocol=5))
        if name not in ("unfitted", "covariances"):
            answers[name] = answer(model)
    answers["kernel of labels"] = list(batch()["labels"].kernel_.theta)
    text = json.dumps(answers, indent=1)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
