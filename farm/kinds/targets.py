"""Real targets, counts, amounts and limits: every method with every likelihood of numbers."""

from typing import Any

import numpy as np

from cavity import GaussianProcessRegressor
from cavity.inference import METHODS
from farm import peers
from farm.draw import Spec, inputs_of, kernel_of, rng_of, targets_of, weights_of
from farm.invariances import Case
from farm.kinds import common
from farm.ledger import Ledger

SUPPORTS = ("reals", "counts", "positive")
_NEW = 5
_COMPARED = 0.1
"""Share of the fits that are compared with one of a changed problem: it takes two more."""


def check(ledger: Ledger, spec: Spec) -> None:
    """Fit all pairs of a method and a likelihood to one table."""
    for support in SUPPORTS:
        table = table_of(support, spec)
        for method, likelihood in common.pairs(support):
            _one(ledger, _mild(support, spec), method, likelihood, table)
    reals = table_of("reals", spec)
    alpha = 10.0 ** (2.0 * spec["noise"])
    peers.regress(ledger, reals.kernel, alpha, reals.X, reals.y, reals.X_new)


def table_of(support: str, spec: Spec) -> Case:
    """Return the table for likelihoods of such targets."""
    X = inputs_of(spec)
    real = targets_of(spec, X)
    y = {
        "reals": lambda: real,
        "counts": lambda: rng_of(spec, 4).poisson(np.exp(np.clip(real, -3.0, 6.0))).astype(float),
        "positive": lambda: np.exp(np.clip(real, -20.0, 20.0)),
    }[support]()
    kernel = kernel_of(_mild(support, spec))
    return Case(kernel, X, y, weights_of(spec, len(X)), inputs_of(spec, _NEW, 7))


def _mild(support: str, spec: Spec) -> Spec:
    """Return the problem with a prior under which e^f is a count that can be.

    A latent value of many hundreds is no legal problem.
    """
    mild = spec | {"amplitude": min(spec["amplitude"], 1.0)}
    return spec if support == "reals" else mild


def _one(ledger: Ledger, spec: Spec, method: str, likelihood: str, case: Case) -> None:
    noisy = common.needs_noise(method, likelihood, spec) or likelihood == "censored"
    if noisy:
        case = case.with_noise(spec)

    def make(kernel: Any, **more: Any) -> GaussianProcessRegressor:
        options = {"inference": method, "likelihood": likelihood, "optimizer": None}
        own = {"alpha": 10.0 ** (2.0 * spec["noise"])} if likelihood == "gaussian" else {}
        return GaussianProcessRegressor(kernel, **options | own | more)

    of = f"{method} {likelihood}"
    model = common.fit(ledger, of, make(case.kernel), case)
    if model is None:
        return
    answers(ledger, of, model, case)
    if rng_of(spec, 14 + common.hash_of(of)).random() < _COMPARED:
        tight = METHODS[method](tol=common.TIGHT, max_iter=500)
        common.same_after_a_change(
            ledger,
            spec,
            of,
            lambda kernel: make(kernel, inference=tight),
            case,
            noisy,
            lambda fitted, new: fitted.predict(new),
        )


def answers(ledger: Ledger, of: str, model: Any, case: Case) -> None:
    """Means and deviations are numbers, intervals are in order, and a row stands for itself."""
    # Without an answer there may be none; and that is said.
    hopeless = not common.settled(model)
    found, warned = ledger.run(
        of, lambda: model.predict(case.X_new, return_std=True), may_refuse=hopeless
    )
    if found is None or (warned and not np.any(np.isnan(found))):
        # Means beyond the largest float are infinite, and it says so.
        return
    ledger.finite(of, "mean", found[0])
    if ledger.finite(of, "std", found[1]):
        ledger.require(np.all(found[1] >= 0.0), "deviation below zero", of, found[1])
    alone, _ = ledger.run(of, lambda: model.predict(case.X_new[:1]), may_refuse=False)
    if alone is not None and np.all(np.isfinite(found[0])):
        size = np.max(np.abs(found[0])) + np.max(np.abs(case.y))
        # Without noise the weights of the rows are enormous, and their sum is rounded: beyond a
        # thousandth the fit has said so.
        ledger.near("a row alone", of, alone[0], found[0][0], 1e-3 * size, 0.0)
    if case.weight is not None and np.any(case.weight == 0.0):
        # Their targets are not kept.
        return
    loo, _ = ledger.run(of, lambda: model.loo_log_prob_, may_refuse=False)
    if loo is not None:
        ledger.finite(of, "loo_log_prob_", loo)
