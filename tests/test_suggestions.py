"""Rows to label next: what they are expected to gain is what they gain in a slow computation."""

import itertools

import numpy as np
import pytest
from scipy.special import xlogy
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, learning_curve, suggest
from cavity.likelihoods import Ordinal, Probit
from cavity.model_selection.outcomes import ClassOutcomes, Prospect

SMOOTH = 2.0 * RBF(1.2)


def entropy(p):
    return -np.sum(xlogy(p, p), axis=-1)


def classifier(X, y, kernel=SMOOTH, **options):
    return GaussianProcessClassifier(kernel, optimizer=None, **options).fit(X, y)


def regressor(X, y, kernel=SMOOTH, **options):
    options = {"alpha": 0.1, **options}
    return GaussianProcessRegressor(kernel, optimizer=None, **options).fit(X, y)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((25, 2))
    y = (X[:, 0] + 0.3 * rng.standard_normal(25) > 0).astype(int)
    return X, y, 1.5 * rng.standard_normal((12, 2)), 1.5 * rng.standard_normal((60, 2))


def refitted_gain(X, y, rows, target):
    """By how much the expected log loss falls, over all labels of these rows, each refitted."""
    now = entropy(classifier(X, y).predict_proba(target)).mean()
    after = 0.0
    for labels in itertools.product((0, 1), repeat=len(rows)):
        p, known, seen = 1.0, (X, y), classifier(X, y)
        for row, label in zip(rows, labels, strict=True):
            p *= seen.predict_proba(row[None])[0, label]
            known = np.vstack([known[0], row]), np.append(known[1], label)
            seen = classifier(*known)
        after += p * entropy(seen.predict_proba(target)).mean()
    return now - after


def test_gains_are_those_of_refits_with_each_label(problem):
    """One row's gain is the mean fall of the entropy over refits with either label."""
    X, y, pool, target = problem
    truth = np.array([refitted_gain(X, y, [row], target) for row in pool])
    clf = classifier(X, y)
    found = np.array([suggest(clf, row[None], 1, X_target=target).gain for row in pool])
    # The two jumps of a mean are taken for Gaussian ones, and the other sites stay as they are.
    np.testing.assert_allclose(found, truth, rtol=0.15)
    assert np.corrcoef(found, truth)[0, 1] > 0.995
    best = suggest(clf, pool, 1, criterion="error", X_target=target)
    assert best.index[0] == np.argmax(truth)


def test_gains_of_several_rows_add_up(problem):
    """The gains of three rows sum to what all eight combinations of their labels gain."""
    X, y, pool, target = problem
    found = suggest(classifier(X, y), pool, 3, criterion="error", X_target=target)
    truth = refitted_gain(X, y, list(pool[found.index]), target)
    # As above, and updates are averages over labels.
    assert found.gain == pytest.approx(truth, rel=0.15)
    assert found.loss - found.loss_after == pytest.approx(found.gain, rel=1e-3)


@pytest.mark.parametrize("kernel", [SMOOTH, SMOOTH + WhiteKernel(0.2)])
@pytest.mark.parametrize("options", [{}, {"normalize_y": True}])
def test_squared_error_falls_by_the_variance(problem, kernel, options):
    """A regressor's gains are the fall of its variance, whatever the targets turn out to be."""
    X, y, pool, target = problem
    reg = regressor(X, 10.0 * y, kernel, **options)
    found = suggest(reg, pool, 3, criterion="error", X_target=target)
    scale = np.std(10.0 * y) if options else 1.0
    known = X, 10.0 * y
    for place, gain in zip(found.index, [row.gain for row in found], strict=True):
        before = regressor(*known, kernel).predict(target, return_std=True)[1] ** 2
        known = np.vstack([known[0], pool[place]]), np.append(known[1], 3.0)
        after = regressor(*known, kernel).predict(target, return_std=True)[1] ** 2
        assert gain == pytest.approx(scale**2 * np.mean(before - after), rel=1e-8)


def test_information_of_numbers_is_half_a_log_determinant(problem):
    """What Gaussian labels say, row by row, sums to ½ log det(I + Σ/noise)."""
    X, y, pool, _ = problem
    reg = regressor(X, y)
    found = suggest(reg, pool, len(pool))
    cov = reg.predict(pool, return_cov=True)[1]
    joint = 0.5 * np.linalg.slogdet(np.eye(len(pool)) + cov / 0.1)[1]
    assert found.information == pytest.approx(joint, rel=1e-8)


@pytest.mark.parametrize("make", [classifier, regressor])
def test_information_never_grows(problem, make):
    """The more rows are labelled, the less another one can say: greedy gains do not increase."""
    X, y, pool, target = problem
    rows = np.vstack([pool, target])
    gains = [row.information for row in suggest(make(X, y), rows, 30)]
    assert np.all(np.diff(gains) <= 1e-12)


def test_information_of_one_class_label(problem):
    """A label's information is its entropy less its expected entropy once the value is known."""
    X, y, pool, _ = problem
    clf = classifier(X, y)
    f, probit = np.linspace(-12.0, 12.0, 4001), Probit()
    for row in pool:
        mean, variance = (part[0] for part in clf.latent_mean_and_variance(row[None]))
        density = np.exp(-0.5 * (f - mean) ** 2 / variance)
        p = np.exp(probit.log_prob(1.0, f))
        known = entropy(np.stack([p, 1.0 - p], axis=1)) @ density / density.sum()
        truth = entropy(clf.predict_proba(row[None]))[0] - known
        found = suggest(clf, row[None], 1).information
        # A trapezoidal rule of 33 nodes.
        assert found == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("likelihood", ["probit", "logit"])
def test_slope_is_that_of_the_loss(likelihood):
    """Half the expected precision is by how much the loss falls as variance turns into spread."""
    from cavity.likelihoods import REGISTRY

    outcomes = ClassOutcomes(REGISTRY[likelihood](), (-1.0, 1.0))
    mean, total, h = np.array([0.0, 0.7, -2.0]), np.array([1.0, 3.0, 0.5]), 1e-3
    at = [outcomes.loss(Prospect(mean, total * s, total * (1.0 - s))) for s in (0.4 - h, 0.4 + h)]
    here = Prospect(mean, 0.4 * total, 0.6 * total)
    # Central differences; the logit's own averages are quadratures of five digits.
    np.testing.assert_allclose((at[0] - at[1]) / (2.0 * h * total), outcomes.slope(here), rtol=3e-4)


@pytest.mark.parametrize("criterion", ["error", "information"])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_duplicates_are_not_chosen_twice(problem, make, criterion):
    """Of five places with six equal rows each, five suggestions have one row each."""
    X, y, _, _ = problem
    rng = np.random.default_rng(3)
    places = 6.0 * np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [0.0, 2.0]])
    order = rng.permutation(30)
    pool = np.repeat(places, 6, axis=0)[order]
    target = np.repeat(places, 4, axis=0) + 0.5 * rng.standard_normal((20, 2))
    found = suggest(make(X, y), pool, 5, criterion=criterion, X_target=target)
    assert len(np.unique(np.repeat(np.arange(5), 6)[order][found.index])) == 5


def test_inducing_points_at_all_rows_change_nothing(problem):
    """With every row an inducing point, suggestions are those of the covariance matrix."""
    X, y, pool, _ = problem
    dense = suggest(classifier(X, y), pool, 4, criterion="error")
    sparse = suggest(classifier(X, y, inducing_points=X), pool, 4, criterion="error")
    np.testing.assert_array_equal(sparse.index, dense.index)
    # The inducing points' covariance is inverted.
    np.testing.assert_allclose([row.gain for row in sparse], [row.gain for row in dense], rtol=1e-6)


def test_several_classes_count_half_of_each(problem):
    """The gain of a row in three classes is half the sum of those of the binary problems."""
    X, y, pool, target = problem
    z = y + (X[:, 1] > 0.5)
    three = classifier(X, z)
    each = [classifier(X, z == c) for c in range(3)]
    for row in pool[:4]:
        parts = [suggest(clf, row[None], 1, X_target=target).gain for clf in each]
        found = suggest(three, row[None], 1, X_target=target).gain
        assert found == pytest.approx(0.5 * sum(parts), rel=1e-10)


def test_classes_in_order_are_labels_of_one_function(problem):
    """Of ordered classes, a row's gain is the mean fall of the entropy over refits with each."""
    X, _, pool, target = problem
    z, kernel = np.digitize(X[:, 0], [-0.5, 0.5]), 1.0 * RBF(1.5)
    known = Ordinal(thresholds=(-0.5, 0.5), thresholds_bounds="fixed")

    def fit(X, z):
        return classifier(X, z, kernel, likelihood=known)

    clf = fit(X, z)
    now, row = entropy(clf.predict_proba(target)).mean(), pool[0]
    p = clf.predict_proba(row[None])[0]
    after = [fit(np.vstack([X, row]), np.append(z, c)).predict_proba(target) for c in range(3)]
    truth = now - p @ [entropy(part).mean() for part in after]
    # As for two classes.
    assert suggest(clf, row[None], 1, X_target=target).gain == pytest.approx(truth, rel=0.15)


def test_equal_rows_are_worth_one_random_row_each():
    """Where every row of the pool is as good as any other, each is worth one random row."""
    X = 100.0 * np.arange(30.0)[:, None]
    reg = regressor(X[:10], np.zeros(10))
    found = suggest(reg, X[10:], 6, X_target=X[10:])
    np.testing.assert_allclose([row.worth for row in found], 1.0, rtol=1e-9)
    assert found.worth == pytest.approx(6.0)


def test_best_rows_are_worth_several_random_ones(problem):
    """Most of this pool is where the answers are known: good rows are worth many random ones."""
    X, y, _, target = problem
    rng = np.random.default_rng(0)
    pool = np.vstack([0.1 * rng.standard_normal((95, 2)), 2.0 * target[:5]])
    found = suggest(regressor(X, y), pool, 3, criterion="error", X_target=target)
    assert np.all(found.index >= 95)
    assert found.worth > 9.0


@pytest.mark.parametrize("criterion", ["error", "information"])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_loss_falls_by_the_gains(problem, make, criterion):
    """The loss of the pool falls by what its rows say of each other, not of themselves."""
    X, y, pool, _ = problem
    found = suggest(make(X, y), pool, 4, criterion=criterion)
    assert found.loss - found.loss_after == pytest.approx(sum(row.gain for row in found), rel=1e-9)
    # Far from each other, labels say nothing of other rows.
    apart = 1e3 * np.arange(10.0)[:, None] * np.ones(2)
    alone = suggest(make(X, y), apart, 4, criterion=criterion)
    assert alone.loss_after == pytest.approx(alone.loss, rel=1e-12)
    assert "by 0.0 %" in alone.verdict


def test_stop_sign_is_not_about_the_rows_themselves():
    """Labels of rows that have nothing to do with each other lower no other row's loss: stop."""
    rng = np.random.default_rng(0)
    X, pool = rng.uniform(-1.0, 1.0, (60, 1)), rng.uniform(-1.0, 1.0, (10, 1))
    model = regressor(X, rng.standard_normal(60), RBF(1e-6), alpha=1.0)
    found, of_others = (suggest(model, pool, 5, X_target=t) for t in (None, pool + 0.5))
    assert found.gain == 0.0
    assert found.stop
    assert found.loss_after == found.loss
    assert found.verdict == of_others.verdict


def test_stop_sign_when_labels_change_nothing(problem):
    """At the start labels are worth it; with many rows of a simple rule they no longer are."""
    X, y, pool, target = problem
    assert not suggest(classifier(X, y), pool, 5, X_target=target).stop
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 2))
    reg = regressor(X, X[:, 0])
    found = suggest(reg, X[:50] + 0.01, 5)
    assert found.stop
    assert "stop" in found.verdict
    assert "stop" in repr(found)
    few = suggest(regressor(X[:40], X[:40, 0]), X[:40] + 0.01, 1)
    assert not few.stop
    assert "a model of 40 rows may be wrong about that: go on" in few.verdict


def test_a_curve_decides_on_the_stop_sign(problem):
    """Given a learning curve, its forecast is what the stop sign follows."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 2))
    noise = rng.integers(0, 2, 60)
    clf = classifier(X, noise)
    curve = learning_curve(clf, X, noise, train_sizes=[20, 60])
    found = suggest(clf, problem[3], 5, curve=curve)
    now, then = curve.forecast([60, 60 + min(found.worth, 200)], "log_loss").value
    assert found.stop == ((now - then) / now < 0.01)
    assert "the curve" in found.verdict


def test_a_pipeline_transforms_the_pool(problem):
    """A pipeline's suggestions are those of its last step for transformed rows."""
    X, y, pool, _ = problem
    pipe = make_pipeline(StandardScaler(), GaussianProcessClassifier(SMOOTH, optimizer=None))
    pipe.fit(100.0 * X, y)
    found = suggest(pipe, 100.0 * pool, 3)
    alone = suggest(pipe[-1], pipe[0].transform(100.0 * pool), 3)
    np.testing.assert_array_equal(found.index, alone.index)


def test_many_rows_are_a_sample(problem):
    """Of more than 10,000 rows some are left out, and the rows named are those of the pool."""
    X, y, _, target = problem
    pool = np.zeros((10_500, 2))
    pool[::2] = [4.0, 0.0]
    found = suggest(classifier(X, y), pool, 2, X_target=3.0 * target)
    assert np.all(found.index % 2 == 0)
    assert found.index.max() < len(pool)
    assert found.to_frame().shape == (2, 3)


def test_the_same_question_has_the_same_answer(problem):
    """Rows are drawn by a seed."""
    X, y, pool, _ = problem
    first, second = (suggest(classifier(X, y), pool, 4, random_state=7) for _ in range(2))
    assert first == second


def test_what_cannot_be_asked(problem):
    """Every wrong question has an answer that says what to do."""
    X, y, pool, _ = problem
    clf = classifier(X, y)
    with pytest.raises(ValueError, match="between 1 and the 12 rows of the pool; got 13"):
        suggest(clf, pool, 13)
    with pytest.raises(ValueError, match="k must lie between"):
        suggest(clf, pool, 2.5)
    with pytest.raises(ValueError, match="criterion must be one of information, error; got 'luck'"):
        suggest(clf, pool, 2, criterion="luck")
    broken = pool.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        suggest(clf, broken, 2)
    with pytest.raises(ValueError, match=r"3 features, but .* expecting 2"):
        suggest(clf, np.ones((5, 3)), 2)
    with pytest.raises(ValueError, match=r"3 features, but .* expecting 2"):
        suggest(clf, pool, 2, X_target=np.ones((5, 3)))
    with pytest.raises(ValueError, match="curve must be what learning_curve returns; got int"):
        suggest(clf, pool, 2, curve=3)
    with pytest.raises(NotFittedError, match="call fit first"):
        suggest(GaussianProcessClassifier(), pool, 2)
    with pytest.raises(ValueError, match="suggest needs a cavity"):
        suggest(LogisticRegression().fit(X, y), pool, 2)


def test_models_that_cannot_answer(problem):
    """Models without probabilities, covariances or Gaussian noise say so."""
    X, y, pool, _ = problem
    pairs = classifier(X, y + (X[:, 1] > 0.5), multi_class="one_vs_one")
    with pytest.raises(ValueError, match="one_vs_rest"):
        suggest(pairs, pool, 2)
    joint = classifier(X, y + (X[:, 1] > 0.5), multi_class="multinomial")
    with pytest.raises(ValueError, match="one_vs_rest"):
        suggest(joint, pool, 2)
    given = classifier(SMOOTH(X), y, "precomputed")
    with pytest.raises(ValueError, match="kernel object"):
        suggest(given, SMOOTH(pool, X), 2)
    counts = regressor(X, y, alpha=1e-10, likelihood="poisson")
    with pytest.raises(ValueError, match="Gaussian noise"):
        suggest(counts, pool, 2)
    uneven = regressor(X, y, alpha=np.linspace(0.1, 0.2, len(X)))
    with pytest.raises(ValueError, match="alpha differs"):
        suggest(uneven, pool, 2)
