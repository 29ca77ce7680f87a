"""How many labels are wrong, and which: against draws from the model, and against other forms."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier, GaussianProcessRegressor, find_suspects
from cavity.datasets import load_crabs
from cavity.model_selection.label_noise import label_noise
from cavity.model_selection.reasons import gains, strongest
from cavity.model_selection.suspects import cut_off, running_mean


def drawn(n, n_classes, rate, power, rng):
    """Probabilities that are too soft, labels of which some are wrong, and which they are."""
    scores = 3.0 * rng.standard_normal((n, n_classes))
    true = np.exp(power * scores) / np.sum(np.exp(power * scores), axis=1, keepdims=True)
    seen = np.exp(scores) / np.sum(np.exp(scores), axis=1, keepdims=True)
    truth = np.array([rng.choice(n_classes, p=p) for p in true])
    wrong = rng.random(n) < rate
    shift = rng.integers(1, n_classes, n)
    return seen, np.where(wrong, (truth + shift) % n_classes, truth), wrong


@pytest.mark.parametrize("n_classes", [2, 4])
def test_number_of_wrong_labels(n_classes):
    """Of draws from the model itself, 90 % intervals of the number hold it in about that share."""
    rng, inside, off = np.random.default_rng(n_classes), [], []
    for rate in np.repeat([0.03, 0.1, 0.25], 15):
        proba, codes, wrong = drawn(200, n_classes, rate, 2.0, rng)
        found = label_noise(proba, codes)
        low, high = found.interval(0.9)
        inside.append(low <= wrong.sum() <= high)
        off.append(found.count - wrong.sum())
    # Of 45 intervals fewer than 35 at a coverage of 0.9 have a probability of 1 %.
    assert np.sum(inside) >= 35
    assert abs(np.mean(off)) < 2.0


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_calibrated(n_classes):
    """Labels with a probability p of being wrong are wrong in that share."""
    rng = np.random.default_rng(7)
    proba, codes, wrong = drawn(20_000, n_classes, 0.1, 2.0, rng)
    found = label_noise(proba, codes)
    assert found.wrong.sum() == pytest.approx(wrong.sum(), rel=0.05)
    for low, high in [(0.02, 0.2), (0.2, 0.6), (0.6, 0.95), (0.95, 1.0)]:
        some = (found.wrong >= low) & (found.wrong < high)
        error = np.sqrt(found.wrong[some].mean() / some.sum())
        assert found.wrong[some].mean() == pytest.approx(wrong[some].mean(), abs=4.0 * error + 0.01)


def by_hand(proba, codes):
    """Probabilities that labels are wrong, by a fine sum over ε and s, for two classes."""
    rates, powers = (
        (np.arange(300) + 0.5)[:, None] / 600,
        np.exp(np.linspace(0.0, np.log(20.0), 150)),
    )
    chance, weight, odds = [], [], np.log(proba[:, 1] / proba[:, 0])
    for s in powers:
        p = 1.0 / (1.0 + np.exp(-s * odds))
        own = np.where(codes == 1, p, 1.0 - p)
        found = [(0.8, (1.0 - rates) * own, rates * (1.0 - own))]
        for called in (0, 1):
            # Some rows of the other class are called so: that class seems smaller than it is.
            shift = np.log((1.0 + rates) / (1.0 - rates)) * (1 if called == 0 else -1)
            other = 1.0 / (1.0 + np.exp((-1 if called == 0 else 1) * s * (odds + shift)))
            right = np.where(codes == called, 1.0 - other, (1.0 - rates) * other)
            found.append((0.1, right, np.where(codes == called, rates * other, 0.0)))
        for prior, right, wrong in found:
            weight.append(np.log(prior) + np.sum(np.log(right + wrong), axis=1))
            chance.append(wrong / (right + wrong))
    w = np.exp(np.concatenate(weight) - np.max(weight))
    return w @ np.concatenate(chance) / w.sum()


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_two_classes_by_hand(rate):
    """The answers are a fine sum's; the coarser one has twenty powers."""
    proba, codes, _ = drawn(60, 2, rate, 2.0, np.random.default_rng(3))
    np.testing.assert_allclose(label_noise(proba, codes).wrong, by_hand(proba, codes), atol=0.01)


def test_one_class_called_another():
    """A share of one class is called another: only those labels are wrong, and they come first.

    The model has learned to expect some, so that their number tends to come out too small.
    """
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 80)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[truth] + rng.standard_normal((240, 2))
    y = truth.copy()
    wrong = rng.choice(80, 24, replace=False)
    y[wrong] = 2
    found = find_suspects(GaussianProcessClassifier("auto").fit(X, y), precision=0.5)
    assert np.mean(np.isin([s.index for s in found[:24]], wrong)) >= 0.8
    assert all((s.label, s.suggestion) == (2, 0) for s in found[:24])
    assert found.count == pytest.approx(24, rel=0.5)


def test_names_of_classes_do_not_matter():
    """Classes in another order give the same answers."""
    proba, codes, _ = drawn(80, 3, 0.2, 2.0, np.random.default_rng(6))
    turned = np.array([2, 0, 1])
    other = label_noise(proba[:, np.argsort(turned)], turned[codes])
    np.testing.assert_allclose(other.wrong, label_noise(proba, codes).wrong, atol=1e-9)


def test_nothing_to_learn_means_a_wide_interval():
    """Where the inputs tell nothing, the number of wrong labels is anything up to a half."""
    rng = np.random.default_rng(0)
    proba = np.full((200, 2), 0.5) + rng.uniform(-0.01, 0.01, (200, 1)) * np.array([1.0, -1.0])
    low, high = label_noise(proba, rng.integers(0, 2, 200)).interval(0.9)
    assert low < 20
    assert high > 80


def test_no_wrong_labels():
    """Where confident predictions are always right, hardly any label can be wrong."""
    codes = np.arange(200) % 2
    proba = np.where(np.eye(2)[codes] > 0.0, 0.98, 0.02)
    found = label_noise(proba, codes)
    assert found.count <= 1
    assert found.interval(0.9)[1] <= 4


def test_many_rows_make_the_grid_finer():
    """With so many rows the rate is known to a thousandth, and so is the number."""
    rng = np.random.default_rng(1)
    proba, codes, wrong = drawn(30_000, 2, 0.1, 2.0, rng)
    low, high = label_noise(proba, codes).interval(0.9)
    assert high - low < 0.01 * 30_000
    assert low - 60 <= wrong.sum() <= high + 60


def test_cut_off():
    """As many rows are taken as have the share on average that was asked for."""
    wrong = np.array([0.9, 0.7, 0.2, 0.2, 0.0])
    np.testing.assert_allclose(running_mean(wrong), [0.9, 0.8, 0.6, 0.5, 0.4])
    assert [cut_off(wrong, p) for p in (0.95, 0.8, 0.5, 0.3)] == [0, 2, 4, 5]
    with pytest.raises(ValueError, match="between 0 and 1"):
        cut_off(wrong, 1.0)


def flipped_crabs():
    X, y = load_crabs(return_X_y=True)
    wrong = np.zeros(len(y), dtype=bool)
    wrong[np.random.default_rng(1).choice(len(y), 20, replace=False)] = True
    return X, np.where(wrong, 1 - y, y), wrong


def test_suspects_of_a_fit():
    """The number of wrong labels, those that are chosen, and the promised share of them."""
    X, y, wrong = flipped_crabs()
    fitted = GaussianProcessClassifier("auto").fit(X, y)
    found = find_suspects(fitted, precision=0.5)
    low, high = found.count_interval
    assert low <= 20 <= high
    assert found.count == pytest.approx(20, abs=7)
    index = [suspect.index for suspect in found]
    assert np.mean(wrong[index]) == pytest.approx(0.5, abs=0.1)
    assert found[len(found) - 1].precision >= 0.5
    p = fitted.loo_proba_
    for suspect in found[:10]:
        assert suspect.label == y[suspect.index]
        assert suspect.suggestion == 1 - suspect.label
        assert suspect.probability == pytest.approx(p[suspect.index, suspect.label])
        assert all(reason.label == suspect.suggestion for reason in suspect.reasons)
        assert len(suspect.reasons) == 3
    frame = found.to_frame()
    assert list(frame.index) == index
    assert frame["reasons"].iloc[0].startswith(f"{found[0].reasons[0].index} (")
    assert repr(found).startswith(f"Wrong labels: about {found.count} of 200 (90% interval")


@pytest.mark.parametrize("multi_class", ["one_vs_rest", "multinomial"])
def test_suspects_among_several_classes(multi_class):
    """Wrong labels of three classes come first, with the right ones as suggestions."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    X = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])[truth] + rng.standard_normal((120, 2))
    names, flipped = np.array(["ash", "elm", "oak"]), rng.choice(120, 8, replace=False)
    y = truth.copy()
    y[flipped] = (truth[flipped] + rng.integers(1, 3, 8)) % 3
    fitted = GaussianProcessClassifier(1.0 * RBF(2.0), multi_class=multi_class).fit(X, names[y])
    found = find_suspects(fitted, k=8)
    right = [s for s in found if s.index in flipped and s.suggestion == names[truth[s.index]]]
    assert len(right) >= 6
    assert found.count_interval[0] <= 8 <= found.count_interval[1]
    named = multi_class == "one_vs_rest"
    assert all((len(s.reasons) == 3) == named for s in found)
    # Of all classes at once there are no sums over rows.
    assert all(reason.label == s.suggestion for s in found[:4] for reason in s.reasons)


def test_gains_take_the_leave_one_out_mean_apart():
    """A row's gains are those of the problem without it, and their sum is its cavity."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (30, 2))
    model = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None).fit(X, X[:, 0] > 0.3)
    fit = model.base_estimator_.fits[0]
    tau, nu = fit.posterior.sites
    G, K = gains(fit, np.arange(30)), fit.posterior.prior.K
    np.testing.assert_allclose(G @ nu, fit.cavities.mean, atol=1e-8)
    rest = np.arange(1, 30)
    without = np.linalg.solve(K[np.ix_(rest, rest)] + np.diag(1.0 / tau[rest]), K[rest, 0])
    np.testing.assert_allclose(G[0, rest], without / tau[rest], atol=1e-7)


@pytest.mark.parametrize("noise", [1e-6, 0.3])
def test_gains_of_targets(noise):
    """The same of targets, with hardly any noise in the likelihood as well."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (25, 1))
    kernel = RBF(0.7) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)
    fit = model.fit(X, np.sin(X[:, 0]))._model.fits[0]
    G = gains(fit, np.arange(25))
    np.testing.assert_allclose(G @ fit.posterior.sites.nu, fit.cavities.mean, atol=1e-6)


def test_gains_of_rows_that_count_twice():
    """The copies of a row that stay behind pull like other rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (20, 2))
    model = GaussianProcessClassifier(2.0 * RBF(1.0), optimizer=None)
    fit = model.fit(X, X[:, 0] > 0.0, rng.integers(1, 4, 20)).base_estimator_.fits[0]
    G = gains(fit, np.arange(20))
    np.testing.assert_allclose(G @ fit.posterior.sites.nu, fit.cavities.mean, atol=1e-8)


def test_strongest():
    """The largest come first, with their shares of what is positive; others are not named."""
    [(places, shares), (none, _)] = strongest(np.array([[1.0, -5.0, 3.0], [0.0, -1.0, 0.0]]), 3)
    assert places.tolist() == [2, 0]
    assert shares.tolist() == [0.75, 0.25]
    assert len(none) == 0


def test_repeated_rows_are_judged_one_by_one():
    """Equal rows with other labels are suspects by their numbers in the table."""
    X, y = np.repeat([[0.0], [1.0]], 30, axis=0), np.repeat([0, 1], 30)
    y[[4, 41]] = [1, 0]
    found = find_suspects(GaussianProcessClassifier(1.0 * RBF(0.3)).fit(X, y))
    assert sorted(suspect.index for suspect in found) == [4, 41]


def test_what_cannot_be_answered():
    """Each gets one sentence that says what to do."""
    X, y, _ = flipped_crabs()
    model = GaussianProcessClassifier(100.0 * RBF(10.0), optimizer=None)
    with pytest.raises(NotFittedError, match="call fit first"):
        find_suspects(make_pipeline(StandardScaler(), model))
    model.fit(X, y)
    with pytest.raises(ValueError, match="precision must lie between 0 and 1"):
        find_suspects(model, precision=50)
    with pytest.raises(ValueError, match="between 1 and the 200 examples"):
        find_suspects(model, k=0)
    with pytest.raises(ValueError, match="n_reasons"):
        find_suspects(model, n_reasons=-1)
    with pytest.raises(ValueError, match="weight zero"):
        find_suspects(model.fit(X, y, np.arange(200.0)))


def test_suspects_of_a_model_with_inducing_points():
    """The rows and their number are found as without; what speaks against them is not known."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (200, 2))
    y = (X[:, 0] > 0.0).astype(int)
    flipped = rng.choice(200, 12, replace=False)
    y[flipped] = 1 - y[flipped]
    kernel = 4.0 * RBF(1.0)
    few = find_suspects(GaussianProcessClassifier(kernel, n_inducing=25).fit(X, y), k=8)
    dense = find_suspects(GaussianProcessClassifier(kernel).fit(X, y), k=8)
    assert few.count == pytest.approx(dense.count, abs=2)
    assert np.mean(np.isin([s.index for s in few], flipped)) >= 0.7
    assert all(s.reasons == () for s in few)
    assert all(s.reasons != () for s in dense)


def test_suspects_among_ordered_classes():
    """Of ordered classes, rows beyond the label's neighbours speak against it."""
    x = np.linspace(0.0, 3.0, 90)[:, None]
    y = np.floor(x[:, 0]).clip(0, 2).astype(int)
    y[10] = 2
    model = GaussianProcessClassifier(1.0 * RBF(1.0), likelihood="ordinal", optimizer=None)
    first = find_suspects(model.fit(x, y))[0]
    assert (first.index, first.label, first.suggestion) == (10, 2, 0)
    assert {reason.label for reason in first.reasons} == {0}


def test_no_suspects_is_an_empty_table():
    """Where every label is as predicted, the table is empty and still prints."""
    X = np.repeat([[0.0], [5.0]], 20, axis=0)
    fitted = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None)
    found = find_suspects(fitted.fit(X, np.repeat([0, 1], 20)))
    assert len(found) == 0
    assert len(found.to_frame()) == 0
    assert "Wrong labels: about 0 of 40" in repr(found)
