"""Inducing points and blocks: all points are the dense model, and blocks are the whole table."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.inference import METHODS
from cavity.rows import MemoryBlocks
from cavity.sites import Rows
from farm.draw import Spec, inputs_of, kernel_of, labels_of, rng_of
from farm.invariances import Case
from farm.kinds import classes, common, targets
from farm.ledger import Ledger

_NEW, _PAIRS = 5, 4
"""New rows, and pairs of a method and a likelihood out of all of them, for each problem."""


def check(ledger: Ledger, spec: Spec) -> None:
    """Fit few points, all points, and blocks of the table."""
    # Points closer than rounding tells apart are one point.
    spec = spec | {"kernel": "matern12" if spec["kernel"] == "linear" else spec["kernel"]}
    every = [pair for support in _TABLES for pair in _pairs(support)]
    for k in rng_of(spec, 15).permutation(len(every))[:_PAIRS]:
        support, name, likelihood = every[k]
        case, model = _TABLES[support](spec), METHODS[name](tol=common.TIGHT)
        case = case._replace(weight=None)
        if common.needs_noise(name, likelihood, spec):
            case = case.with_noise(spec)
        options = {"inference": model, "likelihood": likelihood, "optimizer": None}
        kind = GaussianProcessRegressor
        if support in ("signs", "codes"):
            kind = GaussianProcessClassifier
        elif likelihood == "gaussian":
            options |= {"alpha": 0.1}
        _one(ledger, spec, f"{name} {likelihood}", kind(case.kernel, **options), case)


def _pairs(support: str) -> list[tuple[str, str, str]]:
    """Return the pairs for these targets whose rows may come in blocks."""
    return [(support, m, lik) for m, lik in common.pairs(support) if not METHODS[m]().dense_only]


def _labels(spec: Spec, classes: int) -> Case:
    X = inputs_of(spec)
    return Case(kernel_of(spec), X, labels_of(spec, X, classes), None, inputs_of(spec, _NEW, 7))


_TABLES: dict[str, Callable[[Spec], Case]] = {
    "signs": lambda spec: _labels(spec, 2),
    "codes": lambda spec: _labels(spec, 3),
    **{support: partial(targets.table_of, support) for support in targets.SUPPORTS},
}
"""A table for each kind of targets."""


def _one(ledger: Ledger, spec: Spec, of: str, model: Any, case: Case) -> None:
    few = int(rng_of(spec, 6).integers(1, len(case.y)))
    found = common.fit(ledger, f"{of} few", _with(model, n_inducing=few, random_state=0), case)
    if found is not None:
        check_answers = classes.answers if hasattr(found, "classes_") else targets.answers
        check_answers(ledger, f"{of} few", found, case)
        _blocks(ledger, spec, of, found, case)
    places = np.unique(case.X, axis=0)
    whole = common.fit(ledger, f"{of} all", _with(model, inducing_points=places), case)
    dense = common.fit(ledger, f"{of} dense", _with(model), case)
    _same(ledger, "m = n equals dense", of, whole, dense, case)


def _with(model: Any, **more: Any) -> Any:
    return type(model)(**model.get_params(deep=False) | more)


def _blocks(ledger: Ledger, spec: Spec, of: str, model: Any, case: Case) -> None:
    """Fit the same points to the table in blocks of some size.

    Equal examples are one in memory, which shares what the points leave of its variance; in blocks
    nobody knows of them. A table that has some is compared with itself as one block.
    """
    size = int(rng_of(spec, 8).integers(1, len(case.y) + 1))
    y = case.y.astype(float) if hasattr(model, "classes_") else case.y
    again = _with(model, n_inducing=None, inducing_points=model.inducing_points_)

    def in_blocks(size: int) -> Any:
        table = MemoryBlocks(Rows(y, np.ones(len(y)), case.X), size)
        return ledger.run(f"{of} blocks", lambda: _with(again).fit(table)).value

    has_copies = len(np.unique(np.column_stack([case.X, y]), axis=0)) < len(y)
    one = in_blocks(len(y)) if has_copies else model
    _same(ledger, "blocks equal the table", of, in_blocks(size), one, case)


def _same(ledger: Ledger, rule: str, of: str, one: Any, other: Any, case: Case) -> None:
    if one is None or other is None or not (common.settled(one) and common.settled(other)):
        return
    ledger.counts["compared"] += 1
    ask = "predict_proba" if hasattr(one, "classes_") else "predict"
    found, truth = (getattr(model, ask)(case.X_new) for model in (one, other))
    size = 1.0 if ask == "predict_proba" else 1.0 + np.max(np.abs(case.y))
    ledger.near(rule, of, found, truth, 1e-3 * size, 1e-3)
