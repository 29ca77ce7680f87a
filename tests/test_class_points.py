"""The classifier with all classes at once on inducing points."""

import os
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

from cavity import (
    GaussianProcessClassifier,
    feature_effect,
    feature_importance,
    find_suspects,
    learning_curve,
)
from cavity.estimators import load, save
from cavity.rows import MemoryBlocks, ParquetRows
from cavity.sites import Rows

KERNEL = 4.0 * RBF([1.0, 2.0])


def table(n=150, seed=0, n_classes=3):
    """Noisy labels of classes with names, and two inputs."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    F = np.column_stack([np.sin(2.0 * X[:, 0]), X[:, 1], -X[:, 0], -X[:, 1]])[:, :n_classes]
    return X, np.array(list("pqrs"))[np.argmax(F + 0.5 * rng.normal(size=F.shape), axis=1)]


X, Y = table()
NEW = table(40, 1)[0]


def model(**options):
    """The classifier under test, with a fixed kernel unless asked for."""
    options = {"kernel": KERNEL, "optimizer": None, "n_inducing": 20, "random_state": 0} | options
    return GaussianProcessClassifier(multi_class="multinomial", **options)


@pytest.mark.parametrize("inference", ["ep", "laplace", "variational", "naive"])
def test_all_points_are_no_points(inference):
    """With all rows as inducing points every answer is that of the dense fit."""
    how = {"inference": inference, "tol": 1e-10}
    got = model(inducing_points=X, **how).fit(X, Y)
    want = model(n_inducing=None, **how).fit(X, Y)
    # The points whose variance the others explain to 1e-13 are left out.
    close = {"rtol": 1e-6, "atol": 1e-7}
    assert got.log_marginal_likelihood_value_ == pytest.approx(
        want.log_marginal_likelihood_value_, rel=1e-8
    )
    assert_allclose(got.predict_proba(NEW), want.predict_proba(NEW), **close)
    assert_allclose(got.fixed_kernel_loo_proba_, want.fixed_kernel_loo_proba_, **close)
    for a, b in zip(
        got.latent_mean_and_variance(NEW), want.latent_mean_and_variance(NEW), strict=True
    ):
        assert_allclose(a, b, **close)
    assert np.array_equal(got.predict(NEW), want.predict(NEW))
    assert_allclose(got.predict_proba(NEW).sum(axis=1), 1.0, rtol=1e-12)
    assert_array_equal(got.predict_set(NEW, 0.8), want.predict_set(NEW, 0.8))


def test_few_points_reach_the_optimum_of_all():
    """Tuned on few points, evidence and predictions are nearly those of the dense fit."""
    X, y = table(550, 3)
    new, truth = table(500, 4)
    few = model(kernel=1.0 * RBF([1.0, 1.0]), optimizer="fmin_l_bfgs_b", n_inducing=60).fit(X, y)
    dense = model(kernel=few.kernel_, n_inducing=None).fit(X, y)
    losses = [log_loss(truth, found.predict_proba(new)) for found in (few, dense)]
    # What the points leave over; a nat is what another point would gain.
    assert few.log_marginal_likelihood_value_ == pytest.approx(
        dense.log_marginal_likelihood_value_, abs=1.0
    )
    assert losses[0] == pytest.approx(losses[1], abs=0.002)
    _, gradient = dense.log_marginal_likelihood(dense.kernel_.theta, eval_gradient=True)
    assert np.max(np.abs(gradient)) < 2.0
    assert few.inducing_left_over_ < 0.01
    assert abs(few.inducing_gain_) < 5.0
    assert few.inducing_points_.shape == (60, 2)
    left_out = log_loss(y, few.loo_proba_)
    assert left_out == pytest.approx(log_loss(y, dense.fixed_kernel_loo_proba_), abs=0.01)


def test_two_classes_are_the_binary_problem():
    """With two classes there is nothing to couple."""
    y = Y == "p"
    one = model().fit(X, y)
    other = clone(one).set_params(multi_class="one_vs_rest").fit(X, y)
    assert_allclose(one.predict_proba(NEW), other.predict_proba(NEW), rtol=1e-12)


def test_tables_in_blocks(tmp_path):
    """A table in blocks of memory or in files gives what arrays give."""
    truth = model(tol=1e-9).fit(X, Y)
    for k in range(3):
        part = slice(50 * k, 50 * (k + 1))
        columns = {"a": X[part, 0], "b": X[part, 1], "y": Y[part]}
        pq.write_table(pa.table(columns), tmp_path / f"{k}.parquet")
    files = ParquetRows(tmp_path, target="y", batch_rows=32)
    points = truth.inducing_points_
    for rows in (MemoryBlocks(Rows(Y, np.ones(150), X), 40), files):
        found = model(inducing_points=points, tol=1e-9).fit(rows)
        assert_allclose(found.fixed_kernel_loo_proba_, truth.fixed_kernel_loo_proba_, rtol=1e-6)
        assert_allclose(found.predict_proba(rows), truth.predict_proba(X), rtol=1e-6)
    with pytest.raises(ValueError, match="need a fit without inducing points"):
        learning_curve(found)


def test_weights_are_copies():
    """A row of weight two is two rows, one of weight zero is none; each is predicted."""
    weight = np.arange(150) % 3
    rows = np.repeat(np.arange(150), weight)
    points = X[:15]
    one = model(inducing_points=points, tol=1e-9).fit(X, Y, sample_weight=weight)
    many = model(inducing_points=points, tol=1e-9).fit(X[rows], Y[rows])
    assert_allclose(one.predict_proba(NEW), many.predict_proba(NEW), rtol=1e-7)
    loo = one.fixed_kernel_loo_proba_
    assert_allclose(loo[rows], many.fixed_kernel_loo_proba_, rtol=1e-6)
    absent = weight == 0
    assert_allclose(loo[absent], one.predict_proba(X[absent]), rtol=1e-9)


def test_leave_one_out_is_that_of_refits():
    """At fixed points and kernel, leave-one-out from one fit is that of fits without the row."""
    X, y = table(300, 5)
    found = model(inducing_points=X[:40], tol=1e-9).fit(X, y)
    own = found.loo_proba_[np.arange(300), np.searchsorted(found.classes_, y)]
    differences = []
    for i in np.argsort(own)[::50]:
        refit = clone(found).fit(np.delete(X, i, axis=0), np.delete(y, i))
        differences.append(found.loo_proba_[i] - refit.predict_proba(X[i : i + 1])[0])
    # Cavities answer to first order; the row that all others contradict is among these.
    assert np.mean(np.abs(differences)) < 3e-3
    assert np.max(np.abs(differences)) < 0.02


def test_leave_one_out_counts_the_tuning():
    """On few rows, leave-one-out after tuning is worse than with the kernel of all rows."""
    tuned = model(kernel=1.0 * RBF([1.0, 1.0]), optimizer="fmin_l_bfgs_b").fit(X, Y)
    counted, fixed = (log_loss(Y, p) for p in (tuned.loo_proba_, tuned.fixed_kernel_loo_proba_))
    assert fixed < counted < fixed + 0.05
    dense = model(kernel=tuned.kernel_, optimizer="fmin_l_bfgs_b", n_inducing=None).fit(X, Y)
    # The same correction within a part of itself, from other neighbours.
    price = log_loss(Y, dense.loo_proba_) - log_loss(Y, dense.fixed_kernel_loo_proba_)
    assert counted - fixed == pytest.approx(price, rel=0.3)


def test_files_hold_points_and_no_rows(tmp_path):
    """A model from a file predicts the same; its size does not depend on the number of rows."""
    sizes = []
    for n in (150, 600):
        found = model(inducing_points=X[:15]).fit(*table(n))
        save(found, tmp_path / "model")
        sizes.append(os.path.getsize(tmp_path / "model"))
        again = load(tmp_path / "model")
        assert_allclose(again.predict_proba(NEW), found.predict_proba(NEW), rtol=1e-12)
        for a, b in zip(
            again.latent_mean_and_variance(NEW), found.latent_mean_and_variance(NEW), strict=True
        ):
            assert_allclose(a, b, rtol=1e-12)
        effects = [feature_effect(m, NEW, 0, grid=[-1.0, 1.0]).mean for m in (again, found)]
        assert_allclose(*effects, rtol=1e-10)
        with pytest.raises(ValueError, match="comes from a file"):
            _ = again.loo_proba_
    # Numbers in text may have a digit more or less.
    assert abs(sizes[1] - sizes[0]) < 100
    copied = pickle.loads(pickle.dumps(found))
    assert np.array_equal(copied.predict_proba(NEW), found.predict_proba(NEW))
    assert np.array_equal(copied.loo_proba_, found.loo_proba_)


def test_every_way_of_tuning_climbs_the_ladder():
    """A chosen kernel, hierarchical priors, averages and warm starts go with points."""
    X, y = table(120, 6)
    new, truth = table(300, 7)
    for options in ({"kernel": "auto"}, {"hyperprior": "hierarchical"}):
        options = {"kernel": 1.0 * RBF([1.0, 1.0]), "optimizer": "fmin_l_bfgs_b"} | options
        found = model(average_hyperparameters=2, **options).fit(X, y)
        assert log_loss(truth, found.predict_proba(new)) < 0.8
        assert_allclose(found.predict_proba(new).sum(axis=1), 1.0, rtol=1e-12)
    again = model(kernel=found.kernel_, optimizer="fmin_l_bfgs_b", warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.fit(X, y).fit(X, y)
    assert np.isfinite(again.log_marginal_likelihood_value_)


def test_what_else_a_fit_can_tell():
    """Importance, effects, gradients and suspects are there."""
    noise = np.random.default_rng(8).normal(size=(150, 1))
    wide = np.hstack([X, noise])
    found = model(kernel=4.0 * RBF([1.0, 2.0, 20.0])).fit(wide, Y)
    shares = {
        row.feature: row.importance for row in feature_importance(found, wide, random_state=0)
    }
    assert min(shares["x0"], shares["x1"]) > 0.2 > 0.02 > shares["x2"]
    effect = feature_effect(found, wide, 0, grid=[-1.0, 1.0])
    assert effect.mean.shape == (2, 3)
    slope = found.predict_gradient(wide[:3])
    step = np.array([1e-4, 0.0, 0.0])
    rise = found.predict_proba(wide[:3] + step) - found.predict_proba(wide[:3] - step)
    # Differences of second order.
    assert_allclose(slope[:, :, 0], rise / 2e-4, atol=1e-6)


@pytest.mark.parametrize("points", [{"n_inducing": None}, {"n_inducing": 20}], ids=str)
def test_gradients_of_latent_values(points):
    """Every class has gradients of its mean and variance."""
    found = model(kernel=4.0 * RBF(1.5), **points).fit(X, Y)
    new, step = NEW[:4], 1e-4
    mean, variance = found.predict_gradient(new, of="latent")
    assert mean.shape == variance.shape == (4, 3, 2)
    for j, move in enumerate(step * np.eye(2)):
        up, down = (found.latent_mean_and_variance(new + s) for s in (move, -move))
        # Differences of second order.
        assert_allclose(mean[:, :, j], (up[0] - down[0]) / (2.0 * step), atol=1e-6)
        assert_allclose(variance[:, :, j], (up[1] - down[1]) / (2.0 * step), atol=1e-6)


def test_a_wrong_label_is_doubted():
    """A label that all its neighbours contradict is the least probable of all, left out."""
    wrong = Y.copy()
    i = int(np.argmax(model().fit(X, Y).predict_proba(X)[:, 0]))
    wrong[i] = "r"
    found = model().fit(X, wrong)
    own = found.loo_proba_[np.arange(150), np.searchsorted(found.classes_, wrong)]
    assert np.argmin(own) == i


def test_suspects_are_those_of_the_dense_model():
    """Wrong labels are found, and as many, whether the labels are in the prior or in blocks."""
    rows = np.r_[np.arange(150), 7, 7, 30]
    one, other = (
        find_suspects(found.fit(X[rows], Y[rows]), n_reasons=0)
        for found in (model(inducing_points=X), model(n_inducing=None))
    )
    assert one.count_interval == other.count_interval
    assert [(s.index, s.label, s.suggestion) for s in one] == [
        (s.index, s.label, s.suggestion) for s in other
    ]
    weighed = model().fit(X, Y, sample_weight=1.0 + np.arange(150) % 2)
    assert find_suspects(weighed).n_rows == 150


def test_a_class_that_the_sample_has_not_seen():
    """A class of one row is known, wherever the row is; its neighbours have the others' classes."""
    X, y = table(1200, 9)
    y[1100] = "a"
    found = model().fit(X, y)
    assert found.classes_.tolist() == ["a", "p", "q", "r"]
    proba = found.predict_proba(X)
    assert proba[:, 0].mean() < 0.01
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(np.log(found.loo_proba_)).all()


def test_what_there_is_not():
    """What does not go with points says so in one sentence."""
    softmax = model(likelihood="logit", inference="laplace")
    with pytest.raises(ValueError, match="likelihood='probit'"):
        softmax.fit(X, Y)
    with pytest.raises(ValueError, match="goes with likelihood='probit' and inference"):
        model(likelihood="logit").fit(X, Y)
    with pytest.raises(ValueError, match="needs the covariances of all rows"):
        model(inference="ensemble").fit(X, Y)
    with pytest.raises(ValueError, match="'one_vs_rest' or 'multinomial'"):
        model().set_params(multi_class="one_vs_one").fit(X, Y)
    with pytest.raises(ValueError, match="need one latent function"):
        model().fit(X, Y, offset=np.ones(150))
    with pytest.raises(ValueError, match="need a fit without inducing points"):
        learning_curve(model(), X, Y)
    with pytest.raises(AttributeError, match="without inducing points"):
        _ = model().fit(X, Y).evidence_correction_
