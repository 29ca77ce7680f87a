"""Which inputs matter is measured on predictions, with an interval, and drawn with a band."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, PairwiseKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from test_kernels import SharedLetters

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    feature_effect,
    feature_importance,
)
from cavity.estimators.fitted import fitted_model
from cavity.model_selection.importance import shares
from cavity.model_selection.surface import Surface

ONE_SCALE = 2.0**2 * RBF(1.7) + WhiteKernel(0.004)


def truth(X):
    """A strong straight line in the first input, a weak wave in the second, no third."""
    return 3.0 * X[:, 0] + 0.3 * np.sin(4.0 * X[:, 1])


def sobol_shares(function, d, n=200_000):
    """Total indices by simulation with independent uniform inputs (Jansen)."""
    rng = np.random.default_rng(1)
    A, B = rng.uniform(-1.0, 1.0, (2, n, d))
    before, found = function(A), []
    for j in range(d):
        C = A.copy()
        C[:, j] = B[:, j]
        found.append(np.mean((before - function(C)) ** 2) / 2.0 / np.var(before))
    return found


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (150, 3))
    return X, truth(X) + 0.1 * rng.standard_normal(150)


@pytest.fixture(scope="module")
def regressor(data):
    return GaussianProcessRegressor(ONE_SCALE, normalize_y=True, optimizer=None).fit(*data)


def by_name(table):
    return {row.feature: row for row in table}


def test_shares_are_those_of_the_true_function(data, regressor):
    """With little noise the shares are the Sobol' indices of the function behind the data."""
    table = feature_importance(regressor, data[0], random_state=0)
    assert [row.feature for row in table] == ["x0", "x1", "x2"]
    strong, weak, none = sobol_shares(truth, 3)
    found = by_name(table)
    # 3200 replacements at 150 points: a large share scatters by 2 %, a small one by 10 %; the
    # rows' own spread differs from that of the uniform distribution by as much.
    assert found["x0"].importance == pytest.approx(strong, rel=0.08)
    assert found["x1"].importance == pytest.approx(weak, rel=0.35)
    assert none == 0.0
    assert found["x0"].importance > 50.0 * found["x1"].importance
    assert found["x1"].low > 0.0


def test_length_scales_would_rank_the_other_way(data):
    """The input with the shortest length scale is not the one that matters."""
    kernel = 1.0 * RBF([1.0, 1.0, 1.0]) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, normalize_y=True).fit(*data)
    scales = model.kernel_.k1.k2.length_scale
    assert np.argmin(scales) == 1
    assert feature_importance(model, data[0], random_state=0)[0].feature == "x0"


def test_an_idle_input_has_an_interval_from_zero():
    """Inputs that do nothing reach zero in at least nine of ten tables, whatever the task."""
    idle = []
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 3))
        y = X[:, 0] + 0.5 * rng.standard_normal(60)
        kernel = RBF(2.0)
        for model in (
            GaussianProcessRegressor(kernel, alpha=0.25, optimizer=None).fit(X, y),
            GaussianProcessClassifier(2.0 * kernel, optimizer=None).fit(X, y > 0),
        ):
            found = by_name(feature_importance(model, X, random_state=0))
            assert found["x0"].low > 0.0
            idle += [found[name].low == 0.0 for name in ("x1", "x2")]
    assert np.mean(idle) >= 0.9


def test_classes_and_their_number_of_outputs():
    """Of three classes that two inputs separate, the third input takes no part."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 3))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
    model = GaussianProcessClassifier(2.0 * RBF(1.5), optimizer=None).fit(X, y)
    found = by_name(feature_importance(model, X, n_draws=100, random_state=0))
    assert min(found["x0"].low, found["x1"].low) > 0.0
    assert found["x2"].low == 0.0
    effect = feature_effect(model, X, 0, grid=8, random_state=0)
    assert effect.mean.shape == (8, 3)
    assert effect.outputs == ("a", "b", "c")
    # Probabilities of all classes sum to one before and after averaging.
    np.testing.assert_allclose(effect.mean.sum(axis=1), 1.0, rtol=1e-12)


def test_noise_of_the_kernel_is_no_effect():
    """Under a WhiteKernel the drawn probabilities average to those that are predicted."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2))
    kernel = 2.0 * RBF(1.5) + WhiteKernel(0.5)
    model = GaussianProcessClassifier(kernel, optimizer=None).fit(X, X[:, 0] > 0)
    drawn = fitted_model(model).draws(X, 4000, rng)
    # Standard errors are below 0.5/√4000 = 0.008.
    np.testing.assert_allclose(drawn.mean(axis=0), model.predict_proba(X), atol=0.03)


def test_a_pipeline_is_asked_about_its_own_columns():
    """A category before its one-hot encoding is one input, with the data frame's name."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(80),
            "colour": rng.choice(["red", "green", "blue"], 80),
            "idle": rng.integers(0, 50, 80),
        }
    )
    y = frame["size"] + 2.0 * (frame["colour"] == "red") + 0.1 * rng.standard_normal(80)
    columns = make_column_transformer(
        (OneHotEncoder(), ["colour"]), (StandardScaler(), ["size", "idle"])
    )
    model = GaussianProcessRegressor(2.0 * RBF(2.0), alpha=0.01, normalize_y=True, optimizer=None)
    pipeline = make_pipeline(columns, model).fit(frame, y)
    table = feature_importance(pipeline, frame, random_state=0)
    assert {row.feature for row in table} == {"size", "colour", "idle"}
    assert table[2].feature == "idle"
    assert table.to_frame().index.name == "feature"
    effect = feature_effect(pipeline, frame, "colour")
    assert effect.values.tolist() == ["blue", "green", "red"]
    assert np.argmax(effect.mean) == 2


def test_the_band_covers_the_true_effect():
    """For functions drawn from the prior, bands of 90 % cover nine in ten of the true effects."""
    rng, kernel, inside = np.random.default_rng(0), 2.0 * RBF(1.0), []
    X, values = rng.uniform(-1.0, 1.0, (40, 2)), [-0.8, 0.0, 0.6]
    rows = np.tile(X, (3, 1))
    rows[:, 1] = np.repeat(values, 40)
    points = np.vstack([X, rows])
    model = GaussianProcessRegressor(kernel, alpha=0.09, optimizer=None)
    for f in rng.multivariate_normal(np.zeros(160), kernel(points), 150):
        model.fit(X, f[:40] + 0.3 * rng.standard_normal(40))
        effect = feature_effect(model, X, "x1", grid=values, level=0.9)
        true = f[40:].reshape(3, 40).mean(axis=1)
        inside += [(effect.low <= true) & (true <= effect.high)]
    # 150 functions with three points that depend on each other: a standard error below 0.025.
    assert np.mean(inside) == pytest.approx(0.9, abs=0.06)


def test_the_band_of_an_average_is_exact(data, regressor):
    """Mean and variance of the averaged function are those of the joint posterior."""
    X, _ = data
    effect = feature_effect(regressor, X, 1, grid=[0.3], level=0.9)
    rows = X.copy()
    rows[:, 1] = 0.3
    mean, cov = regressor.predict(rows, return_cov=True)
    # return_cov has the WhiteKernel's noise on its diagonal, in units of the target.
    noise = 0.004 * np.var(data[1])
    std = np.sqrt(cov.mean() - noise / len(rows))
    assert effect.mean[0] == pytest.approx(mean.mean(), rel=1e-9)
    assert effect.high[0] - effect.mean[0] == pytest.approx(1.6448536 * std, rel=1e-6)


def test_several_models_count_the_same(data, regressor):
    """Two copies of a model are as good as one: draws of the kernel can be averaged over."""
    model, X = fitted_model(regressor), data[0]
    one, two = (
        shares(Surface([model] * k, lambda X: X), X, [[1]], 400, 0.9, np.random.RandomState(0))
        for k in (1, 2)
    )
    assert one[0].importance == pytest.approx(two[0].importance, rel=1e-12)
    # Quantiles of 400 draws; the two sets of draws differ.
    assert one[0].high == pytest.approx(two[0].high, rel=0.1)


def test_what_has_no_columns_is_refused(data):
    """Covariances, objects, votes and unfitted models are refused with a reason."""
    X, y = data[0][:20], data[1][:20]
    K = X @ X.T + np.eye(20)
    precomputed = GaussianProcessRegressor("precomputed", alpha=0.1).fit(K, y)
    with pytest.raises(ValueError, match="precomputed"):
        feature_importance(precomputed, K)
    words = ["ab", "ba", "abc", "cab"]
    letters = GaussianProcessRegressor(SharedLetters(), alpha=0.1, optimizer=None)
    with pytest.raises(ValueError, match="compares objects"):
        feature_importance(letters.fit(words, y[:4]), words)
    votes = GaussianProcessClassifier(RBF(), multi_class="one_vs_one", optimizer=None)
    with pytest.raises(ValueError, match="one_vs_rest"):
        feature_importance(votes.fit(X, np.arange(20) % 3), X)
    with pytest.raises(NotFittedError):
        feature_importance(GaussianProcessRegressor(), X)
    with pytest.raises(ValueError, match="ends in one"):
        feature_effect(StandardScaler().fit(X), X, 0)


def test_wrong_arguments_are_named(data, regressor):
    """A message says what was expected and what came."""
    with pytest.raises(ValueError, match="one of x0, x1, x2"):
        feature_effect(regressor, data[0], "speed")
    for grid, shape in (([], r"\(0,\)"), ([[0.1, 0.2]], r"\(1, 2\)")):
        with pytest.raises(ValueError, match=f"grid must be a number .* got shape {shape}"):
            feature_effect(regressor, data[0], 0, grid=grid)
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        feature_importance(regressor, data[0], level=90)
    with pytest.raises(ValueError, match="two axes"):
        feature_importance(regressor, data[0][0])


def test_any_kernel_on_vectors_serves(data):
    """A kernel without a rule of its own and a constant prediction give shares as well."""
    X, y = data[0][:30], data[1][:30]
    model = GaussianProcessRegressor(PairwiseKernel(metric="rbf"), alpha=0.1, optimizer=None)
    assert feature_importance(model.fit(X, y), X, random_state=0)[0].feature == "x0"
    flat = feature_importance(model.fit(X, np.zeros(30)), X, random_state=0)
    assert {row.importance for row in flat} == {0.0} == {row.low for row in flat}


def test_effects_are_drawn(data, regressor):
    """Numbers become a line with a band and categories points with bars."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    ax = feature_effect(regressor, data[0], 0).plot()
    assert ax.get_xlabel() == "x0"
    assert len(ax.lines) == len(ax.collections) == 1
    model = GaussianProcessClassifier(RBF(), optimizer=None).fit(data[0], data[1] > 0)
    assert "True" in feature_effect(model, data[0], 0, grid=5).plot().get_ylabel()
    plt.close("all")
