"""Intervals and sets by jackknife+: what they are made of, and that they hold what they promise."""

import warnings

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.datasets import load_pima
from cavity.estimators import load, save
from cavity.rows import MemoryBlocks
from cavity.sites import Rows

FIXED = {"optimizer": None}


def numbers(n=24, seed=0, columns=()):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (n, 1))
    return X, (np.sin(X[:, 0]) + 0.3 * rng.standard_normal((*columns, n))).T


def labels(n=40, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.digitize(X[:, 0] + 0.7 * rng.standard_normal(n), [-0.5, 0.5][: classes - 1])


def jackknife_plus(model, X, y, X_new, level):
    """The paper's interval by refits; distances are in standard deviations."""
    n, low, high = len(y), [], []
    for i in range(n):
        rest = np.arange(n) != i
        without = model.fit(X[rest], y[rest])
        noise = without.alpha
        mean, std = without.predict(np.vstack([X[i : i + 1], X_new]), return_std=True)
        std = np.sqrt(std**2 + noise)
        far = abs(y[i] - mean[0]) / std[0]
        low.append(mean[1:] - far * std[1:])
        high.append(mean[1:] + far * std[1:])
    k = int(np.ceil(level * (n + 1)))
    return np.sort(low, axis=0)[n - k], np.sort(high, axis=0)[k - 1]


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize(
    ("kernel", "alpha"), [(RBF(1.0), 0.09), (RBF(1.0) + WhiteKernel(0.09), 1e-10)]
)
def test_intervals_are_those_of_refits(kernel, alpha, level):
    """With a fixed kernel one fit gives the intervals of n + 1."""
    X, y = numbers()
    X_new = np.linspace(-4.0, 4.0, 7)[:, None]
    model = GaussianProcessRegressor(kernel, alpha=alpha, **FIXED)
    found = model.fit(X, y).predict_interval(X_new, level)
    np.testing.assert_allclose(found, jackknife_plus(model, X, y, X_new, level), rtol=1e-6)


def test_several_targets_are_each_by_themselves():
    """The intervals of each target are those of a model of its own."""
    X, y = numbers(columns=(2,))
    X_new = np.linspace(-2.0, 2.0, 5)[:, None]
    both = GaussianProcessRegressor(RBF(1.0), alpha=0.1, **FIXED).fit(X, y).predict_interval(X_new)
    for k in range(2):
        one = GaussianProcessRegressor(RBF(1.0), alpha=0.1, **FIXED).fit(X, y[:, k])
        np.testing.assert_allclose(
            [side[:, k] for side in both], one.predict_interval(X_new), rtol=1e-9
        )


@pytest.mark.parametrize("normalize", [False, True])
def test_weights_are_copies(normalize):
    """A table gives the same intervals and sets whether it repeats rows or weighs them."""
    X, y = numbers(15)
    w, X_new = np.arange(15) % 3, np.linspace(-3.0, 3.0, 6)[:, None]
    options = {"alpha": 0.1, "normalize_y": normalize, **FIXED}
    weighed = GaussianProcessRegressor(RBF(1.0), **options).fit(X, y, sample_weight=w)
    copied = GaussianProcessRegressor(RBF(1.0), **options).fit(np.repeat(X, w, 0), np.repeat(y, w))
    np.testing.assert_allclose(
        weighed.predict_interval(X_new, 0.8), copied.predict_interval(X_new, 0.8), rtol=1e-8
    )
    c = (y > 0.0).astype(int)
    weighed = GaussianProcessClassifier(RBF(1.0), **FIXED).fit(X, c, sample_weight=w)
    copied = GaussianProcessClassifier(RBF(1.0), **FIXED).fit(np.repeat(X, w, 0), np.repeat(c, w))
    for level in (0.3, 0.6, 0.9):
        np.testing.assert_array_equal(
            weighed.predict_set(X_new, level), copied.predict_set(X_new, level)
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_without_each_row(classes):
    """Sites of other rows hardly move: predictions without a row are close to those of a refit."""
    X, y = labels(classes=classes)
    X_new = np.random.default_rng(1).standard_normal((6, 2))
    options = {"kernel": 2.0 * RBF(1.5), **FIXED}
    model = GaussianProcessClassifier(**options).fit(X, y)
    [process, *_], whole = model._model.processes, positive(model, X_new)
    [q] = process.without_each(X_new)
    for i in range(0, 40, 4):
        rest = np.arange(len(y)) != i
        truth = positive(GaussianProcessClassifier(**options).fit(X[rest], y[rest]), X_new)
        found = ndtr(q.mean[i] / np.sqrt(1.0 + q.variance[i]))
        # What the other sites do in answer is a small part of what the row does.
        assert np.max(np.abs(found - truth)) < 0.15 * np.max(np.abs(truth - whole)) + 1e-3


def positive(model, X):
    """Probability of a label +1 by the first latent function."""
    [q] = model._model.processes[0].predict(X)
    return ndtr(q.mean / np.sqrt(1.0 + q.variance))


def test_sets_count_the_rows_that_are_nearer():
    """A class is in the set if fewer than level (n + 1) rows are nearer to their predictions."""
    X, y = labels()
    X_new = np.random.default_rng(1).standard_normal((20, 2))
    model = GaussianProcessClassifier(2.0 * RBF(1.5), **FIXED).fit(X, y)
    own = model.loo_proba_[np.arange(40), y]
    [process] = model._model.processes
    [q] = process.without_each(X_new)
    second = ndtr(q.mean / np.sqrt(1.0 + q.variance))
    there = np.stack([1.0 - second, second], axis=2)
    expected = np.sum(own[:, None, None] > there, axis=0) < 0.9 * 41
    np.testing.assert_array_equal(model.predict_set(X_new, 0.9), expected)
    narrow = model.predict_set(X_new, 0.2)
    assert np.any(narrow.sum(axis=1) == 0)
    full = model.predict_set(X_new, 0.2, allow_empty=False)
    np.testing.assert_array_equal(full[narrow.any(axis=1)], narrow[narrow.any(axis=1)])
    best = np.argmax(model.predict_proba(X_new), axis=1)
    assert np.all(full[np.arange(20), best])


OTHERS = {
    "wrong noise": lambda rng, x: np.sin(x) + 0.3 * rng.standard_t(2.5, len(x)),
    "growing noise": lambda rng, x: np.sin(x) + 0.3 * np.abs(x) * rng.standard_normal(len(x)),
    "nothing to learn": lambda rng, x: rng.standard_normal(len(x)),
    "a jump": lambda rng, x: np.sign(x) + 0.1 * rng.standard_normal(len(x)),
}


@pytest.mark.parametrize("source", OTHERS)
@pytest.mark.parametrize("level", [0.8, 0.9])
def test_coverage_of_fresh_targets(source, level):
    """Intervals hold about the share they say, whatever the model has wrong; tuned each time."""
    rng, covered = np.random.default_rng(3), []
    for _ in range(12):
        x = rng.uniform(-3.0, 3.0, 460)
        y = OTHERS[source](rng, x)
        kernel = 1.0 * RBF(1.0) + WhiteKernel(0.1, (1e-3, 1e2))
        with warnings.catch_warnings():
            # Without structure a scale ends at its bound, or leave-one-out is not to be trusted.
            warnings.simplefilter("ignore", UserWarning)
            model = GaussianProcessRegressor(kernel, normalize_y=True).fit(x[:60, None], y[:60])
            low, high = model.predict_interval(x[60:, None], level)
        covered.append(np.mean((low <= y[60:]) & (y[60:] <= high)))
    # The promise, 2 level − 1, is for the mean over tables; the level is what comes of it.
    # A share that 60 rows decide has a standard deviation of √(.9 · .1/60) = .039; of 12, .011.
    assert abs(np.mean(covered) - level) < 0.04


@pytest.mark.parametrize(
    ("classes", "options"),
    [
        (2, {}),
        (3, {}),
        (3, {"multi_class": "multinomial"}),
        (3, {"likelihood": "ordinal"}),
        (2, {"n_inducing": 20}),
        (3, {"n_inducing": 20}),
    ],
)
def test_coverage_of_fresh_labels(classes, options):
    """Sets hold the class of fresh rows as often as said, for every way to several classes."""
    covered, sizes = [], []
    for seed in range(6):
        X, y = labels(400, seed, classes)
        model = GaussianProcessClassifier(2.0 * RBF(1.5), **FIXED, **options).fit(X[:100], y[:100])
        sets = model.predict_set(X[100:], 0.8)
        covered.append(np.mean(sets[np.arange(300), y[100:]]))
        sizes.append(sets.sum(axis=1))
    # A share that 100 rows decide has a standard deviation of .04; the mean of six .016.
    assert abs(np.mean(covered) - 0.8) < 0.05
    assert np.mean(sizes) < classes - 0.3


@pytest.mark.parametrize(
    "options",
    [{"likelihood": "student_t"}, {"likelihood": "poisson"}, {"n_inducing": 25, "alpha": 0.1}],
)
def test_coverage_by_quantiles(options):
    """Other likelihoods and inducing points: quantiles, widened as leave-one-out asks for."""
    rng, covered = np.random.default_rng(0), []
    counts = options.get("likelihood") == "poisson"
    for _ in range(4):
        x = rng.uniform(-3.0, 3.0, 350)
        # More spread than a Poisson has, and wider tails than the noise.
        y = rng.poisson(rng.gamma(2.0, 2.0, 350)) if counts else np.sin(x) + rng.standard_t(3, 350)
        model = GaussianProcessRegressor(RBF(1.0), normalize_y=True, **FIXED, **options)
        low, high = model.fit(x[:80, None], y[:80]).predict_interval(x[80:, None], 0.8)
        assert np.all(low <= high)
        covered.append(np.mean((low <= y[80:]) & (y[80:] <= high)))
    assert 0.75 < np.mean(covered) < 0.9


def test_tables_in_blocks_and_offsets():
    """Rows in blocks get the same answers; an offset moves an interval as it moves the mean."""
    X, y = numbers(60)
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, **FIXED).fit(X, y)
    found = model.predict_interval(X)
    blocks = MemoryBlocks(Rows(y, np.ones(60), X), 16)
    np.testing.assert_allclose(model.predict_interval(blocks), found, rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_interval(X, offset=2.0), [side + 2.0 for side in found], rtol=1e-12
    )
    classifier = GaussianProcessClassifier(RBF(1.0), **FIXED).fit(X, y > 0.0)
    np.testing.assert_array_equal(classifier.predict_set(blocks), classifier.predict_set(X))


def test_precomputed_kernels():
    """A matrix gives the intervals and sets of the kernel whose matrix it is."""
    X, y = numbers()
    kernel, X_new = DotProduct(0.7), np.linspace(-3.0, 3.0, 5)[:, None]
    ours = GaussianProcessRegressor("precomputed", alpha=0.1).fit(kernel(X), y)
    same = GaussianProcessRegressor(kernel, alpha=0.1, **FIXED).fit(X, y)
    ours = ours.with_prior_variance(kernel.diag(X_new))
    np.testing.assert_allclose(
        ours.predict_interval(kernel(X_new, X)), same.predict_interval(X_new), rtol=1e-7
    )


def test_memory_is_bounded(monkeypatch):
    """Blocks of new rows are small enough, and change nothing."""
    from cavity.estimators import intervals

    X, y = labels(50, classes=3)
    model = GaussianProcessClassifier(RBF(1.0), **FIXED).fit(X[:20], y[:20])
    at_once = model.predict_set(X)
    monkeypatch.setattr(intervals, "_BLOCK", 60)
    np.testing.assert_array_equal(model.predict_set(X), at_once)


def test_what_cannot_be_promised(tmp_path):
    """Levels beyond what the rows allow, and models without rows, are refused with a reason."""
    X, y = numbers(15)
    model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, **FIXED)
    with pytest.raises(NotFittedError):
        model.predict_interval(X)
    model.fit(X, y)
    low, _ = model.predict_interval(X, 15 / 16)
    assert np.all(np.isfinite(low))
    with pytest.raises(ValueError, match="needs at least 19 training rows; there are 15"):
        model.predict_interval(X, 0.95)
    for level in (0.0, 1.0, 90.0, np.nan):
        with pytest.raises(ValueError, match="between 0 and 1"):
            model.predict_interval(X, level)
    save(model, tmp_path / "model")
    with pytest.raises(AttributeError, match="a model file does not hold"):
        load(tmp_path / "model").predict_interval(X)
    uneven = GaussianProcessRegressor(RBF(1.0), alpha=np.linspace(0.1, 0.2, 15), **FIXED).fit(X, y)
    with pytest.raises(ValueError, match="alpha differs from row to row"):
        uneven.predict_interval(X)
    votes = GaussianProcessClassifier(RBF(1.0), multi_class="one_vs_one", **FIXED)
    with pytest.raises(ValueError, match="one_vs_one"):
        votes.fit(*labels(classes=3)).predict_set(labels()[0])


def test_probabilities_of_real_data_are_kept():
    """On Pima's own test rows, sets of one fit hold the class as often as said."""
    (X, y), (X_test, y_test) = load_pima(return_X_y=True), load_pima(subset="test", return_X_y=True)
    unit = X.std(axis=0)
    model = GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X / unit, y)
    sets = model.predict_set(X_test / unit, 0.9)
    covered = np.mean(sets[np.arange(len(y_test)), y_test])
    # 200 rows decide: standard deviation √(.9 · .1/200) = .021.
    assert abs(covered - 0.9) < 0.045
