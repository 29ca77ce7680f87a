"""Every inference method keeps the contract with every likelihood, on every array library."""

import numpy as np
import pytest
from common import CLASSIFYING, covering, served

from cavity.arrays import to_numpy
from cavity.inference import (
    EP,
    METHODS,
    Ensemble,
    Laplace,
    Naive,
    Problem,
    Sequential,
    method,
    sequential,
)
from cavity.inference.newton import Means, Steps, solve_means
from cavity.inference.self_consistent import equations_of
from cavity.likelihoods import Logit, Probit, Step, likelihood
from cavity.priors import DensePrior
from cavity.sites import Slope
from cavity.testing import check_inference, targets

N = 7
TIGHT = 1e-11

PAIRS = served(METHODS)


def covariance(n=N, amplitude=1.5, ell=1.2, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    r2 = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    # A little noise keeps K well conditioned for the methods that invert it.
    return amplitude**2 * (np.exp(-0.5 * r2 / ell**2) + 0.05 * np.eye(n))


def labels(n=N, seed=1, support="signs"):
    return targets(support, n, np.random.default_rng(seed))


def problem(lik, K=None, y=None, copies=None, xp=np):
    K = covariance() if K is None else K
    y = labels(len(K), support=lik.support) if y is None else y
    copies = np.ones(len(K)) if copies is None else copies
    return Problem.of(lik, DensePrior(xp.asarray(K)), xp.asarray(y), xp.asarray(copies))


def namespace_of(library):
    """An array namespace in double precision."""
    module = pytest.importorskip(library)
    return pytest.importorskip("array_api_compat.torch") if library == "torch" else module


def with_libraries(*libraries):
    """Every pair with a library; not slow are those that cover every two of the three."""
    return covering([(*pair, library) for pair in PAIRS for library in libraries])


@pytest.mark.parametrize(
    ("name", "lik", "library"), with_libraries("numpy", "array_api_strict", "torch")
)
def test_contract(name, lik, library):
    """The public contract holds for every pair that goes together, on every array library."""
    lik, xp = likelihood(lik), namespace_of(library)
    y = xp.asarray(labels(support=lik.support))
    check_inference(method(name), lik, xp.asarray(covariance()), y)


@pytest.mark.parametrize(
    ("name", "lik", "amplitude"),
    covering((*pair, a) for pair in PAIRS for a in (8.0, 0.1)),
)
def test_contract_weak_and_strong(name, lik, amplitude):
    """The contract holds where the prior is narrow and where it is wide."""
    lik = likelihood(lik)
    y = labels(support=lik.support)
    check_inference(method(name), lik, covariance(amplitude=amplitude), y)


@pytest.mark.parametrize(
    ("variant", "lik"),
    [
        (EP(schedule="sequential"), Probit(0.3)),
        (EP(schedule="sequential"), Logit()),
        (EP(power=0.5), Probit(0.3)),
        (EP(power=0.5), Logit()),
    ],
)
def test_contract_of_ep_variants(variant, lik):
    """The contract holds for the sequential schedule and for power EP."""
    check_inference(variant, lik, covariance(3), labels(3))


class WrongSlope(Laplace):
    """Laplace with the gradient that forgets that the mode moves."""

    def slope(self, likelihood, rows, local, prior):
        return Slope()


class Forgetful(Laplace):
    """Laplace that overlooks how often an example counts."""

    def fit(self, problem, start=None):
        rows = problem.rows
        return super().fit(problem._replace(rows=rows._replace(weight=0.0 * rows.y + 1.0)), start)


@pytest.mark.parametrize(
    ("broken", "complaint"), [(WrongSlope(), "slope"), (Forgetful(), "copies")]
)
def test_contract_catches_mistakes(broken, complaint):
    """The contract is worth something: plausible mistakes break it, and it says where."""
    with pytest.raises(AssertionError, match=complaint):
        check_inference(broken, Probit(), covariance(), labels())


@pytest.mark.parametrize(("name", "lik", "library"), with_libraries("torch", "array_api_strict"))
def test_array_libraries_agree(name, lik, library):
    """Every output on another array library is NumPy's, copies included."""
    xp = namespace_of(library)
    copies = 1.0 + np.arange(N) % 3
    copies = np.ones(N) if name == "ensemble" and lik != "probit" else copies
    how = method(name, tol=TIGHT)
    got = how.fit(problem(likelihood(lik), copies=copies, xp=xp))
    truth = how.fit(problem(likelihood(lik), copies=copies))
    np.testing.assert_allclose(got.log_evidence, truth.log_evidence, rtol=1e-8)
    for a, b in zip(outputs(got), outputs(truth), strict=True):
        # Solutions iterated to 1e-11 by different arithmetic differ by about as much.
        np.testing.assert_allclose(to_numpy(a), to_numpy(b), rtol=1e-8, atol=1e-8)


def outputs(fit):
    yield from fit.posterior.local().q
    yield fit.posterior.alpha
    yield fit.loo_log_prob()
    yield fit.start.variance
    if fit.method.has_gradient:
        yield fit.grad_K()


@pytest.mark.parametrize(("name", "lik"), PAIRS)
def test_many_examples_of_one_kind(name, lik):
    """A hundred copies of each example are handled as one site each, and converge."""
    if name == "ensemble" and lik != "probit":
        pytest.skip("equal examples without noise of their own")
    fit = method(name).fit(problem(likelihood(lik), copies=np.full(N, 100.0)))
    assert fit.report.converged
    assert np.isfinite(fit.log_evidence)
    assert np.all(fit.posterior.local().q.variance > 0.0)


@pytest.mark.parametrize("name", [m for m in CLASSIFYING if m != "sequential"])
def test_fractional_copies_interpolate(name):
    """A weight of one and a half gives an evidence between those of one and two."""
    values = [
        method(name).fit(problem(Probit(), copies=np.full(N, w))).log_evidence
        for w in (1.0, 1.5, 2.0)
    ]
    assert values[0] > values[1] > values[2]


def test_fractional_weight_of_a_gaussian_is_less_noise():
    """For EP with Gaussian noise, weight w means noise σ²/w up to the density's own scale."""
    w, noise = 2.5, 0.4
    lik = likelihood("gaussian")
    lik = type(lik)(noise)
    a = EP(tol=TIGHT).fit(problem(lik, copies=np.full(N, w)))
    b = EP(tol=TIGHT).fit(problem(type(lik)(noise / w)))
    np.testing.assert_allclose(a.posterior.mean, b.posterior.mean, rtol=1e-9)
    np.testing.assert_allclose(a.posterior.local().q.variance, b.posterior.local().q.variance)


@pytest.mark.parametrize("lik", [Step(), Logit()])
def test_ensemble_refuses_copies_without_noise(lik):
    """Equal examples without noise of their own are refused with the remedy named."""
    with pytest.raises(ValueError, match="probit"):
        Ensemble().fit(problem(lik, copies=np.full(N, 2.0)))


def test_unconverged_fit_says_so():
    """Stopped early, a fit says so and holds finite numbers."""
    fit = EP(max_iter=1).fit(problem(Probit(), covariance(amplitude=8.0)))
    assert not fit.report.converged
    assert "without converging" in fit.report.message
    assert np.isfinite(fit.log_evidence)
    assert np.all(np.isfinite(fit.posterior.mean))


def test_warm_start_saves_work():
    """From a neighbour's result EP needs fewer iterations than from nothing."""
    here = EP().fit(problem(Probit(), covariance(amplitude=3.0)))
    nearby = problem(Probit(), covariance(amplitude=3.03))
    assert EP().fit(nearby, here.start).report.n_iter < EP().fit(nearby).report.n_iter


def test_naive_asks_only_for_products():
    """The naive fit, its evidence and its gradient never factor a matrix."""
    fit = Naive().fit(problem(Probit()))
    fit.grad_K()
    assert "_L" not in vars(fit.posterior)


def test_methods_by_name():
    """A name gives its method with options, a method passes through, a wrong name is refused."""
    assert method("ep", power=0.5) == EP(power=0.5)
    assert method(Laplace(tol=1e-3)) == Laplace(tol=1e-3)
    assert method("sequential", sweeps=2) == Sequential(sweeps=2)
    with pytest.raises(ValueError, match=r"'laplace'.*got 'mcmc'"):
        method("mcmc")


@pytest.mark.parametrize("name", ["laplace", "naive"])
def test_what_is_no_number_has_not_converged(name):
    """Weights of the rows that are no numbers solve nothing, whatever rounding is forgiven."""
    equations = equations_of(method(name), problem(Logit()))
    diag = equations.coupling.diag
    assert np.isnan(Means(equations, diag, np.nan * diag, Steps(equations.coupling)).residual)
    start = np.nan * diag, Steps(equations.coupling)
    found = solve_means(equations, diag, *start, tol=1e-8, max_iter=5)
    assert not found.converged


def test_one_row_that_is_no_number_is_seen_by_every_schedule(monkeypatch):
    """One site after the other: the largest change is no number if any is none."""
    changes = iter([1.0, np.nan, *[0.0] * (N - 2)])
    monkeypatch.setattr(sequential, "_revisit", lambda *args: next(changes))
    report = sequential.one_by_one(EP(max_iter=1), problem(Probit())).report
    assert not report.converged
    assert np.isnan(report.residual)
