"""Streams: constant memory, any size of batches, and files in between."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from cavity import OnlineGaussianProcessClassifier, OnlineGaussianProcessRegressor
from farm.draw import Spec, inputs_of, kernel_of, labels_of, rng_of, targets_of, weights_of
from farm.ledger import Ledger

_NEW = 5


def check(ledger: Ledger, spec: Spec) -> None:
    """Learn a stream of labels and one of numbers, in pieces and with a file in between."""
    rng, X = rng_of(spec, 10), inputs_of(spec)
    shape = {
        "budget": int(rng.integers(1, 20)),
        "forget": float(rng.choice([1.0, 1.0, 0.99])),
        "warmup": int(rng.choice([0, 0, len(X) // 3])),
    }
    liks = str(rng.choice(["probit", "logit"])), "gaussian"
    classes = {"classes": np.arange(3 if rng.random() < 0.3 else 2)}
    labels = labels_of(spec, X, len(classes["classes"]))
    online = OnlineGaussianProcessClassifier(kernel_of(spec), likelihood=liks[0], **shape)
    _stream(ledger, spec, f"classes {liks[0]}", online, X, labels, classes)
    numbers = OnlineGaussianProcessRegressor(kernel_of(spec), **shape)
    _stream(ledger, spec, "targets", numbers, X, targets_of(spec, X), {})


def _stream(
    ledger: Ledger, spec: Spec, of: str, model: Any, X: Any, y: Any, more: dict[str, Any]
) -> None:
    weight, cut = weights_of(spec, len(y)), max(1, len(y) // 2)
    if weight is not None and not (np.any(weight[:cut]) and np.any(weight[cut:])):
        # A batch of rows without weight is refused.
        weight = None
    twin = type(model)(**model.get_params(deep=False))

    def feed(learner: Any, part: slice) -> Any:
        own = None if weight is None else weight[part]
        return learner.partial_fit(X[part], y[part], sample_weight=own, **more)

    whole, _ = ledger.run(of, lambda: feed(model, slice(None)))
    ledger.counts["fits"] += 1
    half, _ = ledger.run(of, lambda: feed(twin, slice(0, cut)))
    if whole is None or half is None:
        return
    # A stream is learned in one pass: there is nothing to converge.
    ledger.counts["converged"] += 1
    again = _through_a_file(ledger, of, half)
    rest, _ = ledger.run(of, lambda: feed(again, slice(cut, None)), may_refuse=False)
    if rest is None:
        return
    new = inputs_of(spec, _NEW, 7)
    ask = "predict_proba" if "classes" in more else "predict"
    found = [ledger.run(of, lambda m=m: getattr(m, ask)(new)).value for m in (whole, rest)]
    if any(one is None or not ledger.finite(of, ask, one) for one in found):
        return
    ledger.counts["compared"] += 1
    size = 1.0 if "classes" in more else 1.0 + float(np.max(np.abs(y)))
    ledger.near("pieces and files", of, found[1], found[0], 1e-6 * size, 0.0)
    rows = len(y) if weight is None else np.count_nonzero(weight)
    ledger.require(whole.n_seen_ == rows, "rows are lost", of, f"{whole.n_seen_} of {rows}")
    points = whole.basis_points_
    for basis in points if isinstance(points, list) else [points]:
        ledger.require(len(basis) <= whole.budget, "more points than the budget", of, len(basis))
    if ask == "predict_proba":
        ledger.require(np.all((found[0] >= 0.0) & (found[0] <= 1.0)), "within [0, 1]", of)
        ledger.near("sums to one", of, found[0].sum(axis=1), np.ones(_NEW), 1e-9, 0.0)


def _through_a_file(ledger: Ledger, of: str, model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        ledger.run(of, lambda: model.save(path), may_refuse=False)
        found, _ = ledger.run(of, lambda: type(model).load(path), may_refuse=False)
    return model if found is None else found
