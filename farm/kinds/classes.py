"""Two classes: every method with every likelihood of labels."""

from typing import Any

import numpy as np

from cavity import GaussianProcessClassifier
from farm import peers
from farm.draw import Spec, inputs_of, kernel_of, labels_of, weights_of
from farm.invariances import Case
from farm.kinds import common
from farm.ledger import Ledger
from farm.truth import EP_ERROR, ep, orthant

_NEW = 5
_BOUNDS = ("variational", "mixture", "ensemble")
_FEW = 3
"""Rows for which the evidence of a probit is known in closed form."""


def check(ledger: Ledger, spec: Spec) -> None:
    """Fit all pairs of a method and a likelihood to one table."""
    X = inputs_of(spec)
    y = labels_of(spec, X)
    weight = weights_of(spec, len(y))
    if weight is not None:
        # No class may vanish with its weights.
        weight[np.unique(y, return_index=True)[1]] = 1.0
    plain = Case(kernel_of(spec), X, y, weight, inputs_of(spec, _NEW, 7))
    noisy = plain.with_noise(spec)
    for method, likelihood in common.pairs("signs"):
        has_noise = common.needs_noise(method, likelihood, spec)
        _one(ledger, spec, method, likelihood, noisy if has_noise else plain, has_noise)
    peers.classify(ledger, plain.kernel, X, y, plain.X_new)


def _one(ledger: Ledger, spec: Spec, method: str, likelihood: str, case: Case, noisy: bool) -> None:
    def make(kernel: Any, **more: Any) -> GaussianProcessClassifier:
        options = {"inference": method, "likelihood": likelihood, "optimizer": None} | more
        return GaussianProcessClassifier(kernel, **options)

    def tight(kernel: Any) -> GaussianProcessClassifier:
        return make(kernel, tol=common.TIGHT, max_iter_predict=500)

    of = f"{method} {likelihood}"
    model = common.fit(ledger, of, make(case.kernel), case)
    if model is None:
        return
    answers(ledger, of, model, case)
    common.same_after_a_change(
        ledger, spec, of, tight, case, noisy, lambda fitted, new: fitted.predict_proba(new)
    )
    if likelihood == "probit":
        _bounded(ledger, of, tight(case.kernel), case, method in _BOUNDS)


def answers(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Probabilities are probabilities, in all rows, and the prediction is the most probable."""
    # Without a solution there may be no answer; and that is said.
    hopeless = not common.settled(model)
    for name, ask in (
        ("predict_proba", lambda: model.predict_proba(np.vstack([case.X, case.X_new]))),
        ("loo_proba_", lambda: model.loo_proba_),
    ):
        proba, _ = ledger.run(of, ask, may_refuse=hopeless)
        if proba is None or not ledger.finite(of, name, proba):
            continue
        ledger.require(np.all((proba >= 0.0) & (proba <= 1.0)), "within [0, 1]", of, name)
        ledger.near("sums to one", of, proba.sum(axis=1), np.ones(len(proba)), 1e-9, 0.0)
    labels, _ = ledger.run(of, lambda: model.predict(case.X_new), may_refuse=hopeless)
    proba, _ = ledger.run(of, lambda: model.predict_proba(case.X_new), may_refuse=hopeless)
    if labels is None or proba is None:
        return
    of_label = proba[np.arange(len(labels)), np.searchsorted(model.classes_, labels)]
    ledger.require(np.all(of_label >= proba.max(axis=1) - 1e-9), "most probable", of, proba)
    if hopeless:
        return
    value = model.log_marginal_likelihood_value_
    # Of labels it is a probability; EP and Laplace may miss it by a little.
    ledger.require(value <= 1e-3 * len(case.y), "evidence above one", of, value)


def _bounded(ledger: Ledger, of: str, model: Any, case: Case, is_bound: bool) -> None:
    """On three rows of a probit a bound lies below the truth, and EP is EP in plain loops."""
    X, y = case.X[:_FEW], case.y[:_FEW]
    if len(np.unique(y)) < 2:
        return
    found, _ = ledger.run(of, lambda: model.fit(X, y))
    if found is None or not common.settled(found):
        return
    signs = np.where(y == y.max(), 1.0, -1.0)
    truth, value = orthant(case.kernel(X), signs), found.log_marginal_likelihood_value_
    ledger.counts["truths"] += 1
    if is_bound:
        ledger.require(value <= truth + 1e-7, "bound above the truth", of, f"{value}, {truth}")
    elif of.startswith("ep"):
        ledger.near("EP beside the truth", of, value, truth, EP_ERROR, 0.0)
        plain = ep(case.kernel(X), signs)
        if plain is not None:
            ledger.near("EP beside plain loops", of, value, plain, 1e-5, 1e-6)
