"""What all kinds of fits have to keep."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cavity.estimators.fitted import fitted_model
from cavity.inference import METHODS
from cavity.inference.self_consistent import equations_of
from cavity.likelihoods import REGISTRY
from farm.draw import Spec, rng_of
from farm.invariances import CHANGES, Case, changed
from farm.ledger import Ledger

__all__ = [
    "TIGHT",
    "fit",
    "needs_noise",
    "pairs",
    "same_after_a_change",
    "settled",
    "unchanged_inputs",
]

TIGHT = 1e-9
"""Tolerance of fits that are compared with each other."""
_ORDERED = ("sequential",)
"""Methods whose answer depends on the order of the rows."""
_STILL = 0.02
"""Deviations by which another round may move what has converged: rounds in which all rows move at
once may widen a distance a hundredfold. Of 1,958 fits the one that moved most did so by .006."""


def pairs(*supports: str) -> list[tuple[str, str]]:
    """Return each method with each likelihood of these targets that it serves."""
    models = {name: made() for name, made in REGISTRY.items()}
    liks = [name for name, model in models.items() if model.support in supports]
    return [(m, lik) for m in METHODS for lik in liks if METHODS[m].serves(models[lik])]


def needs_noise(method: str, likelihood: str, spec: Spec) -> bool:
    """Whether the problem has no answer unless the kernel's matrix can be inverted."""
    return likelihood == "step" or method == "ensemble" or spec["inputs"] == "one place"


def fit(ledger: Ledger, of: str, model: Any, case: Case) -> Any:
    """Fit; return the model, or None if refused or said to be rounded; count how it ended."""
    before = case.X.copy(), case.y.copy()
    found, warned = ledger.run(of, lambda: model.fit(case.X, case.y, case.weight))
    unchanged_inputs(ledger, of, before, (case.X, case.y))
    if found is None:
        return None
    fits = fitted_model(found).fits
    ledger.ended(of, all(one.report.converged for one in fits), warned)
    value = found.log_marginal_likelihood_value_
    ledger.finite(of, "evidence", value)
    if is_rounded(warned):
        return None
    for one in fits:
        _still(ledger, of, one)
    return found


def is_rounded(warned: list[str]) -> bool:
    """Whether there is too little noise for the digits of a float, and the fit has said so."""
    return any(" rounded " in message for message in warned)


def _still(ledger: Ledger, of: str, fit: Any) -> None:
    """Require that another round of the method's own equations leaves what has converged."""
    prior, method = fit.problem.prior, fit.method
    # Ensembles respond with variances that their posterior does not have.
    if not fit.report.converged or not prior.dense or method.name in (*_ORDERED, "ensemble"):
        return
    with np.errstate(all="ignore"):
        _, likelihood, rows, _ = equations_of(method, fit.problem)
        here = method.view(fit.posterior, rows, fit.posterior.sites)
        lam = method.variance(here, rows.weight)
        sites = method.respond(likelihood, rows, here.q.mean, here.alpha, lam).sites
        there = method.view(prior.condition(sites), rows, sites)
        beyond = np.abs(there.q.mean - here.q.mean) - 10.0 * _blur(fit)
        moved = np.maximum(beyond, 0.0) / np.sqrt(here.q.variance)
        widened = np.abs(np.log(there.q.variance / here.q.variance))
    off = float(np.max([moved, widened]))
    # Without noise the matrix has no digit left, and the fit has said so or will not predict.
    allowed = _STILL + 10.0 * rounding(fit)
    ledger.counts["rounds"] += 1
    ledger.require(off <= allowed, "converged, but moves on", of, f"{off}: {fit.report.message}")


def rounding(fit: Any) -> float:
    """Return the relative error with which the equations of a fit are solved.

    They have the matrix I + √τ K √τ; of its condition the trace is a bound. Ensembles invert K.
    """
    if not fit.problem.prior.dense:
        return 0.0
    size = np.sum(fit.posterior.sites.tau * fit.problem.prior.diag)
    own = fit.method.rounding(fit)
    return float(np.finfo(float).eps * (1.0 + size)) + own


def _blur(fit: Any) -> float:
    """Return the error by rounding of means K α: weights that are far larger cancel in them."""
    deviation = np.sqrt(fit.problem.prior.diag)
    weights = np.linalg.norm(deviation * fit.posterior.alpha)
    return float(np.finfo(float).eps * np.max(deviation) * weights)


def unchanged_inputs(ledger: Ledger, of: str, before: Any, after: Any) -> None:
    """Require that what the caller owns stays as it was."""
    same = all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    ledger.require(same, "the caller's arrays change", of)


def settled(model: Any) -> bool:
    """Whether all inferences of a fit converged."""
    return all(one.report.converged for one in fitted_model(model).fits)


def same_after_a_change(
    ledger: Ledger,
    spec: Spec,
    of: str,
    make: Callable[[Any], Any],
    case: Case,
    noisy: bool,
    answer: Callable[[Any, Any], Any],
) -> None:
    """Fit a problem and a changed one to convergence: evidence and answers must be the same."""
    ordered = of.startswith(_ORDERED)
    names = [name for name in CHANGES if not (ordered and name in ("order of rows",))]
    turns = [str(name) for name in rng_of(spec, hash_of(of)).permutation(names)]
    name, other = changed(spec, case, noisy, turns)
    both, digits = [], 0.0
    for one in (case, other):
        model, warned = ledger.run(
            of, lambda one=one: make(one.kernel).fit(one.X, one.y, one.weight)
        )
        if model is None or not settled(model) or is_rounded(warned):
            return
        both.append((model.log_marginal_likelihood_value_, answer(model, one.X_new)))
        digits = max(digits, *map(rounding, fitted_model(model).fits))
    if not all(np.all(np.isfinite(a)) for pair in both for a in pair):
        return
    (value, found), (other_value, other_found) = both
    ledger.counts["compared"] += 1
    size = 1.0 + abs(value)
    ledger.near(f"{name}: evidence", of, other_value / size, value / size, 1e-5 + digits, 0.0)
    size = 1.0 + float(np.max(np.abs(found)))
    ledger.near(f"{name}: predictions", of, other_found / size, found / size, 1e-4 + digits, 0.0)


def hash_of(text: str) -> int:
    """Return a number for a name, the same in every process."""
    return sum(ord(letter) * 31**k for k, letter in enumerate(text)) % 2**31
