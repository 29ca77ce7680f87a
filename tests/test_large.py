"""Estimators on inducing points: the same answers as without, on tables in blocks."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.metrics import log_loss, roc_auc_score

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    feature_importance,
    learning_curve,
)
from cavity.evidence import LogNormal
from cavity.rows import MemoryBlocks, scan
from cavity.sites import Rows

KERNEL = 4.0 * RBF([1.0, 2.0])


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.4 * rng.normal(size=n)


def classes(n=60, seed=0):
    X, f = table(n, seed)
    return X, np.where(f > 0.0, "yes", "no")


class Blocks(MemoryBlocks):
    """A table that is no array."""

    feature_names = None

    def __init__(self, X, y, size, weight=None):
        weight = np.ones(len(X)) if weight is None else weight
        super().__init__(Rows(y, weight, X), size)
        self.n_features = X.shape[1]
        self.X, self.size = X, size

    def with_targets(self, y):
        return Blocks(self.X, y, self.size)


def fixed(**options):
    return GaussianProcessClassifier(KERNEL, optimizer=None, **options)


@pytest.mark.parametrize("inference", ["ep", "laplace", "variational", "naive"])
def test_all_points_are_no_points(inference):
    """With every row an inducing point, a classifier is what it is without any."""
    X, y = classes()
    dense = fixed(inference=inference, tol=1e-10, max_iter_predict=500).fit(X, y)
    model = clone(dense).set_params(inducing_points=X).fit(X, y)
    theta, new = KERNEL.theta + 0.1, table(20, seed=1)[0]
    values, gradients = zip(
        *(m.log_marginal_likelihood(theta, eval_gradient=True) for m in (dense, model)),
        strict=True,
    )
    np.testing.assert_allclose(values[1], values[0], rtol=1e-8)
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-6, atol=1e-6)
    for answer in ("predict_proba", "latent_mean_and_variance"):
        truth = getattr(dense, answer)(new)
        np.testing.assert_allclose(getattr(model, answer)(new), truth, rtol=1e-6, atol=1e-8)
    if inference != "naive":  # which needs the matrix for its linear response
        np.testing.assert_allclose(model.loo_proba_, dense.loo_proba_, atol=1e-7)


@pytest.mark.parametrize("inference", ["exact", "variational", "ep"])
def test_all_points_are_no_points_in_regression(inference):
    """With every row an inducing point, a regressor is exact."""
    X, y = table()
    y = np.column_stack([y, X[:, 0]])
    dense = GaussianProcessRegressor(KERNEL, alpha=0.1, optimizer=None, normalize_y=True).fit(X, y)
    model = clone(dense).set_params(inducing_points=X, inference=inference).fit(X, y)
    new = table(20, seed=1)[0]
    value = dense.log_marginal_likelihood_value_
    np.testing.assert_allclose(model.log_marginal_likelihood_value_, value, rtol=1e-8)
    for mine, truth in zip(
        model.predict(new, return_std=True), dense.predict(new, return_std=True), strict=True
    ):
        np.testing.assert_allclose(mine, truth, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        model.predict(new, return_cov=True)[1], dense.predict(new, return_cov=True)[1], atol=1e-7
    )
    np.testing.assert_allclose(model.loo_mean_, dense.loo_mean_, atol=1e-7)
    np.testing.assert_allclose(model.loo_std_, dense.loo_std_, atol=1e-7)
    assert model.X_train_ is None


def test_blocks_are_memory():
    """Blocks of any size give the numbers of arrays; predictions go by blocks, too."""
    X, y = classes(900)
    model = GaussianProcessClassifier(KERNEL, n_inducing=15, random_state=0).fit(X, y)
    blocks = GaussianProcessClassifier(KERNEL, n_inducing=15, random_state=0).fit(Blocks(X, y, 128))
    other = clone(blocks).fit(Blocks(X, None, 77), y)
    for found in (blocks, other):
        np.testing.assert_allclose(found.kernel_.theta, model.kernel_.theta, rtol=1e-9)
        np.testing.assert_allclose(
            found.log_marginal_likelihood_value_, model.log_marginal_likelihood_value_, rtol=1e-10
        )
        np.testing.assert_allclose(found.loo_proba_, model.loo_proba_, atol=1e-10)
    named = Blocks(X, None, 100)
    named.feature_names = ["b", "a"]
    blocks.feature_names_in_ = np.array(["a", "b"], dtype=object)
    with pytest.raises(ValueError, match="are not those of the fit"):
        blocks.predict(named)
    named.feature_names = ["a", "b"]
    np.testing.assert_allclose(blocks.predict_proba(named), model.predict_proba(X), atol=1e-10)
    assert np.array_equal(blocks.predict(Blocks(X, None, 100)), model.predict(X))
    assert blocks.n_features_in_ == 2


def test_few_points_reach_the_optimum_of_all():
    """On a smooth table few points give the evidence and predictions of the dense fit."""
    X, y = classes(1000)
    new, truth = classes(1000, seed=1)
    dense = GaussianProcessClassifier(KERNEL).fit(X, y)
    model = GaussianProcessClassifier(KERNEL, n_inducing=60).fit(X, y)
    value = dense.log_marginal_likelihood_value_
    # The bar is half a nat; tuning on the ladder stops at a fiftieth.
    assert abs(model.log_marginal_likelihood_value_ - value) < 0.1
    losses = [log_loss(truth, m.predict_proba(new)) for m in (dense, model)]
    assert abs(losses[1] - losses[0]) < 0.002
    assert abs(model.inducing_gain_) < 0.1
    assert 0.0 <= model.inducing_left_over_ < 1e-3
    assert model.inducing_points_.shape == (60, 2)
    # Leave-one-out, too, counts the tuning.
    losses = [log_loss(y, m.loo_proba_) for m in (dense, model)]
    assert abs(losses[1] - losses[0]) < 0.002


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "auto"},
        {"kernel": KERNEL, "hyperprior": "hierarchical"},
        {"kernel": KERNEL, "hyperprior": LogNormal({"length_scale": (1.0, 0.5)})},
        {"kernel": KERNEL, "average_hyperparameters": 2},
        {"kernel": KERNEL, "inference": "laplace", "likelihood": "logit"},
        {"kernel": KERNEL, "inference": "variational", "likelihood": "logit"},
        {"kernel": KERNEL, "n_restarts_optimizer": 1},
    ],
)
def test_every_way_of_tuning_climbs_the_ladder(options):
    """Priors, choices and methods give models as good as those of a part without points."""
    X, y = classes(300)
    new, truth = classes(400, seed=1)
    model = GaussianProcessClassifier(n_inducing=30, **options).fit(X, y)
    dense = GaussianProcessClassifier(**options).fit(X[:150], y[:150])
    losses = [log_loss(truth, m.predict_proba(new)) for m in (dense, model)]
    assert losses[1] < losses[0] + 0.005


def test_several_classes_and_targets():
    """Each class has points of its own; targets share them."""
    X, f = table(400)
    y = np.digitize(f, [-1.0, 1.0])
    model = GaussianProcessClassifier(KERNEL, n_inducing=20).fit(X, y)
    assert model.score(X, y) > 0.75
    assert len(model.inducing_points_) == 3
    np.testing.assert_allclose(model.loo_proba_.sum(axis=1), 1.0)
    kernel = KERNEL + WhiteKernel(0.1)
    both = GaussianProcessRegressor(kernel, n_inducing=20).fit(X, np.column_stack([f, X[:, 0]]))
    assert both.predict(X).shape == (400, 2)
    with pytest.raises(ValueError, match="one_vs_rest"):
        clone(model).set_params(multi_class="one_vs_one").fit(X, y)


def test_weights_are_copies():
    """A row of weight two is the row twice."""
    X, y = classes()
    weight = 1.0 + (np.arange(60) % 3 == 0)
    model = fixed(inducing_points=X[:20], tol=1e-10)
    twice = clone(model).fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    )
    weighted = clone(model).fit(X, y, sample_weight=weight)
    in_blocks = clone(model).fit(Blocks(X, y, 25, weight))
    for found in (twice, in_blocks):
        np.testing.assert_allclose(
            found.log_marginal_likelihood_value_,
            weighted.log_marginal_likelihood_value_,
            rtol=1e-9,
        )
        np.testing.assert_allclose(found.predict_proba(X), weighted.predict_proba(X), atol=1e-9)


def test_auto_is_dense_on_small_tables():
    """With n_inducing="auto" a small table is fitted without inducing points."""
    X, y = classes()
    model = fixed(n_inducing="auto").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), fixed().fit(X, y).predict_proba(X))
    with pytest.raises(AttributeError, match="n_inducing"):
        _ = model.inducing_points_


def test_models_are_pickled_with_their_rows():
    """A copy of a fitted model gives the same answers."""
    X, y = classes()
    model = fixed(n_inducing=10).fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(copied.loo_proba_, model.loo_proba_)


def test_what_does_not_go_with_points_is_refused():
    """Methods and attributes that need all covariances say so."""
    X, y = classes()
    for inference in ("ensemble", "sequential"):
        with pytest.raises(ValueError, match="needs the covariances of all rows"):
            fixed(inference=inference, n_inducing=5).fit(X, y)
    with pytest.raises(ValueError, match="inputs that are vectors"):
        GaussianProcessClassifier("precomputed", n_inducing=5).fit(np.eye(60), y)
    with pytest.raises(ValueError, match="2 columns"):
        fixed(inducing_points=X[:, :1]).fit(X, y)
    with pytest.raises(ValueError, match="own weights"):
        fixed().fit(Blocks(X, y, 20), sample_weight=np.ones(60))
    with pytest.raises(ValueError, match="no targets"):
        fixed().fit(Blocks(X, None, 20))
    model = fixed(n_inducing=5).fit(X, y)
    with pytest.raises(AttributeError, match="correction"):
        _ = model.evidence_correction_
    regressor = GaussianProcessRegressor(KERNEL, alpha=0.1, n_inducing=5, optimizer=None)
    for name in ("alpha_", "L_"):
        with pytest.raises(AttributeError, match="n_inducing"):
            getattr(regressor.fit(*table()), name)
    with pytest.raises(ValueError, match="one number"):
        clone(regressor).set_params(alpha=np.full(60, 0.1)).fit(Blocks(*table(), 20))


def test_bad_rows_are_named():
    """A scan of a table names the first row that no fit can use."""
    X, f = table(50)
    for column, what in ((X, "input"), (f, "target")):
        before, column[..., :][33] = column[33].copy(), np.nan
        with pytest.raises(ValueError, match=f"Row 33 of the table has an? {what} that is not"):
            GaussianProcessRegressor(KERNEL, n_inducing=5).fit(Blocks(X, f, 20))
        column[33] = before
    weight = np.ones(50)
    weight[41] = 0.0
    with pytest.raises(ValueError, match="Row 41 of the table has a weight"):
        GaussianProcessRegressor(KERNEL, n_inducing=5).fit(Blocks(X, f, 20, weight))
    with pytest.raises(ValueError, match="more than 1,000 different values"):
        fixed().fit(Blocks(np.ones((2000, 2)), np.arange(2000), 100))


def test_scans_do_not_depend_on_blocks():
    """Means, spreads and the sample are those of the whole table."""
    X, f = table(500)
    parts = [scan(Blocks(X, f, size), size=40, seed=1, classes=False) for size in (500, 64)]
    for found in parts:
        np.testing.assert_allclose(found.inputs.mean, X.mean(axis=0), atol=1e-14)
        np.testing.assert_allclose(found.inputs.std, X.std(axis=0))
        np.testing.assert_allclose(found.targets.std, f.std())
        np.testing.assert_array_equal(found.inputs.largest, np.abs(X).max(axis=0))
    np.testing.assert_array_equal(parts[0].sample.index, parts[1].sample.index)
    np.testing.assert_array_equal(parts[0].sample.X, X[parts[0].sample.index])
    assert len(np.unique(parts[0].sample.index)) == 40


def test_few_evaluations_touch_every_row(capsys):
    """Tuning tells how many rows each rung of the ladder had; the last takes few evaluations."""
    X, y = classes(7000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianProcessClassifier(KERNEL, n_inducing=20, verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert "7,000 rows, 20 points" in lines[-1]
    assert int(lines[-1].split(": ")[1].split()[0]) <= 8
    GaussianProcessClassifier(KERNEL, n_inducing=20, verbose=2).fit(X[:800], y[:800])
    assert "s to go" in capsys.readouterr().out


def test_importance_of_large_tables():
    """Which inputs matter is measured on some rows of a table, whatever it is kept in."""
    X, f = table(2500)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=2500)])
    kernel = 1.0 * RBF([1.0, 2.0, 5.0]) + WhiteKernel(0.2)
    model = GaussianProcessRegressor(kernel, n_inducing=30, random_state=0).fit(Blocks(X, f, 500))
    shares = feature_importance(model, Blocks(X, f, 500), random_state=0)
    found = {row.feature: row for row in shares}
    assert found["x0"].importance > 0.2
    assert found["x1"].importance > 0.2
    assert found["x2"].importance < 0.05


def test_leave_one_out_is_that_of_refits():
    """At fixed points and kernel, leave-one-out from one fit is that of fits without the row."""
    X, y = classes(400)
    points = X[:40]
    model = fixed(inducing_points=points, tol=1e-9).fit(X, y)
    rows = np.argsort(model.loo_proba_[np.arange(400), (y == "yes").astype(int)])[::50]
    differences = []
    for i in rows:
        refit = clone(model).fit(np.delete(X, i, axis=0), np.delete(y, i))
        differences.append(model.loo_proba_[i] - refit.predict_proba(X[i : i + 1])[0])
    # EP's cavities answer to first order to what one row changes; these are the rows they are worst
    # at, those that the others contradict among them.
    assert np.mean(np.abs(differences)) < 2e-3
    assert np.max(np.abs(differences)) < 5e-3


@pytest.mark.slow
def test_suspects_of_many_rows_are_as_good_as_those_of_a_dense_part():
    """With 5 % wrong labels, doubts of 20,000 rows rank as well as a dense fit of 4,000."""
    rng = np.random.default_rng(0)
    X, f = table(20_000)
    truth = f > 0.0
    flipped = rng.random(20_000) < 0.05
    y = truth ^ flipped
    model = GaussianProcessClassifier(KERNEL, n_inducing=100, random_state=0).fit(X, y)
    part = slice(0, 4000)
    dense = GaussianProcessClassifier(model.kernel_, optimizer=None).fit(X[part], y[part])
    rows = np.arange(4000)
    scores = []
    for found in (model, dense):
        proba = found.fixed_kernel_loo_proba_[part]
        scores.append(roc_auc_score(flipped[part], -proba[rows, y[part].astype(int)]))
    assert scores[0] >= scores[1] - 0.002
    curve = learning_curve(model, train_sizes=[10_000, 20_000])
    worst = [suspect.index for suspect in curve.suspects(200)]
    assert np.mean(flipped[worst]) > 0.9
