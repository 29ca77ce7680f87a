"""What has to hold for an inference method before an estimator can trust it."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from cavity.arrays import Array, copy, namespace, same_kind, to_numpy
from cavity.inference import Fit, Method, Problem
from cavity.likelihoods import Likelihood
from cavity.priors import DensePrior
from cavity.sites import Rows
from cavity.testing.tools import slope

# Iterated this far, two ways to the same solution differ by less than the checks allow.
_TIGHT = 1e-11
_SAME = 1e-8
_STEP = 1e-3


def check_inference(
    method: Method, likelihood: Likelihood, K: Array, y: Array, weight: Array | None = None
) -> None:
    """Check an inference method on a small problem with a log-concave likelihood.

    The fit converges to a finite evidence and a proper posterior; predictions at the training rows
    are its marginals; leave-one-out probabilities are probabilities; an example that counts twice
    is two equal examples; the gradient is that of the evidence; a fit that starts from its own
    result stays there; results have the same array type as the arguments, which are not modified.

    Parameters
    ----------
    method : Method
    likelihood : Likelihood
        One that offers what the method needs.
    K : array of shape (n, n)
        Covariance of the latent values, positive definite.
    y : array of shape (n,)
    weight : array of shape (n,), optional
        How often each example counts, in whole numbers; ones, twos and threes if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.inference import EP
    >>> from cavity.likelihoods import Probit
    >>> from cavity.testing import check_inference
    >>> check_inference(EP(), Probit(), np.eye(3) + 0.5, np.array([1.0, -1.0, 1.0]))
    """
    assert method.serves(likelihood), f"{likelihood} does not offer {method.needs!r}"
    counts = _counts(weight, int(y.shape[0]))
    method = replace(method, tol=min(method.tol, _TIGHT))
    before = copy(K)
    once = Problem.of(likelihood, DensePrior(K), y)
    _check_fit(method.fit(once))
    _check_copies(method, once, counts)
    assert_array_equal(to_numpy(K), to_numpy(before), err_msg="the fit modified K")


def _counts(weight: Array | None, n: int) -> np.ndarray[Any, Any]:
    return 1 + np.arange(n) % 3 if weight is None else to_numpy(weight).astype(int)


def _check_fit(fit: Fit) -> None:
    assert fit.report.converged, f"the fit did not converge: {fit.report.message}"
    assert np.isfinite(fit.log_evidence), f"the evidence is {fit.log_evidence}"
    _check_kind(fit)
    _check_posterior(fit)
    _check_leave_one_out(fit)
    _check_warm_start(fit)
    if fit.method.has_gradient:
        _check_gradient(fit)


def _check_kind(fit: Fit) -> None:
    K = fit.problem.prior.K
    outputs = {
        "alpha": fit.posterior.alpha,
        "mean": fit.posterior.local().q.mean,
        "variance": fit.posterior.local().q.variance,
        "loo_log_prob": fit.loo_log_prob(),
    }
    for name, output in outputs.items():
        assert type(output) is type(K), f"{name} is a {type(output)}, K a {type(K)}"
        assert output.dtype == K.dtype, f"{name} has type {output.dtype}, K {K.dtype}"


def _check_posterior(fit: Fit) -> None:
    """Compare mean and variance with the prior and with predictions at the training rows."""
    K = fit.problem.prior.K
    prior_variance = to_numpy(fit.problem.prior.diag)
    mean, variance = (to_numpy(moment) for moment in fit.posterior.local().q)
    alpha = to_numpy(fit.posterior.alpha)
    # What rounding may do to the sum over j of K_ij α_j, and a good deal more.
    reach = np.max(np.abs(to_numpy(K)) @ np.abs(alpha))
    assert_allclose(mean, to_numpy(K) @ alpha, rtol=_SAME, atol=_SAME * reach, err_msg="mean ≠ K α")
    assert np.all(variance > 0.0), "a posterior variance is not positive"
    assert np.all(variance <= prior_variance * (1.0 + _SAME)), "an example widened its marginal"
    predicted = fit.posterior.predict(K, fit.problem.prior.diag)
    message = "predictions at the training rows are not the marginals"
    for got, truth, scale in zip(predicted, (mean, variance), (reach, prior_variance), strict=True):
        error = np.abs(to_numpy(got) - truth)
        assert np.all(error <= _SAME * scale), f"{message}: off by {error.max():.1e}"


def _check_leave_one_out(fit: Fit) -> None:
    log_p = to_numpy(fit.loo_log_prob())
    assert np.all(np.isfinite(log_p)), "a leave-one-out log probability is not finite"
    if fit.problem.likelihood.support in {"signs", "counts"}:
        assert np.all(log_p <= 0.0), "a leave-one-out probability exceeds one"


def _check_warm_start(fit: Fit) -> None:
    again = fit.method.fit(fit.problem, fit.start)
    assert again.report.converged, f"the fit did not converge from its own result: {again.report}"
    _compare("the evidence from a warm start", again.log_evidence, fit.log_evidence)


def _compare(what: str, got: Any, truth: Any) -> None:
    got, truth = to_numpy(got), to_numpy(truth)
    atol = _SAME * np.max(np.abs(truth))
    assert_allclose(got, truth, rtol=_SAME, atol=atol, err_msg=f"{what} differs")


def _check_gradient(fit: Fit) -> None:
    """Compare grad_K with differences along K ← (I + hA) K (I + hA)ᵀ, positive for every h."""
    K, M = to_numpy(fit.problem.prior.K), to_numpy(fit.grad_K())
    assert_allclose(M, M.T, rtol=0.0, atol=_SAME * np.abs(M).max(), err_msg="grad_K: not symmetric")
    A = np.random.default_rng(0).standard_normal(K.shape) / len(K)

    def value(h: float) -> float:
        T = np.eye(len(K)) + h * A
        moved = DensePrior(same_kind(T @ K @ T.T, fit.problem.prior.K))
        return fit.method.fit(fit.problem._replace(prior=moved), fit.start).log_evidence

    terms = M * (A @ K + K @ A.T)
    # Differences of fourth order: 1e-12 of the fifth derivative and 1e-12 of rounding, over h.
    tolerance = 1e-6 * np.abs(terms).sum()
    error = abs(terms.sum() - slope(value, _STEP))
    assert error <= tolerance, f"grad_K is not the slope: off by {error:.1e}"


def _check_copies(method: Method, once: Problem, counts: np.ndarray[Any, Any]) -> None:
    """Compare examples that count several times with rows that are repeated."""
    y = once.rows.y
    weighted = once._replace(rows=Rows(y, same_kind(counts, y)))
    rows = np.repeat(np.arange(len(counts)), counts)
    try:
        few = method.fit(weighted)
    except ValueError:
        if once.likelihood.noise_variance != 0.0:
            raise
        return  # without noise of their own, equal examples may be refused
    many = method.fit(_repeated(once, rows))
    assert few.report.converged, f"the fit with copies did not converge: {few.report.message}"
    _compare("with copies, the evidence", few.log_evidence, many.log_evidence)
    for k, name in enumerate(("mean", "variance")):
        got = to_numpy(few.posterior.local().q[k])[rows]
        _compare(f"with copies, the {name}", got, many.posterior.local().q[k])
    _compare_leave_one_out(few, many, rows)
    if method.has_gradient:
        _compare("with copies, grad_K", few.grad_K(), _gathered(many.grad_K(), rows))


def _compare_leave_one_out(few: Fit, many: Fit, rows: np.ndarray[Any, Any]) -> None:
    got, truth = to_numpy(few.loo_log_prob())[rows], to_numpy(many.loo_log_prob())
    # A method that learns the copies one after the other has a separate site for each.
    spread = np.where(rows[:, None] == rows, np.abs(truth[:, None] - truth), 0.0)
    if spread.max() <= _SAME:
        _compare("with copies, loo", got, truth)


def _repeated(once: Problem, rows: np.ndarray[Any, Any]) -> Problem:
    likelihood, prior, (y, *_) = once
    xp = namespace(y)
    index = xp.asarray(rows)
    K = xp.take(xp.take(prior.K, index, axis=0), index, axis=1)
    labels = xp.take(y, index, axis=0)
    return Problem.of(likelihood, DensePrior(K), labels)


def _gathered(M: Array, rows: np.ndarray[Any, Any]) -> Array:
    """Add up the entries of a matrix that belong to copies of the same two examples."""
    P = (rows[:, None] == np.unique(rows)).astype(float)
    return P.T @ to_numpy(M) @ P
