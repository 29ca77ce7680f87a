"""Inducing points: a low-rank approximation of K, blocks of rows, and every method on them."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel

from cavity.evidence import Evidence, tune
from cavity.inference import (
    EP,
    Ensemble,
    Exact,
    Laplace,
    Naive,
    Problem,
    Sequential,
    Variational,
    WarmStart,
)
from cavity.inference.sweeps import Visited, next_step, sweep
from cavity.kernels import rule
from cavity.likelihoods import Gaussian, Logit, Probit, Step
from cavity.priors import (
    PRIORS,
    DensePrior,
    InducingPrior,
    InducingRows,
    choose_points,
    low_rank_of,
)
from cavity.rows import ENGINES, MemoryBlocks, added
from cavity.sites import Rows, Sites
from cavity.testing import check_prior, check_rows

N, M = 12, 4
TIGHT = 1e-11
ON_BLOCKS = [EP(tol=TIGHT), Laplace(tol=TIGHT), Naive(tol=TIGHT), EP(tol=TIGHT, power=0.5)]


def low_rank_rows(seed=0):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(N, M))
    return InducingRows(P, np.sum(P * P, axis=1) + rng.uniform(0.1, 1.0, N))


def whole(rows):
    return rows.seen.P @ rows.seen.P.T + np.diag(rows.seen.left)


def sites(seed=1):
    rng = np.random.default_rng(seed)
    return Sites(rng.uniform(0.2, 2.0, N), rng.normal(size=N))


def table(n, seed=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def evidence(method, likelihood, kernel, n=700):
    X, y = table(n)
    return Evidence.of(rule(kernel), X, [y], likelihood, method, np.ones(n))


@pytest.fixture
def without_low_rank(monkeypatch):
    """Return a way to switch the low-rank pre-solve off."""
    return lambda: monkeypatch.setattr("cavity.priors.low_rank._FEWEST", 10**9)


def test_posterior():
    """Marginals, weights and determinant are those of the same matrix held whole."""
    rows, s = low_rank_rows(), sites()
    got, want = rows.condition(s), DensePrior(whole(rows)).condition(s)
    # A dozen examples with B's condition number near a hundred.
    close = {"rtol": 1e-11, "atol": 1e-12}
    for a, b in zip(got.local().q, want.local().q, strict=True):
        np.testing.assert_allclose(a, b, **close)
    np.testing.assert_allclose(got.local().rest, want.local().rest, **close)
    np.testing.assert_allclose(got.alpha, want.alpha, **close)
    np.testing.assert_allclose(got.values.half_log_det, want.half_log_det, **close)


def test_posterior_under_empty_sites():
    """Variances under empty sites are the prior's, reduced by what the others say."""
    rows, (tau, nu) = low_rank_rows(), sites()
    tau[::3] = 0.0
    got, want = rows.condition(Sites(tau, nu)), DensePrior(whole(rows)).condition(Sites(tau, nu))
    np.testing.assert_allclose(got.local().q.variance, want.local().q.variance, rtol=1e-11)


def test_products():
    """Products with K and with B⁻¹ are those of the whole matrices."""
    rows, v = low_rank_rows(), np.random.default_rng(3).normal(size=N)
    K, s = whole(rows), np.sqrt(sites().tau)
    B = np.eye(N) + s[:, None] * K * s
    np.testing.assert_allclose(rows.product(v), K @ v, rtol=1e-12)
    np.testing.assert_allclose(rows.condition(sites()).solve(v), np.linalg.solve(B, v), rtol=1e-11)


def test_a_smooth_kernel_is_nearly_kept():
    """What the approximation of a smooth kernel leaves over is tiny; the diagonal is exact."""
    X, _ = table(700)
    prior = DensePrior(rule(4.0 * RBF(3.0)).matrix(X))
    got = low_rank_of(prior).seen
    assert got.P.shape[1] < 150
    np.testing.assert_allclose(np.sum(got.P**2, axis=1) + got.left, prior.diag, rtol=1e-12)
    # The pivots stop at 3e-5 of the largest variance; examples not asked have a little more left.
    assert np.linalg.norm(got.P @ got.P.T - prior.K, 2) < 1e-2 * np.linalg.norm(prior.K, 2)


def test_no_approximation_where_it_does_not_pay():
    """Small tables have none, nor a prior without variance; a rough one has to be wanted."""
    X, _ = table(700)
    assert low_rank_of(DensePrior(rule(RBF(1.0)).matrix(X[:100]))) is None
    assert low_rank_of(DensePrior(np.zeros((700, 700)))) is None
    rough = DensePrior(rule(Matern(0.05, nu=0.5)).matrix(X))
    assert low_rank_of(rough, rough=False) is None
    assert low_rank_of(rough) is not None


@pytest.mark.parametrize(
    ("method", "likelihood"),
    [(EP(), Probit()), (EP(), Logit()), (Laplace(), Logit()), (Variational(), Logit())],
    ids=str,
)
@pytest.mark.parametrize("kernel", [9.0 * RBF(2.0), 2.0 * Matern(0.3, nu=0.5)], ids=str)
def test_same_solution(without_low_rank, method, likelihood, kernel):
    """Evidence and gradient are those that the iteration finds without a pre-solve."""
    this = evidence(method, likelihood, kernel)
    here = this.at(this.rule.theta)
    value, gradient = here.value, here.gradient
    without_low_rank()
    truth = replace(this, method=replace(method, tol=1e-9)).at(this.rule.theta)
    # The methods' own promise: eleven digits of a stationary evidence, six of its gradient.
    assert value == pytest.approx(truth.value, rel=1e-9)
    np.testing.assert_allclose(gradient, truth.gradient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [450, 1200])
@pytest.mark.parametrize("method", [EP(), Variational(), Laplace()], ids=lambda m: m.name)
def test_a_step_is_cheaper_from_nearby(method, n):
    """After a step of 5 % in the hyperparameters the last fit saves iterations, not digits."""
    this = evidence(method, Probit(), 9.0 * RBF(2.0), n)
    theta = this.rule.theta
    starts = this.at(theta).starts
    (warm,) = this.at(theta + 0.05, starts).fits
    (cold,) = this.at(theta + 0.05).fits
    assert warm.report.n_iter <= cold.report.n_iter
    assert warm.log_evidence == pytest.approx(cold.log_evidence, rel=1e-9)


def test_sharp_likelihood():
    """Noise-free labels, whose sites have no upper bound, are solved as well."""
    this = evidence(EP(), Step(), 4.0 * RBF(0.7), n=670)
    (fit,) = this.at(this.rule.theta).fits
    assert fit.report.converged
    assert np.isfinite(fit.log_evidence)


def block_problem(likelihood, prior, n=60, size=None):
    X, y = table(n)
    if isinstance(likelihood, Gaussian):
        y = y + 0.3 * X[:, 1]
    weight = 1.0 + (np.arange(n) % 3 == 0)
    rows = Rows(y, weight, X)
    return Problem(likelihood, prior(X), rows if size is None else MemoryBlocks(rows, size))


KERNEL = rule(3.0 * RBF([1.2, 1.7, 2.5]) + WhiteKernel(0.1))


def dense(X):
    return DensePrior.of(KERNEL, X)


def at(Z, whole=True, kernel=KERNEL):
    return lambda X: InducingPrior.of(kernel, X[Z], whole=whole)


@pytest.mark.parametrize("method", ON_BLOCKS, ids=str)
@pytest.mark.parametrize("likelihood", [Probit(), Logit()], ids=str)
def test_all_rows_as_inducing_points_are_the_dense_prior(method, likelihood):
    """With Z = X evidence, gradient and leave-one-out are those of the whole matrix."""
    few = method.fit(block_problem(likelihood, at(slice(None)), size=25))
    want = method.fit(block_problem(likelihood, dense))
    assert few.report.converged
    assert few.log_evidence == pytest.approx(want.log_evidence, rel=1e-8)
    np.testing.assert_allclose(few.gradient(), want.gradient(), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(few.loo_log_prob(), want.loo_log_prob(), rtol=1e-6, atol=1e-7)
    X_new = np.random.default_rng(7).normal(size=(5, 3))
    for a, b in zip(few.posterior.at(X_new), want.posterior.at(X_new), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_exact_regression_on_all_rows():
    """Gaussian noise needs no iteration on inducing points either."""
    few = Exact().fit(block_problem(Gaussian(0.3), at(slice(None)), size=25))
    want = Exact().fit(block_problem(Gaussian(0.3), dense))
    assert few.log_evidence == pytest.approx(want.log_evidence, rel=1e-8)
    np.testing.assert_allclose(few.gradient(), want.gradient(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "whole"),
    [
        *((m, True) for m in ON_BLOCKS),
        (Variational(tol=TIGHT), False),
        (Variational(tol=TIGHT), True),
    ],
    ids=str,
)
def test_gradient_on_few_points(method, whole):
    """The gradient is that of the evidence, by differences of fourth order."""
    points = slice(0, 15)
    fit = method.fit(block_problem(Logit(), at(points, whole), size=25))

    def value(theta):
        kernel = KERNEL.with_theta(theta)
        return method.fit(block_problem(Logit(), at(points, whole, kernel), size=25)).log_evidence

    h, theta = 1e-3, KERNEL.theta
    steps = h * np.eye(len(theta))
    near = np.array([value(theta + s) - value(theta - s) for s in steps])
    far = np.array([value(theta + 2 * s) - value(theta - 2 * s) for s in steps])
    slope = (8.0 * near - far) / (12.0 * h)
    np.testing.assert_allclose(fit.gradient(), slope, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", [*ON_BLOCKS, Variational(tol=TIGHT)], ids=str)
def test_blocks_change_nothing(method):
    """Rows in one block or in four give the same numbers."""
    one, four = (method.fit(block_problem(Logit(), at(slice(0, 9)), size=s)) for s in (60, 17))
    assert one.log_evidence == pytest.approx(four.log_evidence, rel=1e-12)
    np.testing.assert_allclose(one.gradient(), four.gradient(), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(one.cavities.mean, four.cavities.mean, rtol=1e-9, atol=1e-10)


def test_the_bound_lies_below_and_grows():
    """The sparse variational bound grows with the inducing points, up to the dense evidence."""
    method = Variational(tol=1e-9)
    found = [
        method.fit(block_problem(Logit(), at(slice(0, m), whole=False))).log_evidence
        for m in (5, 15, 40)
    ]
    want = method.fit(block_problem(Logit(), dense)).log_evidence
    assert found[0] < found[1] < found[2] <= want + 1e-8


def test_warm_start_by_name():
    """A fit from the states of another one takes fewer rounds and ends at the same place."""
    method = EP(tol=1e-9)
    given = block_problem(Probit(), at(slice(0, 15)), size=25)
    first = method.fit(given)
    moved = at(slice(0, 15), kernel=KERNEL.with_theta(KERNEL.theta + 0.05))(table(60)[0])
    there = first.problem._replace(prior=moved)
    warm, cold = method.fit(there, first.start), method.fit(there)
    assert warm.report.n_iter < cold.report.n_iter
    assert warm.log_evidence == pytest.approx(cold.log_evidence, rel=1e-9)


def test_a_lost_block_costs_a_round():
    """A block that forgets its sites in the middle of a fit does not change the answer."""

    class Forgetful(MemoryBlocks):
        rounds = 0

        def reduce(self, visit, shared, state, start=None):
            self.rounds += 1
            if self.rounds == 5:
                self._states[state][1] = None
            return super().reduce(visit, shared, state, start)

    X, y = table(60)
    problem = Problem(Probit(), at(slice(0, 15))(X), Forgetful(Rows(y, np.ones(60), X), 25))
    method = EP(tol=1e-10)
    want = method.fit(problem._replace(rows=Rows(y, np.ones(60), X)))
    got = method.fit(problem)
    assert got.report.converged
    assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-10)


@pytest.mark.parametrize("method", [EP(tol=1e-10), Laplace(tol=1e-10)], ids=str)
def test_a_block_lost_after_the_fit(method):
    """Gradient and leave-one-out are right if a block has forgotten its sites since the fit."""
    want = method.fit(block_problem(Logit(), at(slice(0, 15)), size=25))
    for ask in (lambda fit: fit.gradient(), lambda fit: fit.cavities.mean):
        got = method.fit(block_problem(Logit(), at(slice(0, 15)), size=25))
        got.problem.rows._states[got.start.sites.name][1] = None
        np.testing.assert_allclose(ask(got), ask(want), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", [Ensemble(), Sequential(), EP(schedule="sequential")], ids=str)
def test_methods_that_need_a_matrix_say_so(method):
    """What cannot be done on inducing points is refused."""
    with pytest.raises(ValueError, match="needs the"):
        method.fit(block_problem(Probit(), at(slice(0, 9))))


@pytest.mark.parametrize("name", PRIORS)
def test_contract_of_priors(name):
    """Every prior passes the public contract."""
    check_prior(PRIORS[name], KERNEL, table(14)[0])


@pytest.mark.parametrize("name", ENGINES)
def test_contract_of_rows(name):
    """Every place for rows to live passes the public contract."""
    check_rows(ENGINES[name])


def test_tuning_on_inducing_points():
    """The evidence on inducing points is tuned like any other, rows in memory or in blocks."""
    X, y = table(60)
    rows = Rows(y, np.ones(60), X)
    kernel = rule(2.0 * RBF(1.0))
    couple = partial(InducingPrior.of, Z=X[:12])
    found = []
    for given in (rows, MemoryBlocks(rows, 25)):
        evidence = Evidence(kernel, [given], Probit(), EP(), couple)
        [optimum] = tune([evidence])
        found.append(optimum.value)
        assert optimum.value > evidence.at(kernel.theta).value
    assert found[0] == pytest.approx(found[1], abs=1e-4)


def test_nothing_to_tune():
    """Without free hyperparameters an evidence is left alone."""
    X, y = table(10)
    fixed = Evidence.of(rule(RBF(1.0, "fixed")), X, [y], Probit(), EP(), np.ones(10))
    [optimum] = tune([fixed])
    assert optimum.n_evaluations == 0


@pytest.mark.parametrize("prior", [dense, at(slice(0, 15))])
def test_a_warm_start_of_sites_alone(prior):
    """Sites are enough to start from; a state that blocks do not have is no harm."""
    method = EP(tol=1e-9)
    given = block_problem(Probit(), prior)
    first = method.fit(given)
    again = method.fit(given, WarmStart(first.start.sites))
    assert again.log_evidence == pytest.approx(first.log_evidence, rel=1e-9)


def test_an_unfinished_fit_agrees_with_itself():
    """After too few rounds the posterior is still that of the sites which the blocks hold."""
    given = block_problem(Probit(), at(slice(0, 15)), size=25)
    fit = sweep(EP(), given, None, 3)
    assert not fit.report.converged
    kept = list(fit.problem.rows.collect(lambda rows, sites, _: sites, None, fit.start.sites.name))
    X, y = table(60)
    rows, prior = Rows(y, 1.0 + (np.arange(60) % 3 == 0), X), given.prior
    sites = Sites(*(np.concatenate(column) for column in zip(*kept, strict=True)))
    want = prior.condition(prior.sums(prior.features(rows), sites))
    np.testing.assert_allclose(fit.posterior.values.w, want.values.w, rtol=1e-10)


def test_a_nan_is_the_largest():
    """A residual that is not a number shows in the sum, whichever block it came from."""
    one, other = Visited(0.0, 1e-9, 0.0, 0), Visited(0.0, np.nan, 0.0, 0)
    assert np.isnan(added(one, other).largest)
    assert np.isnan(added(other, one).largest)


def test_blocks_of_blocks_keep_their_places():
    """Rows cut out of a table know their places there; no rows at all are refused."""
    X, y = table(10)
    inner = MemoryBlocks(Rows(y[4:], np.ones(6), X[4:], slice(4, 10)), 3)
    places = list(inner.collect(lambda rows, kept, _: rows.place, None, ""))
    assert places == [slice(4, 7), slice(7, 10)]
    with pytest.raises(ValueError, match="no rows"):
        MemoryBlocks(Rows(y[:0], y[:0]))


@pytest.mark.parametrize("likelihood", [Gaussian(0.05), Probit()])
def test_the_bound_leaves_noise_to_the_sites(likelihood):
    """Under the bound sites act on the kernel's noise: the gradient is right, the bound tight."""
    X, y = table(60)
    k = rule(2.0 * RBF(1.5) + WhiteKernel(0.3))
    rows = MemoryBlocks(Rows(y, np.ones(60), X), 25)
    bound = partial(InducingPrior.of, Z=X[:40:4], whole=False)
    evidence = Evidence(k, [rows], likelihood, Variational(tol=1e-10), bound)
    here, h = evidence.at(k.theta), 1e-5
    steps = h * np.eye(3)
    truth = [evidence.at(k.theta + s).value - evidence.at(k.theta - s).value for s in steps]
    # Differences of values near 50 leave about eight digits.
    np.testing.assert_allclose(here.gradient, np.array(truth) / (2.0 * h), rtol=1e-5, atol=1e-5)
    dense = Evidence.of(k, X, [y], likelihood, Variational(tol=1e-10), np.ones(60)).at(k.theta)
    all_points = Evidence(k, [rows], likelihood, Variational(tol=1e-10), partial(bound, Z=X))
    assert here.value < dense.value
    # The dense bound is that of all points.
    np.testing.assert_allclose(all_points.at(k.theta).value, dense.value, rtol=1e-8)


def test_points_are_where_variance_is_left():
    """Chosen points explain a clustered table better than as many random rows do."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.05 * rng.normal(size=(900, 2)), rng.uniform(-8.0, 8.0, (100, 2))])
    k = rule(2.0 * RBF(1.0) + WhiteKernel(0.1))
    points = choose_points(k, X, 40, rng)
    truth = [InducingPrior.of(k, points.Z[:m]).cross(X) for m in (1, 10, 40)]
    left = [1.0 - np.sum(P * P) / 2000.0 for P in truth]
    np.testing.assert_allclose(points.left[[0, 9, 39]], left, atol=1e-8)
    P = InducingPrior.of(k, X[rng.choice(1000, 40, replace=False)]).cross(X)
    assert points.left[-1] < 0.5 * (1.0 - np.sum(P * P) / 2000.0)


def test_a_kernel_of_low_rank_needs_few_points():
    """When nothing is left to explain, no more points are chosen; equal ones never are."""
    X = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 5, axis=0)
    points = choose_points(rule(DotProduct()), X, 50, np.random.default_rng(1))
    assert len(points.Z) == 4
    assert points.left[-1] < 1e-12
    prior = InducingPrior.of(rule(RBF(1.0)), X)
    assert len(prior.Z) == 20


def test_features_are_made_once_for_each_prior():
    """Blocks keep what a prior has made of their rows, unless there is no memory for it."""
    X, y = table(60)
    made = []

    class Counted(InducingPrior):
        def _features(self, X):
            made.append(len(X))
            return super()._features(X)

    for kept, expected in ((1e9, 3), (1.0, 6)):
        made.clear()
        blocks = MemoryBlocks(Rows(y, np.ones(60), X), 20, kept)
        prior = Counted(*InducingPrior.of(rule(RBF(1.0)), X[:10]))
        for _ in range(2):
            list(blocks.collect(lambda rows, kept, prior: prior.features(rows), prior, ""))
        assert len(made) == expected


def test_states_are_dropped_with_their_last_holder():
    """A fit that is gone leaves nothing behind with the rows, and a copy has a state of its own."""
    X, y = table(60)
    blocks = MemoryBlocks(Rows(y, np.ones(60), X), 25)
    prior = InducingPrior.of(rule(RBF(1.0)), X[:10])
    fit = EP().fit(Problem(Probit(), prior, blocks))
    copied = pickle.loads(pickle.dumps(fit))
    for _ in range(3):
        again = EP().fit(Problem(Probit(), prior, blocks), fit.start)
    assert len(blocks._states) == 2
    del fit, again
    assert not blocks._states
    assert np.isfinite(copied.cavities.mean).all()


@pytest.mark.parametrize("method", [EP(tol=1e-4), Variational(tol=1e-4)])
def test_a_stopped_sweep_is_as_close_as_it_says(method):
    """The residual after the last step is estimated: another sweep changes no more than that."""
    given = block_problem(Probit(), at(slice(0, 15)), size=25)
    fit = method.fit(given)
    more = replace(method, tol=1e-12).fit(fit.problem, fit.start)
    assert fit.report.converged
    assert abs(fit.log_evidence - more.log_evidence) < 1e-6


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("method", [EP(tol=1e-10), Variational(tol=1e-10)], ids=lambda m: m.name)
def test_left_out_rows_are_those_of_refits(method, noise):
    """With few points, too, mean and variance of a row left out are those of a fit without it."""
    X, y = table(60)
    kernel = 4.0 * RBF(0.8) + WhiteKernel(noise, "fixed") if noise else 4.0 * RBF(0.8)
    prior = InducingPrior.of(rule(kernel), X[:6], whole=not method.bounds)
    left_out = method.fit(Problem(Probit(), prior, Rows(y, np.ones(60), X))).cavities
    far = []
    for i in range(6, 60, 9):
        rest = np.delete(np.arange(60), i)
        fit = method.fit(Problem(Probit(), prior, Rows(y[rest], np.ones(59), X[rest])))
        q = fit.posterior.at(X[i : i + 1])
        sd = np.sqrt(q.variance[0])
        far.append([(left_out.mean[i] - q.mean[0]) / sd, left_out.variance[i] / sd**2 - 1.0])
    # A cavity is to first order what a fit without the row finds; without the variance that the
    # points leave over it was several times too narrow.
    assert np.max(np.abs(far)) < 0.2
    assert np.median(np.abs(far)) < 0.02


def test_an_inducing_prior_itself():
    """Of nothing, the posterior is the prior: no mean, all variance, and no volume."""
    X = table(10)[0]
    prior = InducingPrior.of(rule(2.0 * RBF(1.0)), X[:M])
    post = prior.condition()
    assert post.half_log_det == 0.0
    q = post.at(X)
    np.testing.assert_array_equal(q.mean, np.zeros(10))
    # What the points explain is taken off and put back.
    np.testing.assert_allclose(q.variance, np.full(10, 2.0), rtol=1e-12)


def test_steps_of_sweeps():
    """A step is halved when the residual has grown, shortened when it hardly falls, else grows."""
    assert next_step(1.0, 1.5) == 0.5
    assert next_step(0.03, 9.0) == 0.02
    assert next_step(1.0, 0.9) == 0.7
    assert next_step(0.5, 0.9) == 0.7
    assert next_step(0.9, 0.1) == 1.0
