"""Replica theory of learning curves, against its limits, refits and published numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier as OtherClassifier
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, learning_curve
from cavity.arrays.special import ndtr
from cavity.datasets import load_boston, load_pima
from cavity.likelihoods import REGISTRY, Gaussian, Poisson, Probit
from cavity.priors import DensePrior
from cavity.resampling import LAWS, Averages, BinaryScores, Pool, RegressionScores, solve_sizes
from cavity.resampling.averaged import (
    AveragedPosterior,
    largest_change,
    prior_cavities,
    solve_averages,
)
from cavity.resampling.scores import field_grid
from cavity.resampling.theories import cavity_theory, variational_theory
from cavity.sites import Sites, cavity
from cavity.testing import check_curve, targets


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


def covariance(X, amplitude=3.0):
    return amplitude * np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))


@pytest.fixture(scope="module")
def pima():
    X, y = load_pima(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    kernel = 4.5 * RBF([40.0, 4.9, 1e4, 1e4, 3.3, 7.4, 4.3])
    return GaussianProcessClassifier(kernel, optimizer=None).fit(X, y), X, y


@pytest.fixture(scope="module")
def boston():
    """The pool of the published table."""
    X, y = load_boston(return_X_y=True)
    scaled = X / np.sqrt(147.1 * X.std(axis=0) / 2.0)
    K = RBF(1.0)(scaled)
    y = (y - y.mean()) / y.std()
    return Pool(DensePrior(K), y, Gaussian(0.01), np.full(len(y), 1.0 / len(y)))


CONTRACT = [name for name in REGISTRY if REGISTRY[name]().concave]


@pytest.mark.parametrize("name", [*CONTRACT, "student_t"])
def test_contract(name):
    """Every log-concave likelihood, and a mixture, passes the contract of learning curves."""
    lik, X = REGISTRY[name](), points(8)[0]
    check_curve(lik, covariance(X), targets(lik.support, 8, np.random.default_rng(0)))


BOSTON = {  # published: mean posterior variance, error on the pool, out-of-bag error
    "cavity": {
        50: (0.1269, 0.408, 0.450),
        200: (0.0342, 0.149, 0.212),
        506: (0.01208, 0.0734, 0.156),
        2000: (0.00186, 0.0262, None),
    },
    "variational": {
        50: (0.1227, 0.393, 0.436),
        200: (0.0297, 0.128, 0.192),
        506: (0.00799, 0.0560, 0.142),
        2000: (0.00161, 0.0244, None),
    },
}


@pytest.mark.parametrize("theory", BOSTON)
def test_boston_table(boston, theory):
    """The founding paper's Boston numbers come out, to the 2 % that their digits allow."""
    cavities = prior_cavities(boston.prior)
    for m, published in BOSTON[theory].items():
        draws = m * boston.share
        equations = (
            variational_theory(boston, draws)
            if theory == "variational"
            else cavity_theory(boston, LAWS["bootstrap"](draws))
        )
        found = solve_averages(boston, equations, cavities, tol=1e-6, max_iter=100)
        cavities, scores = found.held_out, RegressionScores([boston])
        ours = (
            found.pool.G.mean(),
            scores.pool_error([found.pool]).mean(),
            scores.held_out([found.held_out]).error.mean(),
        )
        for got, want in zip(ours, published, strict=True):
            assert want is None or got == pytest.approx(want, rel=0.02)


def test_variational_out_of_bag_form(boston):
    """The cavity form of the variational theory is the paper's own, solved as a linear system."""
    small = Pool(
        DensePrior(boston.prior.K[:80, :80]), boston.y[:80], Gaussian(0.01), np.full(80, 1 / 80)
    )
    m, n = 60.0, 80
    found = solve_averages(
        small,
        variational_theory(small, m * small.share),
        prior_cavities(small.prior),
        tol=1e-11,
        max_iter=500,
    )
    u = m / n / (0.01 + found.pool.G)
    assert_allclose(found.sites.u, u, rtol=1e-8)
    G = np.linalg.inv(np.linalg.inv(small.prior.K + 1e-10 * np.eye(n)) + np.diag(u))
    R = G @ (u * small.y)
    A = G**2 * (n * u**2 / m)
    V = np.linalg.solve(np.eye(n) - A, A @ (R - small.y) ** 2)
    # The explicit inverse needs a little jitter, which is what is left.
    assert_allclose(found.pool.R, R, atol=1e-5)
    assert_allclose(found.pool.V, V, rtol=1e-4)
    held_out = (V - np.diag(A) * ((R - small.y) ** 2 + V)) / (1.0 - np.diag(G) * u) ** 2
    assert_allclose(found.held_out.V, held_out, rtol=1e-4)


def eigenvalue_start(pool, draws):
    """Return cavities of the variational theory with G_ii ≈ Σ_k φ_ik²/(1/λ_k + u_i).

    One equation for each example, with u_i = draws_i/(σ² + G_ii): its right-hand side rises with
    G_ii, so that iterating from the prior's variance goes down to the root. Exact where all u_i
    are equal, and the founding paper's start; an ``eigh`` costs more than the iterations it saves.
    """
    values, vectors = np.linalg.eigh(pool.prior.K)
    values, squares = np.maximum(values, 0.0), vectors**2
    noise, G, before = pool.likelihood.noise_variance, pool.prior.diag, np.inf
    while np.max(np.abs(np.log(before / G))) > 1e-4:
        before, u = G, draws / (noise + G)
        G = np.sum(squares * (values / (1.0 + values * u[:, None])), axis=1)
    u = draws / (noise + G)
    c = cavity(pool.prior.condition(Sites(u, u * pool.y)).local())
    return Averages(c.variance, c.mean, np.zeros_like(G))


def test_eigenvalue_start_is_close(boston):
    """The eigenvalue start is exact for equal examples and saves iterations elsewhere."""
    ring = np.cos(2.0 * np.pi * np.subtract.outer(np.arange(30), np.arange(30)) / 30.0)
    pool = Pool(DensePrior(np.exp(ring - 1.0)), np.ones(30), Gaussian(0.1), np.full(30, 1 / 30))
    draws = 20.0 * pool.share
    start = eigenvalue_start(pool, draws)
    found = solve_averages(pool, variational_theory(pool, draws), start, tol=1e-9, max_iter=200)
    assert_allclose(start.G, found.held_out.G, rtol=1e-2)
    draws = 2000.0 * boston.share
    theory = variational_theory(boston, draws)
    begin = {"eigen": eigenvalue_start(boston, draws), "prior": prior_cavities(boston.prior)}
    steps = {
        name: solve_averages(boston, theory, c, tol=1e-6, max_iter=100).n_iter
        for name, c in begin.items()
    }
    assert steps["eigen"] < steps["prior"]


def test_a_guess_that_leads_astray_is_given_up():
    """Sizes that are solved from the prior are solved after each other; before, three of five."""
    y = np.repeat([0.0, 1.0, 2.0, 432.0], [12, 5, 1, 1])
    pool = Pool(DensePrior(10.0 * np.ones((19, 19))), y, Poisson(), np.full(19, 1 / 19))
    sizes, how = np.array([2.0, 5.0, 10.0, 14.0, 17.0]), {"tol": 3e-4, "max_iter": 200}
    found = solve_sizes(pool, sizes, "subsample", "cavity", **how)
    alone = [solve_sizes(pool, sizes[k : k + 1], "subsample", "cavity", **how)[0] for k in range(5)]
    assert all(one.converged for one in [*found, *alone])
    for one, other in zip(found, alone, strict=True):
        # Ten times the tolerance of the equations, which is that of a change in one round.
        assert_allclose(one.held_out.G, other.held_out.G, rtol=3e-3)


def test_steps_back_and_forth_are_halved():
    """Thirty flowers drawn 120 times under a wide prior: the equations are solved.

    Whole steps went back and forth between cavities of variances that are four times apart.
    """
    X, y = load_iris(return_X_y=True)
    K, signs = (20.0 * RBF(3.0))(X[::5]), np.where(y[::5] == 2, 1.0, -1.0)
    pool = Pool(DensePrior(K), signs, Probit(), np.full(30, 1 / 30))
    about = (pool, np.array([120.0]), "bootstrap", "cavity")
    [found] = solve_sizes(*about, tol=1e-6, max_iter=200)
    assert found.converged
    theory = cavity_theory(pool, LAWS["bootstrap"](np.full(30, 4.0)), 1e-8)
    again = AveragedPosterior(pool.prior, theory(found.held_out)).held_out
    # Ten times the tolerance: one plain round may go back further than the steps before it.
    assert largest_change(again, found.held_out) < 1e-5


@pytest.mark.parametrize("law", LAWS)
def test_sizes_are_solved_as_one_by_one(law):
    """Starting from other sizes changes the way to a size's averages, not the averages."""
    X, y = points(25)
    pool = Pool(DensePrior(covariance(X)), y, Probit(), np.full(25, 1 / 25))
    sizes = np.array([5.0, 20.0, 10.0])
    together = solve_sizes(pool, sizes, law, "cavity", tol=1e-10, max_iter=500)
    for size, found in zip(sizes, together, strict=True):
        theory = cavity_theory(pool, LAWS[law](size * pool.share), 1e-11)
        alone = solve_averages(pool, theory, prior_cavities(pool.prior), tol=1e-10, max_iter=500)
        assert found.converged
        for part, other in zip(found.held_out[:3], alone.held_out[:3], strict=True):
            # Each has a residual of up to 1e-10.
            assert_allclose(part, other, rtol=1e-8, atol=1e-9)


def test_pairs_only_where_the_likelihood_is_gaussian(boston):
    """`theory="pairs"` adds to the variance in regression, and nothing in classification."""
    small = boston._replace(
        prior=DensePrior(boston.prior.K[:60, :60]), y=boston.y[:60], share=np.full(60, 1 / 60)
    )
    for pool, more in ((small, True), (small._replace(likelihood=Probit(), y=np.ones(60)), False)):
        cavity, pairs = (
            solve_sizes(pool, np.array([20.0]), "subsample", theory, tol=1e-8, max_iter=200)[0]
            for theory in ("cavity", "pairs")
        )
        assert np.all(pairs.pool.G > cavity.pool.G) == more
        assert np.array_equal(pairs.pool.G, cavity.pool.G) != more


def test_whole_pool_is_leave_one_out(pima):
    """At m = N the held-out log loss is the fit's own leave-one-out log loss."""
    clf, X, y = pima
    curve = learning_curve(clf, X, y, train_sizes=[len(y)])
    own = np.log(clf.loo_proba_[np.arange(len(y)), np.searchsorted(clf.classes_, y)])
    assert_allclose(curve.point_log_loss[0], -own, rtol=1e-4)
    assert curve.apparent_error == pytest.approx(np.mean(clf.predict(X) != y), abs=1e-12)


def test_nothing_learned_is_the_prior():
    """m → 0 gives the prior's error: a half, log 2, a quarter; and the target's mean square."""
    X, y = points(40)
    pool = Pool(DensePrior(covariance(X)), y, Probit(), np.full(40, 1 / 40))
    theory = cavity_theory(pool, LAWS["subsample"](1e-9 * pool.share))
    found = solve_averages(pool, theory, prior_cavities(pool.prior), tol=1e-12, max_iter=50)
    measured = BinaryScores([pool]).held_out([found.held_out])
    assert_allclose(measured.error.mean(), 0.5, atol=1e-3)
    assert_allclose(measured.log_loss, np.log(2.0), atol=1e-4)
    assert_allclose(measured.brier, 0.25, atol=1e-4)
    pool = pool._replace(likelihood=Gaussian(0.1))
    theory = cavity_theory(pool, LAWS["bootstrap"](1e-9 * pool.share))
    found = solve_averages(pool, theory, prior_cavities(pool.prior), tol=1e-12, max_iter=50)
    assert_allclose(RegressionScores([pool]).held_out([found.held_out]).error, 1.0, atol=1e-4)


@pytest.mark.parametrize("resampling", LAWS)
def test_pool_error_falls(pima, resampling):
    """More examples mean fewer errors on the pool."""
    clf, X, y = pima
    curve = learning_curve(clf, X, y, train_sizes=[10, 20, 40, 80, 160], resampling=resampling)
    assert np.all(np.diff(curve.pool_error) < 0.0)
    assert np.all(np.diff(curve.posterior_variance) < 0.0)
    assert np.all(curve.converged)


def test_regression_variance_ignores_targets():
    """The posterior variance of a regressor does not depend on y."""
    X, y = points(60)
    reg = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.1, optimizer=None).fit(X, y)
    one = learning_curve(reg, X, y, resampling="bootstrap")
    other = learning_curve(reg, X, 5.0 * y**2 + X[:, 1], resampling="bootstrap")
    assert_allclose(one.posterior_variance, other.posterior_variance, rtol=1e-5)


@pytest.mark.parametrize("resampling", LAWS)
@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_refitting_agrees(resampling, likelihood):
    """100 real refits of a small pool agree within three standard errors, or 5 %."""
    X, y = points(60)
    clf = GaussianProcessClassifier(3.0 * RBF(1.0), optimizer=None, likelihood=likelihood)
    curve = learning_curve(clf, X, y, train_sizes=[30], resampling=resampling)
    rng = np.random.default_rng(1)
    losses, errors = [], []
    for _ in range(100):
        rows = rng.choice(60, 30, replace=resampling == "bootstrap")
        out = np.setdiff1d(np.arange(60), rows)
        p = clf.fit(X[rows], y[rows]).predict_proba(X[out])[:, 1]
        p = np.where(y[out] > 0, p, 1.0 - p)
        losses.append(-np.log(p).mean())
        errors.append(np.mean(p < 0.5))
    for theory, seen in ((curve.test_log_loss[0], losses), (curve.test_error[0], errors)):
        allowed = max(3.0 * np.std(seen) / 10.0, 0.05 * np.mean(seen))
        assert abs(theory - np.mean(seen)) < allowed


def test_new_inputs_agree_with_refitting():
    """The mean and the variance over training sets hold at inputs outside the pool, too."""
    X, y = points(50)
    X_new = np.array([[0.3, 0.2], [-1.0, 1.0], [2.0, -1.0]])
    target = X[:, 0] + 0.3 * y
    reg = GaussianProcessRegressor(1.0 * RBF(1.0), alpha=0.2, optimizer=None).fit(X, target)
    mean, variance = learning_curve(reg, X, target, train_sizes=[25]).predict(X_new)
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(200):
        rows = rng.choice(50, 25, replace=False)
        seen.append(reg.fit(X[rows], target[rows]).predict(X_new))
    seen = np.array(seen)
    # Four standard errors of 200 draws; variances of a small pool within a quarter.
    assert_allclose(mean[0], seen.mean(axis=0), atol=4.0 * seen.std(axis=0).max() / 14.0 + 0.01)
    assert_allclose(variance[0], seen.var(axis=0), rtol=0.3)


def test_new_inputs_equal_pool_members_without_share():
    """An example that is never drawn gets from `predict` what the pool says about it."""
    X, y = points(30)
    weight = np.ones(30)
    weight[:3] = 0.0
    clf = GaussianProcessClassifier(3.0 * RBF(1.0), optimizer=None).fit(X, y)
    curve = learning_curve(clf, X, y, train_sizes=[10, 20], sample_weight=weight)
    mean, variance = curve.predict(X[:3])
    assert_allclose(mean, curve.point_mean[:, :3], atol=1e-5)
    assert_allclose(variance, curve.point_variance[:, :3], rtol=1e-4)
    assert curve.share[:3].sum() == 0.0


def test_fractions_are_of_the_rows_that_have_a_weight():
    """A curve at fractions of a table does not depend on rows of weight zero in it."""
    X, y = points(40)
    weight = np.random.default_rng(4).permutation(np.r_[np.ones(24), np.zeros(16)])
    some = weight > 0.0
    clf = GaussianProcessClassifier(3.0 * RBF(1.0), optimizer=None).fit(X[some], y[some])
    weighed, alone = (
        learning_curve(clf, X, y, sample_weight=weight),
        learning_curve(clf, X[some], y[some]),
    )
    assert_allclose(weighed.train_sizes, alone.train_sizes)
    # The equations are solved to 3e-4.
    assert_allclose(weighed.test_error, alone.test_error, rtol=1e-3)
    assert_allclose(weighed.point_mean[:, some], alone.point_mean, atol=2e-3)


def test_weight_two_is_the_row_twice():
    """With replacement, a row of weight two is drawn as often as the row given twice."""
    X, y = points(20)
    clf = GaussianProcessClassifier(3.0 * RBF(1.0), optimizer=None).fit(X, y)
    weight = np.ones(20)
    weight[4] = 2.0
    twice = np.append(np.arange(20), 4)
    weighed = learning_curve(
        clf, X, y, train_sizes=[8], sample_weight=weight, resampling="bootstrap"
    )
    repeated = learning_curve(clf, X[twice], y[twice], train_sizes=[8], resampling="bootstrap")
    # Not the same cavity: leaving a weighted row out leaves both copies out.
    assert_allclose(weighed.posterior_variance, repeated.posterior_variance, rtol=0.01)
    assert_allclose(
        np.delete(weighed.point_error, 4, 1),
        repeated.point_error[:, [*range(4), *range(5, 20)]],
        atol=0.01,
    )


@pytest.mark.parametrize("resampling", LAWS)
def test_noise_of_a_kernel_is_noise_of_the_likelihood(resampling):
    """A WhiteKernel and the same noise in alpha give one curve: copies have noise of their own."""
    X, y = points(40)
    sizes = [10, 30]
    inside = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.2), alpha=0.1, optimizer=None)
    outside = GaussianProcessRegressor(RBF(1.0), alpha=0.3, optimizer=None)
    one, other = (
        learning_curve(reg, X, y, train_sizes=sizes, resampling=resampling)
        for reg in (inside, outside)
    )
    assert_allclose(one.test_error, other.test_error, rtol=1e-6)
    assert_allclose(one.test_log_loss, other.test_log_loss, rtol=1e-6)
    assert_allclose(one.apparent_error, other.apparent_error, rtol=1e-6)
    assert_allclose(one.apparent_log_loss, other.apparent_log_loss, rtol=1e-6)


def test_measures_agree_with_closed_forms(pima):
    """`measure` integrates: the Brier score and the error come out of their definitions."""
    clf, X, y = pima
    curve = learning_curve(clf, X, y, train_sizes=[50, 100])
    assert_allclose(curve.measure(lambda p, y: (p - y) ** 2), curve.test_brier, rtol=1e-6)
    # A jump is located to half a node.
    assert_allclose(curve.measure(lambda p, y: (p > 0.5) != y), curve.test_error, atol=2e-3)
    X, y = points(40)
    reg = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None, normalize_y=True)
    curve = learning_curve(reg, X, 3.0 * y + 7.0, train_sizes=[20])
    assert_allclose(curve.measure(lambda p, y: (p - y) ** 2), curve.test_error, rtol=1e-6)


def test_units_of_the_target():
    """With normalize_y, errors come in the units of the target."""
    X, y = points(40)
    reg = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None, normalize_y=True)
    one = learning_curve(reg, X, y, train_sizes=[20])
    ten = learning_curve(reg, X, 10.0 * y + 3.0, train_sizes=[20])
    assert_allclose(ten.test_error, 100.0 * one.test_error, rtol=1e-6)
    assert_allclose(ten.test_log_loss, one.test_log_loss + np.log(10.0), rtol=1e-6)
    assert_allclose(ten.pool_error, 100.0 * one.pool_error, rtol=1e-6)


def test_632_is_between_its_parts(pima):
    """The .632 estimate lies between apparent and out-of-bag error, and needs a bootstrap."""
    clf, X, y = pima
    curve = learning_curve(clf, X, y, train_sizes=[200], resampling="bootstrap")
    assert_allclose(
        curve.error_632, 0.368 * curve.apparent_error + 0.632 * curve.test_error, rtol=1e-12
    )
    assert curve.apparent_log_loss < curve.log_loss_632[0] < curve.test_log_loss[0]
    with pytest.raises(ValueError, match="bootstrap"):
        learning_curve(clf, X, y, train_sizes=[20]).error_632  # noqa: B018


def test_several_classes():
    """Three classes: leave-one-out agrees with the fit's, and errors fall."""
    X, y = load_wine(return_X_y=True)
    X, names = StandardScaler().fit_transform(X), np.array(["red", "rosé", "white"])[y]
    clf = GaussianProcessClassifier(50.0 * RBF(4.0), optimizer=None).fit(X, names)
    curve = learning_curve(clf, X, names, train_sizes=[20, 60, 178])
    loo = -np.log(clf.loo_proba_[np.arange(len(y)), y]).mean()
    assert curve.test_log_loss[-1] == pytest.approx(loo, rel=1e-3)
    assert np.all(np.diff(curve.test_log_loss) < 0.0)
    assert curve.point_mean.shape == (3, 178, 3)
    assert curve.suspects(1)[0].suggestion in names
    with pytest.raises(ValueError, match="two classes"):
        curve.measure(lambda p, y: p)


def test_pipeline_and_unfitted(pima):
    """A pipeline is taken apart, and what is not fitted is fitted first."""
    clf, X, y = pima
    raw = load_pima(return_X_y=True)[0]
    pipe = make_pipeline(StandardScaler(), GaussianProcessClassifier(clf.kernel, optimizer=None))
    curve = learning_curve(pipe, raw, y, train_sizes=[50])
    assert_allclose(curve.test_error, learning_curve(clf, X, y, train_sizes=[50]).test_error)
    assert curve.predict(raw[:2])[0].shape == (1, 2)


def test_precomputed(pima):
    """A precomputed kernel gives the same curve."""
    clf, X, y = pima
    K = clf.kernel_(X)
    other = GaussianProcessClassifier("precomputed").fit(K, y)
    one = learning_curve(clf, X, y, train_sizes=[50])
    two = learning_curve(other, K, y, train_sizes=[50])
    assert_allclose(one.test_error, two.test_error, rtol=1e-8)
    assert_allclose(two.predict(K[:3])[0], one.predict(X[:3])[0], rtol=1e-8)


def test_tables(pima):
    """The curve prints, and becomes a data frame, with one row per size."""
    clf, X, y = pima
    curve = learning_curve(clf, X, y, train_sizes=[0.1, 0.5])
    assert len(repr(curve).splitlines()) == 4
    frame = curve.to_frame()
    assert list(frame.index) == [20.0, 100.0]
    assert_allclose(frame["test_error"], curve.test_error)


def test_unsolved_sizes_are_marked(pima):
    """What does not converge is marked and warned of once, and stays finite."""
    clf, X, y = pima
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        curve = learning_curve(clf, X, y, train_sizes=[20, 100], max_iter=2)
    assert not curve.converged.any()
    assert np.all(np.isfinite(curve.test_error))


def test_hard_pools():
    """Separable data under a wide prior, repeated rows and a constant kernel end in numbers."""
    X, y = points(30)
    X = np.vstack([X, X[:10]])
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    for kernel in (1e6 * RBF(10.0), 1e-6 * RBF(1e-3), 1.0 * RBF(1e4)):
        clf = GaussianProcessClassifier(kernel, optimizer=None)
        for resampling in LAWS:
            curve = learning_curve(clf, X, y, resampling=resampling)
            assert np.all(np.isfinite(curve.point_log_loss)), kernel
            assert np.all(curve.converged), (kernel, resampling)


def test_field_grid_integrates():
    """The grid of fields integrates polynomials and a jump."""
    x, weight = field_grid()
    assert_allclose([weight @ x**k for k in range(7)], [1, 0, 1, 0, 3, 0, 15], atol=1e-10)
    assert_allclose(weight @ (x > 0.3), ndtr(np.array(-0.3)), atol=5e-3)


BAD = {
    "between 0 and 1": {"train_sizes": [1.5]},
    "at most 200": {"train_sizes": [201]},
    "positive": {"train_sizes": [0]},
    "positive;": {"train_sizes": [-0.5]},
    "sequence of integers": {"train_sizes": "many"},
    "entries for": {"train_sizes": list(range(1, 202))},
    "resampling must": {"resampling": "jackknife"},
    "theory must": {"theory": "string"},
    "draws with replacement": {"theory": "variational"},
    "is for regression": {"theory": "variational", "resampling": "bootstrap"},
    "eights": {"sample_weight": np.zeros(200)},
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input(pima, message):
    """Bad input gets one line that says what to do."""
    clf, X, y = pima
    with pytest.raises(ValueError, match=message) as caught:
        learning_curve(clf, X, y, **BAD[message])
    assert "\n" not in str(caught.value)


def test_bad_estimators_and_labels(pima):
    """An estimator of another library, one class, and unknown classes are refused."""
    clf, X, y = pima
    with pytest.raises(ValueError, match="got GaussianProcessClassifier"):
        learning_curve(OtherClassifier(), X, y)
    with pytest.raises(ValueError, match="2 or more distinct classes"):
        learning_curve(GaussianProcessClassifier(), X, np.ones(200))
    with pytest.raises(ValueError, match="not fitted to"):
        learning_curve(clf, X, np.where(y == y[0], y, 7))
    with pytest.raises(ValueError, match="one target"):
        learning_curve(GaussianProcessRegressor(RBF()), X, np.stack([y, y], axis=1))
    several = GaussianProcessClassifier(multi_class="one_vs_one")
    with pytest.raises(ValueError, match="one_vs_rest"):
        learning_curve(several, X, np.arange(200) % 3)
    curve = learning_curve(clf, X, y, train_sizes=[50])
    for call in (
        lambda: curve.suspects(0),
        lambda: curve.forecast(0),
        lambda: curve.forecast(10, level=1.0),
        lambda: curve.forecast(10, "brier"),
        lambda: curve.size_for(),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            call()


def test_effective_sites_do_not_cancel():
    """Without fluctuations or examples, the variance of a source is zero, never less."""
    X, y = points(10)
    pool = Pool(DensePrior(covariance(X)), y, Probit(), np.full(10, 0.1))
    c = Averages(np.full(10, 1.0), np.zeros(10), np.zeros(10))
    certain = cavity_theory(pool, LAWS["subsample"](np.ones(10)))(c)
    assert_allclose(certain.w, 0.0, atol=1e-15)
    never = cavity_theory(pool, LAWS["bootstrap"](np.full(10, 1e-12)))(c)
    assert np.all(never.u < 1e-11)


def tuned_classifier(n=80):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((n, 3))
    y = (np.sin(2.0 * X[:, 0]) + 0.7 * rng.standard_normal(n) > 0).astype(int)
    return GaussianProcessClassifier(1.0 * RBF(1.0), hyperprior="hierarchical").fit(X, y), X, y


def test_tuned_curve_ends_at_leave_one_out():
    """At the size of the table a curve is the leave-one-out that counts the tuning."""
    clf, X, y = tuned_classifier()
    curve = learning_curve(clf, X, y, train_sizes=[20, len(y)], tol=1e-6)
    own = -np.log(clf.loo_proba_[np.arange(len(y)), y])
    # The tolerance of the theory's equations.
    np.testing.assert_allclose(curve.point_log_loss[-1], own, atol=1e-4)


def test_tuning_has_a_price():
    """Counting the tuning raises the loss at every size."""
    clf, X, y = tuned_classifier()
    sizes = [20, 40, len(y)]
    tuned = learning_curve(clf, X, y, train_sizes=sizes).test_log_loss
    fixed = learning_curve(clf, X, y, train_sizes=sizes, retune=False).test_log_loss
    assert np.all(tuned > fixed)


def test_fixed_kernel_pays_no_price():
    """Without tuning there is nothing to count."""
    _, X, y = tuned_classifier()
    clf = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None).fit(X, y)
    both = [learning_curve(clf, X, y, train_sizes=[30], retune=r).test_log_loss for r in (0, 1)]
    np.testing.assert_array_equal(*both)
