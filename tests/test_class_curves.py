"""Averages over training sets of several classes at once, against slow truths."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

from cavity import GaussianProcessClassifier, learning_curve, simulate_learning_curve
from cavity.likelihoods import Probit
from cavity.likelihoods.multinomial import class_log_proba, orthant
from cavity.priors import DensePrior
from cavity.resampling import (
    LAWS,
    BinaryScores,
    ClassAverages,
    ClassPool,
    JointScores,
    Pool,
    check_size,
    solve_class_sizes,
    solve_sizes,
)
from cavity.resampling.label_sizes import AveragedLabels, ClassCoordinates, LabelPosterior
from cavity.resampling.labels import LabelSites, RepeatedLabels, even_draws, helmert, root
from cavity.sites import ClassMarginals

OPTIONS = {"tol": 1e-5, "max_iter": 100}


def three_classes(n=45, n_classes=3):
    """Return inputs of overlapping classes, and their codes."""
    rng = np.random.default_rng(5)
    y = np.arange(n) % n_classes
    return 1.5 * np.eye(n_classes)[y] + rng.normal(size=(n, n_classes)), y


def pool_of(n=45, n_classes=3):
    """Return a pool of that many examples."""
    X, y = three_classes(n, n_classes)
    return ClassPool(DensePrior((3.0 * RBF(2.0))(X)), y, n_classes, np.full(n, 1.0 / n))


def random_sites(n, D, rng):
    """Return sites without any structure but symmetry."""
    A, W = rng.normal(size=(2, n, D, D))
    return LabelSites(A @ A.swapaxes(1, 2), rng.normal(size=(n, D)), 0.1 * W @ W.swapaxes(1, 2))


@pytest.mark.parametrize("law", list(LAWS))
def test_two_classes_are_the_binary_probit(law):
    """With two classes the averages and the scores are those of the binary theory."""
    n = 40
    X, y = three_classes(n, 2)
    K, share = (3.0 * RBF(2.0))(X), np.full(n, 1.0 / n)
    binary = Pool(DensePrior(K), np.where(y == 0, 1.0, -1.0), Probit(), share)
    sizes = np.array([10.0, 30.0])
    ours = solve_class_sizes(ClassPool(DensePrior(K), y, 2, share), sizes, law, **OPTIONS)
    theirs = solve_sizes(binary, sizes, law, "cavity", **OPTIONS)
    H = helmert(2)[:, 0]
    for a, b in zip(ours, theirs, strict=True):
        # 32 even fields for twelve Gauss nodes.
        R, G, V = a.held_out.R @ H, H @ a.held_out.G @ H, H @ a.held_out.V @ H
        assert pytest.approx(b.held_out.R, abs=2e-3) == R
        assert pytest.approx(b.held_out.G, rel=2e-3) == G
        assert pytest.approx(b.held_out.V, rel=0.02, abs=2e-3) == V
        joint = JointScores([ClassPool(DensePrior(K), y, 2, share)]).held_out([a.held_out])
        alone = BinaryScores([binary]).held_out([b.held_out])
        assert np.mean(joint.log_loss) == pytest.approx(np.mean(alone.log_loss), rel=2e-3)
        assert np.mean(joint.brier) == pytest.approx(np.mean(alone.brier), rel=2e-3)
        assert np.mean(joint.error) == pytest.approx(np.mean(alone.error), abs=5e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_copies_of_a_label_are_rows_of_a_table(n_classes):
    """Slope and curvature of s draws are those of one inference with a site for every copy."""
    n, D, s = 5, n_classes - 1, 3
    rng = np.random.default_rng(1)
    codes, A = rng.integers(0, n_classes, n), rng.normal(size=(n, D, D))
    h, G = rng.normal(size=(n, D)), A @ A.swapaxes(1, 2) + np.eye(D)
    repeats = RepeatedLabels(codes, n_classes, np.array([1.0, 3.0]), 1e-11)
    _, (slope, curvature) = repeats(ClassMarginals(h, G))
    E = _differences(codes, n_classes)
    wide = np.concatenate([E] * s, axis=1)
    own = np.kron(np.eye(s), np.ones((D, D)))
    Q, m = wide @ G @ wide.swapaxes(1, 2), (wide @ h[:, :, None])[:, :, 0]
    found = orthant(m, Q + own)
    tau, nu = found.sites
    pull = (nu - tau * found.mean)[:, :, None]
    held = tau[:, :, None] * (np.eye(s * D) - found.covariance * tau[:, None, :])
    # Two iterations of the same equations, both to a residual of about 1e-10.
    assert slope == pytest.approx((wide.swapaxes(1, 2) @ pull)[:, :, 0], abs=1e-7)
    assert curvature == pytest.approx(-wide.swapaxes(1, 2) @ held @ wide, abs=1e-7)


def _differences(codes, n_classes):
    unit = np.eye(n_classes)
    rows = [[unit[c] - unit[j] for j in range(n_classes) if j != c] for c in codes]
    return np.array(rows) @ helmert(n_classes)


def test_posterior_of_blocks_is_the_inverse():
    """Blocks of (K⁻¹ ⊗ I + diag U)⁻¹, and averages with and without each example's own site."""
    n, D = 6, 2
    rng = np.random.default_rng(2)
    prior, sites = pool_of(n).prior, random_sites(n, D, rng)
    wide = np.kron(prior.K, np.eye(D))
    blocks = np.zeros((n, D, n, D))
    blocks[np.arange(n), :, np.arange(n), :] = sites.u
    U = blocks.reshape(n * D, n * D)
    truth = np.linalg.inv(np.linalg.inv(wide) + U).reshape(n, D, n, D)
    # The inverse of K loses some digits.
    assert LabelPosterior(prior.K, sites.u).covariance() == pytest.approx(truth, abs=1e-8)
    found = AveragedLabels(prior, sites)
    V = sum(truth[:, :, j] @ sites.w[j] @ truth[:, :, j].swapaxes(1, 2) for j in range(n))
    assert pytest.approx(V, abs=1e-8) == found.pool.V
    others = LabelSites(
        *(np.concatenate([part[:2], 0.0 * part[2:3], part[3:]]) for part in sites[:3])
    )
    without = AveragedLabels(prior, others)
    for ours, theirs in zip(found.held_out[:3], without.pool[:3], strict=True):
        assert ours[2] == pytest.approx(theirs[2], abs=1e-8)


def test_new_inputs_equal_to_the_pool_have_its_averages():
    """Averages at the pool's own inputs, as new ones, are those of the pool."""
    pool = pool_of(30)
    for law, size in (("subsample", 12.0), ("bootstrap", 30.0)):
        [found] = solve_class_sizes(pool, np.array([size]), law, tol=1e-3, max_iter=50)
        there = found.at(pool.prior, pool.prior.K, pool.prior.diag)
        for ours, theirs in zip(there, found.pool, strict=True):
            # Both are exact at the same sites.
            assert (ours is None and theirs is None) or ours == pytest.approx(theirs, abs=1e-8)


def test_nothing_is_learned_from_nothing():
    """For very small training sets the averages are those of the prior."""
    pool = pool_of(30)
    [found] = solve_class_sizes(pool, np.array([1e-6]), "subsample", **OPTIONS)
    # One expected draw in a million.
    assert pytest.approx(pool.prior.diag[:, None, None] * np.eye(3), abs=1e-5) == found.held_out.G
    scores = JointScores([pool]).held_out([found.held_out])
    assert scores.log_loss == pytest.approx(np.log(3.0), abs=1e-5)


def test_scores_are_averages_over_correlated_fields():
    """Held-out scores agree with a plain Monte Carlo average of exact class probabilities."""
    rng = np.random.default_rng(3)
    pool = pool_of(3)
    A, B = rng.normal(size=(2, 3, 3, 3))
    H = helmert(3) @ helmert(3).T
    c = ClassAverages(
        A @ A.swapaxes(1, 2), rng.normal(size=(3, 3)) @ H, H @ B @ B.swapaxes(1, 2) @ H
    )
    found = JointScores([pool]).held_out([c])
    count = 400
    fields = c.R + np.einsum("nab,qnb->qna", root(c.V), rng.normal(size=(count, 3, 3)))
    flat = ClassMarginals(fields.reshape(-1, 3), np.tile(c.G, (count, 1, 1)))
    log_p = class_log_proba(flat).reshape(count, 3, 3)[:, np.arange(3), pool.codes]
    se = log_p.std(axis=0) / np.sqrt(count)
    # Four standard errors, and what EP leaves of the probabilities.
    assert np.all(np.abs(found.log_loss + log_p.mean(axis=0)) < 4.0 * se + 2e-3)
    assert found.support == pytest.approx(np.log(np.mean(np.exp(log_p), axis=0)), abs=0.2)


def test_even_draws_have_the_moments_of_a_normal():
    """Their mean is zero and their covariance one, exactly; there are enough in any dimension."""
    for k, count in ((1, 32), (2, 32), (19, 32)):
        x = even_draws(k, count)
        assert len(x) >= count
        # Rounding.
        assert x.mean(axis=0) == pytest.approx(0.0, abs=1e-12)
        assert x.T @ x / len(x) == pytest.approx(np.eye(k), abs=1e-12)


def test_averages_survive_being_packed():
    """A vector and back leaves averages as they were."""
    pool = pool_of(8)
    rng = np.random.default_rng(4)
    found = AveragedLabels(pool.prior, random_sites(8, 2, rng)).held_out
    to = ClassCoordinates(pool.prior.diag, 2)
    for ours, theirs in zip(to.unpack(to.pack(found))[:3], found[:3], strict=True):
        # Two eigendecompositions.
        assert ours == pytest.approx(theirs, abs=1e-10)


def test_too_many_examples_are_refused_with_a_remedy():
    """The error names the limit, what came, and what to do."""
    check_size(2000, 3)
    with pytest.raises(ValueError, match=r"at most 4,000; 2,001 examples of 3 classes have 4,002"):
        check_size(2001, 3)


@pytest.fixture(scope="module")
def fitted():
    """Return three classes, and a model of all of them whose kernel is tuned on the table."""
    X, y = three_classes(60)
    kernel = 2.0 * RBF([2.0, 2.0, 2.0], (1e-2, 1e4))
    model = GaussianProcessClassifier(kernel, multi_class="multinomial", hyperprior="hierarchical")
    return X, np.array(["a", "b", "c"])[y], model.fit(X, np.array(["a", "b", "c"])[y])


def test_curve_ends_at_the_leave_one_out(fitted):
    """At m = n the curve is the estimator's leave-one-out, with and without the tuning."""
    X, y, model = fitted
    codes = np.searchsorted(model.classes_, y)
    for retune, proba in ((False, model.fixed_kernel_loo_proba_), (True, model.loo_proba_)):
        curve = learning_curve(model, X, y, train_sizes=[len(y)], retune=retune, n_kernels=0)
        loss = -np.log(proba[np.arange(len(y)), codes])
        # The curve's class probabilities are EP's, those of three classes exact: .001.
        assert curve.point_log_loss[0] == pytest.approx(loss, abs=4e-3)
        assert curve.test_log_loss[0] == pytest.approx(np.mean(loss), abs=1e-3)
        now = curve.forecast(len(y), "log_loss").value
        assert now == pytest.approx(curve.test_log_loss[0], abs=1e-3)


def test_tuning_on_fewer_rows_has_a_price(fitted):
    """With a hierarchical prior the kernel is tuned again on parts of the table."""
    X, y, model = fitted
    sizes = {"train_sizes": [15, 30], "n_kernels": 2}
    again = learning_curve(model, X, y, **sizes)
    fixed = learning_curve(model, X, y, retune=False, **sizes)
    assert np.all(again.test_log_loss > fixed.test_log_loss)


def test_answers_of_a_curve(fitted):
    """Suspects, predictions, the .632 estimate and the table of a curve of all classes."""
    X, y, model = fitted
    wrong = y.copy()
    wrong[[3, 10]] = np.where(wrong[[3, 10]] == "a", "b", "a")
    curve = learning_curve(
        model, X, wrong, train_sizes=[20, 60], resampling="bootstrap", n_kernels=0
    )
    assert {3, 10} & {suspect.index for suspect in curve.suspects(5)}
    assert set(curve.suspects(3)[0].suggestion) <= set("abc")
    mean, variance = curve.predict(X[:4])
    assert mean.shape == variance.shape == (2, 4, 3)
    assert curve.point_mean.shape == (2, 60, 3)
    assert np.all(curve.error_632 < curve.test_error)
    with pytest.raises(ValueError, match="3 classes"):
        curve.measure(lambda p, truth: p)


def test_another_likelihood_is_refused():
    """The theory is that of the multinomial probit; the error says what to do."""
    X, y = three_classes(30)
    model = GaussianProcessClassifier(
        3.0 * RBF(2.0),
        optimizer=None,
        multi_class="multinomial",
        likelihood="logit",
        inference="laplace",
    )
    for curve in (learning_curve, simulate_learning_curve):
        with pytest.raises(ValueError, match=r"likelihood='probit'; got 'logit'\. Use that"):
            curve(model, X, y)


@pytest.mark.parametrize("resampling", list(LAWS))
def test_agrees_with_refits(resampling):
    """The theory is within three standard errors or 6 % of refits with the same kernel."""
    X, y = three_classes(45)
    model = GaussianProcessClassifier(
        3.0 * RBF(2.0), optimizer=None, multi_class="multinomial"
    ).fit(X, y)
    about = {"train_sizes": [15, 36], "resampling": resampling}
    theory = learning_curve(model, X, y, **about)
    refits = simulate_learning_curve(model, X, y, n_repeats=60, random_state=0, **about)
    for name in ("test_error", "test_log_loss", "test_brier", "pool_error", "posterior_variance"):
        ours, truth = getattr(theory, name), getattr(refits, name)
        allowed = np.maximum(3.0 * refits.standard_error[name], 0.06 * truth)
        assert np.all(np.abs(ours - truth) < allowed), name


def test_refits_are_the_estimators_own(fitted):
    """What the simulation predicts is what the estimator predicts, fitted to the same rows."""
    X, y, model = fitted
    curve = simulate_learning_curve(model, X, y, train_sizes=[30], n_repeats=2, random_state=0)
    losses = []
    for out in curve.source.refits[0].absent:
        again = clone(model).set_params(kernel=model.kernel_, hyperprior=None, optimizer=None)
        p = again.fit(X[~out], y[~out]).predict_proba(X[out])
        losses.append(log_loss(y[out], p))
    # Exact class probabilities there, EP's here.
    assert curve.test_log_loss[0] == pytest.approx(np.mean(losses), abs=1e-3)


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_copies_are_solved_in_units_of_the_cavity(size):
    """Slopes are as exact as the tolerance says, however wide the cavities are."""
    rng = np.random.default_rng(2)
    n, codes = 6, np.arange(6) % 3
    R = rng.standard_normal((n, 2, 2))
    G = size * (R @ R.swapaxes(1, 2) + 0.1 * np.eye(2))
    c = ClassMarginals(np.sqrt(size) * rng.standard_normal((n, 2)), G)
    rough, exact = (
        [slope for slope, _ in RepeatedLabels(codes, 3, np.array([1.0, 4.0]), tol)(c)]
        for tol in (1e-4, 1e-10)
    )
    for one, other in zip(rough, exact, strict=True):
        # The last change was below the tolerance; those to come are a few times as large at most.
        assert np.max(np.abs(one - other)) * np.sqrt(size) < 1e-3
