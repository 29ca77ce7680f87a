"""What has to hold for a prior before inference can use it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from cavity.arrays import Array
from cavity.inference import EP, Exact, Laplace, Method, Problem
from cavity.likelihoods import Gaussian, Likelihood, Probit
from cavity.priors import KernelRule
from cavity.rows import MemoryBlocks
from cavity.sites import Rows, Sites

_SAME, _STEP = 1e-8, 1e-3


def check_prior(couple: Callable[[KernelRule, Any], Any], rule: KernelRule, X: Array) -> None:
    """Check a prior on a small table, by inference in which it takes part.

    Without data its marginals are those of the kernel; under other sources its means are linear in
    them; the gradient of the evidence, with and without a source, is its slope; and, unless the
    prior is dense, rows in several blocks give what they give in one.

    Parameters
    ----------
    couple : callable
        Makes the prior from a kernel rule and the inputs.
    rule : KernelRule
    X : array of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.kernels import rule
    >>> from cavity.priors import InducingPrior
    >>> from cavity.testing import check_prior
    >>> X = np.linspace(0.0, 4.0, 9)[:, None]
    >>> check_prior(lambda rule, X: InducingPrior.of(rule, X[::2]), rule(2.0 * RBF(1.0)), X)
    """
    y = np.where(np.sin(3.0 * X[:, 0]) > 0.0, 1.0, -1.0)
    rows = Rows(y, 1.0 + np.arange(len(y)) % 2, X)
    _check_marginals(couple(rule, X), rule, rows)
    methods: list[tuple[Method, Likelihood]] = [
        (Exact(), Gaussian(0.3)),
        (EP(tol=1e-11), Probit()),
        (Laplace(tol=1e-11), Probit()),
    ]
    for method, likelihood in methods:
        _check_gradient(couple, rule, method, likelihood, rows)
        _check_blocks(couple(rule, X), method, likelihood, rows)


def _check_marginals(prior: Any, rule: KernelRule, rows: Rows) -> None:
    seen = prior.features(rows)
    before = prior.condition().local(seen, None)
    assert_allclose(before.q.mean, 0.0, atol=_SAME, err_msg="the prior's mean is not zero")
    variance = rule.diag(rows.X)
    # Where a part of the variance is beyond the sites, both together are the kernel's.
    assert_allclose(before.q.variance + before.beyond, variance, rtol=_SAME, err_msg="k(x, x)")
    tau, nu = 0.5 + 0.0 * rows.y, rows.y
    posterior = prior.condition(prior.sums(seen, Sites(tau, nu)))
    twice = posterior.under(prior.sums(seen, Sites(tau, 2.0 * nu)))
    once, more = (p.at(rows.X).mean for p in (posterior, twice))
    assert_allclose(more, 2.0 * once, rtol=_SAME, atol=_SAME, err_msg="under: not linear")


def _check_gradient(
    couple: Callable[[KernelRule, Any], Any],
    rule: KernelRule,
    method: Method,
    likelihood: Likelihood,
    rows: Rows,
) -> None:
    def value(theta: Array) -> float:
        prior = couple(rule.with_theta(theta), rows.X)
        return method.fit(Problem(likelihood, prior, rows)).log_evidence

    def change(step: Array) -> float:
        return value(rule.theta + step) - value(rule.theta - step)

    steps = _STEP * np.eye(len(rule.theta))
    slope = [(8.0 * change(s) - change(2.0 * s)) / (12.0 * _STEP) for s in steps]
    fit = method.fit(Problem(likelihood, couple(rule, rows.X), rows))
    assert fit.report.converged, f"{method.name} did not converge: {fit.report.message}"
    message = f"the gradient of {method.name} is not the slope of its evidence"
    assert_allclose(fit.gradient(), slope, rtol=1e-6, atol=1e-6, err_msg=message)


def _check_blocks(prior: Any, method: Method, likelihood: Likelihood, rows: Rows) -> None:
    if prior.dense:
        return
    one, some = (
        method.fit(Problem(likelihood, prior, MemoryBlocks(rows, size))).log_evidence
        for size in (len(rows.y), 1 + len(rows.y) // 3)
    )
    assert_allclose(some, one, rtol=_SAME, err_msg="blocks change the evidence")
