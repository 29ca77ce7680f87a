"""Real targets, counts, amounts and limits: every method with every likelihood of numbers."""

from typing import Any

import numpy as np

from cavity import GaussianProcessRegressor
from farm import peers
from farm.draw import Spec, inputs_of, kernel_of, rng_of, targets_of, weights_of
from farm.invariances import Case
from farm.kinds import common
from farm.ledger import Ledger

_NEW = 5


def check(ledger: Ledger, spec: Spec) -> None:
    """Fit all pairs of a method and a likelihood to one table."""
    X = inputs_of(spec)
    real = targets_of(spec, X)
    case = Case(kernel_of(spec), X, real, weights_of(spec, len(X)), inputs_of(spec, _NEW, 7))
    # e^f must be a count that can be: a latent value of many hundreds is no legal problem.
    mild = spec | {"amplitude": min(spec["amplitude"], 1.0)}
    counts = rng_of(spec, 4).poisson(np.exp(np.clip(real, -3.0, 6.0))).astype(float)
    amounts = np.exp(np.clip(real, -20.0, 20.0))
    tables = {
        "reals": case,
        "counts": case._replace(kernel=kernel_of(mild), y=counts),
        "positive": case._replace(kernel=kernel_of(mild), y=amounts),
    }
    for support, table in tables.items():
        for method, likelihood in common.pairs(support):
            _one(ledger, spec if support == "reals" else mild, method, likelihood, table)
    alpha = 10.0 ** (2.0 * spec["noise"])
    peers.regress(ledger, case.kernel, alpha, X, real, case.X_new)


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
        # Without noise the weights of the rows are enormous, and their sum is rounded.
        ledger.near("a row alone", of, alone[0], found[0][0], 1e-4 * size, 0.0)
    if case.weight is not None and np.any(case.weight == 0.0):
        # Their targets are not kept.
        return
    loo, _ = ledger.run(of, lambda: model.loo_log_prob_, may_refuse=False)
    if loo is not None:
        ledger.finite(of, "loo_log_prob_", loo)
