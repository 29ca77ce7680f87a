"""Several classes at once on inducing points: the dense model, blocks of rows, and refits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from cavity.inference import EP, Laplace, Naive, Problem, Variational
from cavity.kernels import rule
from cavity.likelihoods import Probit
from cavity.priors import AsDifferences, ClassInducingPrior, ClassLabels, ClassPrior, InducingPrior
from cavity.rows import Coded, MemoryBlocks
from cavity.sites import Rows

METHODS = [
    EP(tol=1e-11),
    EP(tol=1e-11, power=0.5),
    Laplace(tol=1e-11),
    Naive(tol=1e-11),
    Variational(tol=1e-10),
]
KERNEL = 2.0 * RBF(0.8)
NOISY = KERNEL + WhiteKernel(0.3)


def table(n_classes, n=24, seed=0):
    """Inputs, class codes with every class in them, and weights of one and two."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return rng.standard_normal((n, 2)), codes, 1.0 + np.arange(n) % 2


def dense(method, X, codes, weight, n_classes, kernel=KERNEL):
    """The same without inducing points."""
    labels = ClassLabels.of(codes, n_classes, weight)
    prior = ClassPrior.of(rule(kernel), X, labels)
    return method.fit(Problem(Probit(), prior, labels.rows(weight)))


def on_points(method, Z, rows, n_classes, kernel=KERNEL, theta=None):
    """The inference of all classes at once, of rows in one block or in several."""
    here = rule(kernel) if theta is None else rule(kernel).with_theta(theta)
    prior = ClassInducingPrior.of(here, Z, n_classes, whole=not method.bounds)
    view = AsDifferences(n_classes)
    blocks = view(rows) if isinstance(rows, Rows) else Coded(rows, np.asarray, view)
    return method.fit(Problem(Probit(), prior, blocks))


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_all_points_are_no_points(method, n_classes):
    """With every row an inducing point, all is as under the covariance matrix."""
    X, codes, w = table(n_classes)
    got = on_points(method, X, Rows(codes, w, X), n_classes)
    want = dense(method, X, codes, w, n_classes)
    # Both are solved to 1e-10 or better.
    assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-10)
    assert_allclose(got.gradient(), want.gradient(), rtol=1e-8, atol=1e-9)
    new = X + 0.2
    for a, b in zip(
        (*got.cavities, *got.posterior.at(new)),
        (*want.cavities, *want.posterior.at(new)),
        strict=True,
    ):
        assert_allclose(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kernel", [KERNEL, NOISY], ids=["plain", "noisy"])
@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_gradient_is_the_slope_of_the_evidence(method, kernel):
    """With few points, too, the gradient agrees with differences of the evidence."""
    X, codes, w = table(3)
    rows, theta, h = Rows(codes, w, X), rule(kernel).theta, 1e-3

    def change(step):
        up, down = (on_points(method, X[:6], rows, 3, kernel, theta + s) for s in (step, -step))
        return up.log_evidence - down.log_evidence

    slope = [(8.0 * change(e) - change(2.0 * e)) / (12.0 * h) for e in h * np.eye(len(theta))]
    # Differences of fourth order.
    assert_allclose(
        on_points(method, X[:6], rows, 3, kernel).gradient(), slope, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_blocks_are_memory(method):
    """Rows in blocks give what they give in one."""
    X, codes, w = table(4)
    one = on_points(method, X[:7], Rows(codes, w, X), 4)
    some = on_points(method, X[:7], MemoryBlocks(Rows(codes, w, X), 7), 4)
    # Solved to 1e-10 or better.
    assert some.log_evidence == pytest.approx(one.log_evidence, rel=1e-10)
    assert_allclose(some.gradient(), one.gradient(), rtol=1e-8, atol=1e-9)
    for a, b in zip(some.cavities, one.cavities, strict=True):
        assert_allclose(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_weight_is_a_repeated_row(method):
    """Where the points leave nothing over, weights give what repeated rows give."""
    X, codes, w = table(4, 16)
    rows = np.repeat(np.arange(16), w.astype(int))
    few = on_points(method, X, Rows(codes, w, X), 4)
    many = on_points(method, X, Rows(codes[rows], np.ones(len(rows)), X[rows]), 4)
    # Solved to 1e-10 or better.
    assert many.log_evidence == pytest.approx(few.log_evidence, rel=1e-9)
    assert_allclose(many.gradient(), few.gradient(), rtol=1e-7, atol=1e-8)
    for a, b in zip(many.cavities, few.cavities, strict=True):
        assert_allclose(a, b[rows], rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_rows_that_count_less_than_once(method):
    """Weights below one are those of the model without inducing points."""
    X, codes, w = table(3)
    few = on_points(method, X, Rows(codes, 0.3 * w, X), 3)
    want = dense(method, X, codes, 0.3 * w, 3)
    assert few.log_evidence == pytest.approx(want.log_evidence, rel=1e-9)
    assert_allclose(few.gradient(), want.gradient(), rtol=1e-7, atol=1e-8)


def test_two_classes_are_the_binary_probit():
    """Two functions seen through their difference are one on the same points."""
    X, codes, w = table(2)
    method = EP(tol=1e-12)
    fit = on_points(method, X[:6], Rows(codes, w * 0.0 + 1.0, X), 2)
    binary = InducingPrior.of(rule(KERNEL), X[:6])
    one = method.fit(Problem(Probit(), binary, Rows(2.0 * codes - 1.0, 0.0 * w + 1.0, X)))
    assert fit.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)
    assert_allclose(fit.gradient(), one.gradient(), rtol=1e-9, atol=1e-11)
    both, alone = fit.posterior.at(X + 0.1), one.posterior.at(X + 0.1)
    # The difference has twice the variance, and so have the two noises.
    assert_allclose((both.mean[:, 1] - both.mean[:, 0]) / np.sqrt(2.0), alone.mean, rtol=1e-9)
    contrast = np.array([-1.0, 1.0])
    spread = np.einsum("c,icd,d->i", contrast, both.covariance, contrast)
    assert_allclose(0.5 * spread, alone.variance, rtol=1e-9)


@pytest.mark.parametrize("kernel", [KERNEL, NOISY], ids=["plain", "noisy"])
@pytest.mark.parametrize("method", [EP(tol=1e-10), Variational(tol=1e-10)], ids=lambda m: m.name)
def test_left_out_rows_are_those_of_refits(method, kernel):
    """With few points, too, a row's differences are those that a fit without it predicts."""
    X, codes, _ = table(3, 60)
    whole = Rows(codes, np.ones(60), X)
    left_out = on_points(method, X[:6], whole, 3, kernel).cavities
    far = []
    for i in range(6, 60, 9):
        rest = np.delete(np.arange(60), i)
        part = Rows(codes[rest], np.ones(59), X[rest])
        q = on_points(method, X[:6], part, 3, kernel).posterior.at(X[i : i + 1])
        for contrast in np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]):
            variance = contrast @ q.covariance[0] @ contrast
            mean = contrast @ (left_out.mean[i] - q.mean[0])
            own = contrast @ left_out.covariance[i] @ contrast
            far.append([mean / np.sqrt(variance), own / variance - 1.0])
    # What the others' sites do without the row is of second order.
    assert np.max(np.abs(far)) < 0.2
    assert np.median(np.abs(far)) < 0.02


def test_draws_have_the_moments_of_predictions():
    """Functions drawn from the posterior have its means and covariances."""
    X, codes, w = table(3, 40)
    posterior = on_points(EP(), X[:8], Rows(codes, w, X), 3).posterior
    new, count = X[:3] + 0.3, 40_000
    cross, prior = posterior.prior.cross(new), rule(KERNEL).matrix(new, new)
    drawn = posterior.draw(cross, prior, count, np.random.default_rng(0))
    q = posterior.at(new)
    # Five standard errors.
    assert_allclose(drawn.mean(axis=1).T, q.mean, atol=5.0 * np.sqrt(2.0 / count))
    off = drawn - drawn.mean(axis=1, keepdims=True)
    found = np.einsum("cki,dki->icd", off, off) / count
    assert_allclose(found, q.covariance, atol=5.0 * 2.0 * np.sqrt(2.0 / count))


def test_bound_grows_with_the_points():
    """The variational evidence is below that of all points, and nearer to it the more there are."""
    X, codes, w = table(3, 40)
    rows, method = Rows(codes, w, X), Variational(tol=1e-9)
    found = [on_points(method, X[:m], rows, 3).log_evidence for m in (3, 8, 20, 40)]
    assert np.all(np.diff(found) > 0.0)
    assert found[-1] == pytest.approx(dense(method, X, codes, w, 3).log_evidence, rel=1e-8)


def test_nothing_is_said_about_the_mean_of_the_classes():
    """Without data, predictions are the prior's; with data, the classes' mean still is."""
    X, codes, w = table(4)
    prior = ClassInducingPrior.of(rule(KERNEL), X[:5], 4)
    before = prior.condition().at(X)
    assert_allclose(before.covariance, np.broadcast_to(2.0 * np.eye(4), (24, 4, 4)), atol=1e-12)
    after = on_points(EP(), X[:5], Rows(codes, w, X), 4).posterior.at(X)
    assert_allclose(after.mean.sum(axis=1), 0.0, atol=1e-12)
    assert_allclose(after.covariance.mean(axis=(1, 2)), 0.5, rtol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 10])
def test_few_rounds_are_enough(n_classes):
    """Updating all differences at once takes not many more rounds than a binary problem."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((600, 3))
    codes = np.argmax(X @ rng.standard_normal((3, n_classes)), axis=1)
    kernel = 100.0 * RBF(2.0)
    fit = on_points(EP(), X[:40], Rows(codes, np.ones(600), X), n_classes, kernel)
    labels = np.where(codes == 0, 1.0, -1.0)
    binary = InducingPrior.of(rule(kernel), X[:40])
    one = EP().fit(Problem(Probit(), binary, Rows(labels, np.ones(600), X)))
    assert fit.report.converged
    # 53 rounds beside 23 with ten classes that do not overlap, under a wide prior.
    assert fit.report.n_iter <= 3 * one.report.n_iter
