"""What people act on: suspects, plans, suggestions, intervals, sets, quantiles, slopes, draws."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    cross_val_tuned,
    find_suspects,
    learning_curve,
    plan,
    suggest,
)
from farm.draw import Spec, inputs_of, kernel_of, labels_of, rng_of, with_noise
from farm.invariances import Case
from farm.kinds import common, targets
from farm.ledger import Ledger

_NEW, _LEVEL, _QUESTIONS = 5, 0.6, 3
"""New rows, the level of intervals and sets, and how many questions each model is asked."""
_SUPPORTS = {"reals": ("gaussian", "student_t"), "counts": ("poisson",), "positive": ("gamma",)}


def check(ledger: Ledger, spec: Spec) -> None:
    """Ask a classifier and a regressor of some likelihood."""
    rng = rng_of(spec, 16)
    X, classes = inputs_of(spec), int(rng.integers(2, 4))
    y, new = labels_of(spec, X, classes), inputs_of(spec, _NEW, 7)
    labels = Case(kernel_of(spec), X, y, None, new)
    classifier = GaussianProcessClassifier(labels.kernel, optimizer=None, random_state=0)
    _ask(ledger, spec, f"{classes} classes", classifier, labels, _OF_CLASSES)
    support = str(rng.choice(list(_SUPPORTS)))
    likelihood = str(rng.choice(_SUPPORTS[support]))
    numbers = targets.table_of(support, spec)._replace(weight=None)
    kernel = with_noise(spec, numbers.kernel) if support == "reals" else numbers.kernel
    noise = {"alpha": 0.01} if likelihood == "gaussian" else {}
    regressor = GaussianProcessRegressor(
        kernel, likelihood=likelihood, optimizer=None, random_state=0, **noise
    )
    _ask(ledger, spec, likelihood, regressor, numbers, _OF_NUMBERS)


Question = Callable[[Ledger, str, Any, Case], None]


def _ask(
    ledger: Ledger, spec: Spec, of: str, model: Any, case: Case, questions: dict[str, Question]
) -> None:
    found = common.fit(ledger, of, model, case)
    if found is None or not common.settled(found):
        return
    for name in rng_of(spec, 17).permutation(list(questions))[:_QUESTIONS]:
        ledger.counts["questions"] += 1
        ledger.guard(of, partial(questions[name], ledger, f"{name} {of}", found, case))


def _infinite(found: Any, warned: list[str]) -> bool:
    """Whether rates are beyond the largest float, and it has been said."""
    return bool(warned) and not np.any(np.isnan(found)) and not np.all(np.isfinite(found))


def _intervals(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Require the lower end below the upper one, and a higher level to be wider."""
    ends, warned = ledger.run(of, lambda: model.predict_interval(case.X_new, _LEVEL))
    if ends is None or _infinite(ends, warned) or not ledger.finite(of, "ends", ends):
        return
    ledger.require(np.all(ends[0] <= ends[1]), "lower end above the upper", of, ends)
    wider, _ = ledger.run(of, lambda: model.predict_interval(case.X_new, _LEVEL + 0.15))
    if wider is not None:
        slack = 1e-9 * (1.0 + np.abs(ends[1]) + np.abs(ends[0]))
        inside = (wider[0] <= ends[0] + slack) & (ends[1] <= wider[1] + slack)
        ledger.require(np.all(inside), "a higher level is narrower", of, (ends, wider))


def _quantiles(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Quantiles are numbers in the order of their levels."""
    levels = [0.05, 0.3, 0.5, 0.9]
    found, warned = ledger.run(of, lambda: model.predict_quantiles(case.X_new, levels))
    if found is None or _infinite(found, warned):
        return
    if ledger.finite(of, "quantiles", found):
        ledger.require(np.all(np.diff(found, axis=-1) >= 0.0), "order of quantiles", of, found)


def _gradients(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """There is a slope for each input, or a word about why not."""
    found, warned = ledger.run(of, lambda: model.predict_gradient(case.X_new))
    if found is not None and not warned:
        ledger.finite(of, "gradient", found)
        ledger.require(found.shape[-1] == case.X.shape[1], "a slope for each input", of)


def _draws(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Require as many draws as asked for, and the same ones again."""
    runs = [ledger.run(of, lambda: model.sample_y(case.X_new, 3, 0)) for _ in range(2)]
    both = [run.value for run in runs]
    if both[0] is None or _infinite(both[0], runs[0].warned):
        return
    if ledger.finite(of, "draws", both[0]):
        ledger.require(both[0].shape[:1] == (_NEW,), "shape of draws", of, both[0].shape)
        ledger.require(np.array_equal(*both), "the same seed draws otherwise", of)


def _sets(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Require sets to grow with the level, and none to be empty where that is excluded."""
    found, _ = ledger.run(of, lambda: model.predict_set(case.X_new, _LEVEL))
    whole, _ = ledger.run(of, lambda: model.predict_set(case.X_new, _LEVEL, allow_empty=False))
    larger, _ = ledger.run(of, lambda: model.predict_set(case.X_new, _LEVEL + 0.15))
    if found is None or whole is None:
        return
    ledger.require(np.all(whole.any(axis=1)), "an empty set", of)
    ledger.require(np.all(whole >= found), "a set without its classes", of)
    if larger is not None:
        ledger.require(np.all(larger >= found), "a higher level is narrower", of)


def _suspects(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Suspects are rows, each once, and the number of wrong labels lies in its interval."""
    found, _ = ledger.run(of, lambda: find_suspects(model, k=len(case.y)))
    if found is None:
        return
    rows = [one.index for one in found]
    ledger.require(len(set(rows)) == len(rows), "each row once", of, rows)
    ledger.require(set(rows) <= set(range(len(case.y))), "a row of the table", of, rows)
    if found.count is not None and found.count_interval is not None:
        low, high = found.count_interval
        inside = 0 <= low <= found.count <= high <= len(case.y)
        ledger.require(inside, "value outside of its interval", of, (found.count, low, high))


def _suggestions(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Suggestions are rows of the pool, each once, and what they say is not negative."""
    pool = np.vstack([case.X_new, case.X])
    found, _ = ledger.run(of, lambda: suggest(model, pool, k=3))
    if found is None:
        return
    rows = list(found.index)
    ledger.require(len(set(rows)) == len(rows) <= 3, "each row once", of, rows)
    ledger.require(all(0 <= row < len(pool) for row in rows), "a row of the pool", of, rows)
    ledger.finite(of, "worth of suggestions", [found.information, found.loss, found.loss_after])
    ledger.require(found.information >= -1e-9, "negative information", of, found.information)


def _plans(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Chances are chances, and a plan says the same as it prints."""
    curve, _ = ledger.run(of, lambda: learning_curve(model, case.X, case.y))
    if curve is None:
        return
    goal = 1.1 * float(curve.test_error[-1]) + 1e-6
    found, _ = ledger.run(of, lambda: plan(curve, error=goal))
    if found is None:
        return
    chances = [size.probability for size in found.outlook]
    ledger.require(all(0.0 <= p <= 1.0 for p in chances), "no probability", of, chances)
    text, _ = ledger.run(of, lambda: f"{found!r} {found.to_frame()}", may_refuse=False)
    ledger.require(text and "nan" not in text.lower(), "NaN in a plan", of, text)


def _refits(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Cross-validation gives a prediction for each row."""
    found, _ = ledger.run(of, lambda: cross_val_tuned(model, case.X, case.y, cv=3))
    if found is not None:
        ledger.finite(of, "cross-validation", found)


_OF_CLASSES: dict[str, Question] = {
    "sets": _sets,
    "suspects": _suspects,
    "suggestions": _suggestions,
    "plans": _plans,
    "gradients": _gradients,
    "refits": _refits,
}
_OF_NUMBERS: dict[str, Question] = {
    "intervals": _intervals,
    "quantiles": _quantiles,
    "suspects": _suspects,
    "suggestions": _suggestions,
    "plans": _plans,
    "gradients": _gradients,
    "draws": _draws,
    "refits": _refits,
}
