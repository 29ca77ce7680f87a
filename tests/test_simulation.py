"""Simulated learning curves are what a loop of real refits gives, and what the theory predicts."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    learning_curve,
    simulate_learning_curve,
)
from cavity.model_selection.refits import Draws

SIZE, REPEATS = 25, 4


def two_classes(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, "yes", "no")


def target(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (n, 1))
    return X, 5.0 + 2.0 * np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def draws_of(curve, n, seed=0):
    """The training sets that a simulation has drawn."""
    law = Draws(curve.resampling, np.full(n, 1.0 / n), check_random_state(seed).randint(2**31 - 1))
    return law.draw(SIZE, REPEATS)


def held_out_by_hand(estimator, X, y, draws):
    """Held-out error and log loss of estimators fitted, in earnest, to the rows drawn."""
    found = []
    for rows in draws:
        out = np.setdiff1d(np.arange(len(y)), rows)
        model = clone(estimator).fit(X[rows], y[rows])
        if hasattr(model, "predict_proba"):
            error = np.mean(model.predict(X[out]) != y[out])
            loss = log_loss(y[out], model.predict_proba(X[out]), labels=model.classes_)
        else:
            mean, std = model.predict(X[out], return_std=True)
            # With the noise in the kernel the standard deviation has it already.
            variance, square = std**2 + model.alpha, (y[out] - mean) ** 2
            error = np.mean(square)
            loss = np.mean(0.5 * (np.log(2.0 * np.pi * variance) + square / variance))
        found.append((error, loss))
    return np.mean(found, axis=0)


CLASSIFIERS = {
    "ep": GaussianProcessClassifier(2.0 * RBF(1.5), optimizer=None),
    "laplace, logit": GaussianProcessClassifier(
        2.0 * RBF(1.5), optimizer=None, inference="laplace", likelihood="logit"
    ),
    "laplace, noise": GaussianProcessClassifier(
        2.0 * RBF(1.5) + WhiteKernel(0.5), optimizer=None, inference="laplace"
    ),
    "step": GaussianProcessClassifier(
        2.0 * RBF(1.5) + WhiteKernel(0.5), optimizer=None, likelihood="step"
    ),
    "pipeline": make_pipeline(
        # With means and scales off a refit's own scaler does what that of the whole table does.
        StandardScaler(with_mean=False, with_std=False),
        GaussianProcessClassifier(2.0 * RBF(1.5), optimizer=None),
    ),
}
REGRESSORS = {
    "alpha": GaussianProcessRegressor(2.0 * RBF(0.8), alpha=0.1, optimizer=None),
    "noise": GaussianProcessRegressor(2.0 * RBF(0.8) + WhiteKernel(0.1), optimizer=None),
}


def agree(estimator, X, y, resampling="subsample", **options):
    how = {"train_sizes": [SIZE], "n_repeats": REPEATS, "random_state": 0, **options}
    curve = simulate_learning_curve(estimator, X, y, resampling=resampling, **how)
    truth = held_out_by_hand(estimator, X, y, draws_of(curve, len(y)))
    # Both stop iterating at residuals of about 1e-8.
    np.testing.assert_allclose([curve.test_error[0], curve.test_log_loss[0]], truth, rtol=1e-6)


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_are_refitted(name, resampling):
    """Held-out averages are those of the estimator itself fitted to the rows drawn."""
    agree(CLASSIFIERS[name], *two_classes(), resampling)


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_are_refitted(name, resampling):
    """The same for real targets, with the noise in alpha or in the kernel."""
    agree(REGRESSORS[name], *target(), resampling)


@pytest.mark.parametrize(
    ("estimator", "table"),
    [
        (GaussianProcessClassifier(1.0 * RBF(1.0)), two_classes()),
        (GaussianProcessClassifier(1.0 * RBF(1.0) + WhiteKernel(0.1, (1e-2, 1e2))), two_classes()),
        (GaussianProcessClassifier("auto"), two_classes()),
        (GaussianProcessRegressor("auto"), target()),
        (GaussianProcessRegressor(RBF(1.0), alpha=0.1, normalize_y=True), target()),
    ],
)
def test_retuned_refits_are_fits(estimator, table):
    """With retune the averages are those of the estimator itself, tuned on the rows drawn."""
    with warnings.catch_warnings():
        # One of the small tables leads a hyperparameter to its bound.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if isinstance(estimator, GaussianProcessRegressor) and estimator.alpha > 1e-3:
            # By hand the given noise is not scaled with the target: compare the errors only.
            options = {"train_sizes": [SIZE], "n_repeats": REPEATS, "random_state": 0}
            curve = simulate_learning_curve(estimator, *table, retune=True, **options)
            truth = held_out_by_hand(estimator, *table, draws_of(curve, len(table[1])))
            assert curve.test_error[0] == pytest.approx(truth[0], rel=1e-6)
        else:
            agree(estimator, *table, retune=True)


def test_training_sets_without_a_class_keep_the_kernel():
    """What cannot be tuned on has the kernel of the whole table, and is fitted all the same."""
    X, y = two_classes()
    curves = [
        simulate_learning_curve(
            GaussianProcessClassifier(1.0 * RBF(1.0)),
            *(X, y),
            train_sizes=[1],
            n_repeats=3,
            random_state=0,
            retune=retune,
        )
        for retune in (False, True)
    ]
    assert curves[0].test_log_loss == curves[1].test_log_loss


def test_each_class_keeps_its_own_tuned_kernel():
    """With several classes each binary problem is refitted with the kernel tuned for it."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    clf = GaussianProcessClassifier(ConstantKernel(10.0, "fixed") * RBF(2.0)).fit(X, y)
    curve = simulate_learning_curve(
        clf, X, y, train_sizes=[SIZE], n_repeats=REPEATS, random_state=0
    )
    losses = []
    for rows in draws_of(curve, len(y)):
        out = np.setdiff1d(np.arange(len(y)), rows)
        again = clone(clf).set_params(optimizer=None, warm_start=True)
        again._thetas = clf._thetas
        proba = again.fit(X[rows], y[rows]).predict_proba(X[out])
        losses.append(log_loss(y[out], proba))
    # Both stop iterating at residuals of about 1e-8.
    np.testing.assert_allclose(curve.test_log_loss[0], np.mean(losses), rtol=1e-6)
    assert curve.point_mean.shape == (1, len(y), 3)
    with pytest.raises(ValueError, match="3 classes"):
        curve.measure(lambda p, y: p - y)


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_theory_predicts_the_simulation(kind, resampling):
    """The cavity theory lies within four standard errors and three per cent of refitting."""
    X, y = two_classes(100) if kind == "classification" else target(100)
    estimator = (CLASSIFIERS["ep"] if kind == "classification" else REGRESSORS["alpha"]).fit(X, y)
    options = {"train_sizes": [30, 60], "resampling": resampling}
    theory = learning_curve(estimator, X, y, **options)
    simulation = simulate_learning_curve(estimator, X, y, n_repeats=60, random_state=1, **options)
    for name, error in simulation.standard_error.items():
        expected = getattr(theory, name)
        # The theory's own error in studies on more data sets is one to five per cent.
        slack = 4.0 * error + 0.03 * np.abs(expected)
        assert np.all(np.abs(getattr(simulation, name) - expected) < slack), name


def test_leave_one_out_is_exact():
    """At m = n, with n refits, every example is left out once and no sampling error remains."""
    X, y = target(30)
    reg = REGRESSORS["alpha"].fit(X, y)
    curve = simulate_learning_curve(reg, X, y, train_sizes=[30], n_repeats=99, random_state=0)
    # The closed form of leave-one-out is exact for regression; rounding is all that differs.
    np.testing.assert_allclose(curve.point_mean[0], reg.loo_mean_, rtol=1e-8)
    np.testing.assert_allclose(curve.test_error[0], np.mean((y - reg.loo_mean_) ** 2), rtol=1e-8)
    assert curve.standard_error["test_error"][0] == 0.0


def test_same_seed_same_curve_whatever_the_workers_and_the_other_sizes():
    """Neither n_jobs nor other sizes change a single bit; another seed does."""
    X, y = two_classes()

    def run(sizes, seed=0, **options):
        return simulate_learning_curve(
            CLASSIFIERS["ep"], X, y, train_sizes=sizes, n_repeats=12, random_state=seed, **options
        )

    one, two, other = run([10, 30]), run([10, 30], n_jobs=2), run([10, 30], seed=1)
    np.testing.assert_array_equal(one.point_log_loss, two.point_log_loss)
    np.testing.assert_array_equal(run([30]).test_log_loss, one.test_log_loss[1:])
    assert np.all(one.test_log_loss != other.test_log_loss)


def test_training_sets_of_one_class_count():
    """A training set of one class predicts that class; it is neither refused nor redrawn."""
    X, y = two_classes()
    curve = simulate_learning_curve(
        CLASSIFIERS["ep"], X, y, train_sizes=[1, 2], n_repeats=50, random_state=0
    )
    assert np.all(np.isfinite(curve.test_error))
    # One example lends its label to its neighbourhood: hardly better than guessing.
    assert abs(curve.test_error[0] - 0.5) < 0.2


def test_a_tie_is_half_an_error():
    """Where training says nothing at all, the label is a guess."""
    X = 1e3 * np.arange(6.0)[:, None]
    clf = GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None)
    curve = simulate_learning_curve(clf, X, [0, 1] * 3, train_sizes=[3], n_repeats=5)
    assert curve.test_error[0] == 0.5


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
def test_held_out_weights_make_up_for_unequal_draws(resampling):
    """Weighted by them, left-out examples average to the population's mean."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.5, 1.5, 40)
    share /= share.sum()
    values, law = rng.standard_normal(40), Draws(resampling, share, 0)
    size, repeats = 20, 4000
    draws = law.draw(size, repeats)
    out = np.array([~np.isin(np.arange(40), rows) for rows in draws])
    sums = out * law.weight(size) @ values
    # Four standard errors of the average.
    slack = 4.0 * np.std(sums) / np.sqrt(repeats)
    assert abs(np.mean(sums) - values @ share) < slack
    # Sizes hold on average.
    assert abs(np.mean([len(rows) for rows in draws]) - size) < 4.0 * np.sqrt(size / repeats)


@pytest.mark.parametrize("resampling", ["subsample", "bootstrap"])
def test_weighted_populations_agree_with_theory(resampling):
    """Weights change the averages, and theory and simulation change alike."""
    X, y = target(100)
    reg = REGRESSORS["alpha"].fit(X, y)
    weight = np.where(X[:, 0] > 0.0, 3.0, 1.0)
    options = {"train_sizes": [30], "resampling": resampling, "sample_weight": weight}
    theory = learning_curve(reg, X, y, **options)
    simulation = simulate_learning_curve(reg, X, y, n_repeats=80, random_state=0, **options)
    for name, error in simulation.standard_error.items():
        expected = getattr(theory, name)
        # As without weights; the theory's size fluctuates, as here without replacement.
        slack = 4.0 * error + 0.05 * np.abs(expected)
        assert np.all(np.abs(getattr(simulation, name) - expected) < slack), name


def test_examples_without_weight_are_never_drawn():
    """Weights of zero and one draw exactly m examples from those of weight one."""
    law = Draws("subsample", np.array([0.0, 0.25, 0.25, 0.25, 0.25, 0.0]), 0)
    for rows in law.draw(2, 20):
        assert len(rows) == 2
        assert set(rows) <= {1, 2, 3, 4}


def test_normalised_targets_come_back_in_their_units():
    """With normalize_y all is as for the same model of the target scaled by hand."""
    X, y = target()
    scaled = (y - y.mean()) / y.std()
    options = {"train_sizes": [SIZE], "n_repeats": REPEATS, "random_state": 0}
    reg = REGRESSORS["alpha"]
    units = simulate_learning_curve(clone(reg).set_params(normalize_y=True), X, y, **options)
    plain = simulate_learning_curve(clone(reg), X, scaled, **options)
    # The same numbers in other units.
    np.testing.assert_allclose(units.test_error, plain.test_error * y.var(), rtol=1e-9)
    np.testing.assert_allclose(units.test_log_loss, plain.test_log_loss + np.log(y.std()))
    np.testing.assert_allclose(units.posterior_variance, plain.posterior_variance * y.var())
    np.testing.assert_allclose(units.point_mean, plain.point_mean * y.std() + y.mean())
    np.testing.assert_allclose(units.point_doubt, plain.point_doubt)


def test_measure_averages_what_is_asked():
    """measure() of the squared error is the average of the point errors."""
    X, y = target()
    curve = simulate_learning_curve(
        REGRESSORS["alpha"], X, y, train_sizes=[10, 30], n_repeats=20, random_state=0
    )
    square = curve.measure(lambda prediction, y: (prediction - y) ** 2)
    np.testing.assert_allclose(square, curve.point_error.mean(axis=1))
    X, y = two_classes()
    curve = simulate_learning_curve(
        CLASSIFIERS["ep"], X, y, train_sizes=[10], n_repeats=20, random_state=0
    )
    brier = curve.measure(lambda p, y: (p - y) ** 2)
    # Per example and per training set are two averages of the same numbers.
    assert abs(brier[0] - curve.test_brier[0]) < curve.standard_error["test_brier"][0]


def test_what_was_never_left_out_is_unknown():
    """Such examples are NaN, rank last among the suspects and do not sway a measure."""
    X, y = target()
    curve = simulate_learning_curve(
        REGRESSORS["alpha"], X, y, train_sizes=[58], n_repeats=3, random_state=0
    )
    unknown = np.isnan(curve.point_error[0])
    assert 54 <= unknown.sum() <= 58
    for name in ("log_loss", "mean", "variance", "support", "doubt"):
        np.testing.assert_array_equal(np.isnan(getattr(curve, "point_" + name)[0]), unknown)
    assert not unknown[curve.suspects(1)[0].index]
    assert np.isfinite(curve.measure(lambda p, y: np.abs(p - y))[0])


def test_sizes_without_held_out_examples_are_said():
    """A bootstrap so large that nothing is out of the bag warns and keeps the pool's averages."""
    X, y = target(20)
    with pytest.warns(UserWarning, match=r"\[2000.0\] no training set has left any example out"):
        curve = simulate_learning_curve(
            REGRESSORS["alpha"],
            X,
            y,
            train_sizes=[2000],
            resampling="bootstrap",
            n_repeats=2,
            random_state=0,
        )
    assert np.isnan(curve.test_error[0])
    assert np.isfinite(curve.pool_error[0])


def test_forecast_comes_from_the_simulated_sizes():
    """A forecast inside the sizes is the simulated value; fewer than three sizes are refused."""
    X, y = target()
    curve = simulate_learning_curve(
        REGRESSORS["alpha"], X, y, train_sizes=[10, 20, 30, 40], n_repeats=20, random_state=0
    )
    found = curve.forecast(80)
    assert found.low <= found.value <= found.high
    assert found.value < curve.test_error[0]
    short = simulate_learning_curve(
        REGRESSORS["alpha"], X, y, train_sizes=[10, 20], n_repeats=2, random_state=0
    )
    with pytest.raises(ValueError, match="at least three sizes; this one has 2"):
        short.forecast(80)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_repeats": 1}, "n_repeats must be an integer of at least 2"),
        ({"n_repeats": 2.5}, "n_repeats must be an integer"),
        ({"resampling": "jackknife"}, "resampling must be one of"),
        ({"train_sizes": [61]}, "at most 60 examples"),
        ({"train_sizes": [0]}, "must be positive"),
    ],
)
def test_bad_input_is_refused(options, message):
    """Each wrong argument gets an error that names it."""
    with pytest.raises(ValueError, match=message):
        simulate_learning_curve(REGRESSORS["alpha"], *target(), **options)


def test_new_inputs_are_refused():
    """A simulation has no predictions for inputs outside the pool, and says who has."""
    X, y = target()
    curve = simulate_learning_curve(REGRESSORS["alpha"], X, y, train_sizes=[9], n_repeats=2)
    with pytest.raises(ValueError, match="learning_curve"):
        curve.predict(X)


def test_progress_is_told(capsys):
    """verbose=1 prints a line for each size, verbose=0 nothing."""
    X, y = target()
    options = {"train_sizes": [10, 20], "n_repeats": 2, "random_state": 0}
    simulate_learning_curve(REGRESSORS["alpha"], X, y, **options)
    assert capsys.readouterr().out == ""
    simulate_learning_curve(REGRESSORS["alpha"], X, y, verbose=1, **options)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["size 10 (1 of 2)", "size 20 (2 of 2)"]
