"""Learning curves, suspects and further questions about regressors of counts and other targets."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtri_exp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    compare_inference,
    cross_val_tuned,
    feature_effect,
    feature_importance,
    learning_curve,
    simulate_learning_curve,
)
from cavity.likelihoods import (
    Censored,
    Gamma,
    Gaussian,
    NegativeBinomial,
    Poisson,
    StudentT,
    surprise,
)
from cavity.resampling.repeats import RepeatedSites
from cavity.sites import Marginals

FIXED = "fixed"
LIKELIHOODS = {
    "poisson": Poisson(),
    "negative_binomial": NegativeBinomial(2.0, FIXED),
    "gamma": Gamma(3.0, FIXED),
    "student_t": StudentT(4.0, 0.3, FIXED, FIXED),
    "censored": Censored(0.1, -0.5, 1.0, FIXED),
}
KERNEL = 1.0 * RBF(1.0) + ConstantKernel(0.5)


def table(name, n, seed=0):
    """Return inputs, targets of a likelihood, and offsets."""
    rng = np.random.default_rng(seed)
    X, offset = rng.uniform(-2, 2, (n, 2)), rng.uniform(-0.5, 0.5, n)
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + offset
    return X, LIKELIHOODS[name].sample(f, rng), offset


def model(name, optimizer=None, kernel=KERNEL, **options):
    return GaussianProcessRegressor(
        kernel, likelihood=LIKELIHOODS[name], optimizer=optimizer, **options
    )


def agreement(name, n, law, repeats, seed=0):
    """Return whether theory and refits agree: two standard errors, or five per cent."""
    X, y, offset = table(name, n, seed)
    how = {"train_sizes": [0.2, 0.5, 0.8], "resampling": law, "offset": offset}
    reg = model(name).fit(X, y, offset=offset)
    theory = learning_curve(reg, X, y, **how)
    refits = simulate_learning_curve(reg, X, y, n_repeats=repeats, random_state=seed, **how)
    assert np.all(theory.converged)
    assert np.all(refits.converged)
    cells = []
    for measure in ("test_error", "test_log_loss"):
        a, b = getattr(theory, measure), getattr(refits, measure)
        near = 2.0 * refits.standard_error[measure]
        cells.append(np.abs(a - b) < np.maximum(near, 0.05 * np.abs(b)))
    return np.ravel(cells)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["subsample", "bootstrap"])
def test_theory_agrees_with_refits(law):
    """In most cells theory and a hundred refits agree, for every likelihood.

    Where they do not, the squared error of counts is mostly a tenth too high, with few rows: where
    a training set predicts much, it is also more certain, and e^{f} then averages to less.
    """
    cells = [agreement(name, n, law, 100) for name in LIKELIHOODS for n in (60, 100)]
    assert np.mean(cells) >= 0.85


@pytest.mark.parametrize("name", ["poisson", "censored", "student_t"])
def test_theory_is_near_refits(name):
    """Error and log loss of 40 rows are those of a few refits, to a tenth or three deviations."""
    X, y, offset = table(name, 40, 1)
    how = {"train_sizes": [20], "offset": offset}
    reg = model(name).fit(X, y, offset=offset)
    theory = learning_curve(reg, X, y, **how)
    refits = simulate_learning_curve(reg, X, y, n_repeats=25, random_state=0, **how)
    for measure in ("test_error", "test_log_loss", "pool_error", "posterior_variance"):
        a, b = getattr(theory, measure)[0], getattr(refits, measure)[0]
        assert abs(a - b) < 0.1 * abs(b) + 3.0 * refits.standard_error[measure][0]


def test_all_rows_are_the_leave_one_out():
    """At m = n the curve is the fit's leave-one-out, with an offset and a tuned trend."""
    X, y, offset = table("poisson", 30)
    reg = model("poisson", "fmin_l_bfgs_b", RBF(1.0, "fixed"), mean="linear", normalize_y=True)
    reg.fit(X, y, offset=offset)
    curve = learning_curve(reg, X, y, train_sizes=[30], offset=offset, retune=False)
    loo, _ = reg.fixed_kernel_loo_mean_, reg.fixed_kernel_loo_std_
    # The curve's equations are solved to four digits.
    assert_allclose(curve.point_mean[0], loo, rtol=2e-3)
    assert_allclose(curve.test_error[0], np.mean((loo - y) ** 2), rtol=2e-3)
    tuned = learning_curve(reg, X, y, train_sizes=[30], offset=offset)
    assert_allclose(tuned.point_mean[0], reg.loo_mean_, rtol=2e-3)


def test_gaussian_offsets_are_subtracted():
    """A Gaussian target with an offset has the curve of the target without it."""
    X, y, offset = table("student_t", 40)
    options = {"kernel": 1.0 * RBF(1.0), "alpha": 0.1, "optimizer": None}
    how = {"train_sizes": [10, 40]}
    here = GaussianProcessRegressor(**options).fit(X, y, offset=offset)
    there = GaussianProcessRegressor(**options).fit(X, y - offset)
    a = learning_curve(here, X, y, offset=offset, **how)
    b = learning_curve(there, X, y - offset, **how)
    for name in ("test_error", "test_log_loss", "pool_error", "point_doubt", "point_variance"):
        # The same numbers up to rounding.
        assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-10)
    assert_allclose(a.point_mean, b.point_mean + offset, rtol=1e-10)
    assert_allclose(a.predict(X[:3], 2.0)[0], b.predict(X[:3])[0] + 2.0, rtol=1e-10)
    assert_allclose(a.apparent_log_loss, b.apparent_log_loss, rtol=1e-10)


def test_classes_have_trends_in_their_curves():
    """A classifier whose trend does all the work errs as seldom as refits say."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=40) > 0.0
    clf = GaussianProcessClassifier(0.01 * RBF(1.0), optimizer=None, mean="linear").fit(X, y)
    process = clf._model.processes[0]
    likelihood = process.likelihood.with_theta(np.array([0.0, 3.0, 0.0]))
    assert likelihood.bare is process.likelihood.bare
    moved = clf._model.moved(np.concatenate([clf.kernel_.theta, [0.0, 3.0, 0.0]]))
    clf._model = moved
    how = {"train_sizes": [20]}
    theory = learning_curve(clf, X, y, **how)
    refits = simulate_learning_curve(clf, X, y, n_repeats=10, random_state=0, **how)
    assert theory.test_error[0] < 0.2
    # The kernel hardly matters: the labels decide which rows are wrong.
    assert_allclose(theory.test_error, refits.test_error, atol=0.05)
    assert_allclose(theory.point_mean, refits.point_mean, atol=0.05)


@pytest.mark.parametrize(
    ("name", "tuned"),
    [("gamma", False), ("student_t", False), ("censored", False), ("poisson", True)],
)
def test_all_rows_as_inducing_points_change_nothing(name, tuned):
    """With every row an inducing point the curve is the dense one, at its sizes and new inputs."""
    X, y, offset = table(name, 20)
    options = {"kernel": RBF(1.0, "fixed") + WhiteKernel(0.01, "fixed"), "normalize_y": tuned}
    options |= {"optimizer": "fmin_l_bfgs_b", "mean": "linear"} if tuned else {}
    dense = model(name, **options).fit(X, y, offset=offset)
    points = model(name, inducing_points=X, n_inducing=20, **options).fit(X, y, offset=offset)
    how = {"train_sizes": [12], "offset": offset, "theory": "cavity", "retune": False}
    curves = [learning_curve(m, X, y, tol=1e-10, max_iter=500, **how) for m in (dense, points)]
    # Tuned trends agree to the optimiser's tolerance.
    near = {"rtol": 1e-3 if tuned else 1e-8}
    # Means of order one may happen to be near zero.
    near |= {"atol": 1e-8}
    for part in ("test_error", "test_log_loss", "pool_error", "point_doubt", "point_mean"):
        assert_allclose(*(getattr(c, part) for c in curves), **near)
    assert_allclose(*(c.predict(X[:4] + 0.1, 0.3)[0] for c in curves), **near)


def test_forecasts_and_measures_of_counts():
    """Forecasts, sizes, measures and predictions of counts are those of expected counts."""
    X, y, offset = table("poisson", 16)
    reg = model("poisson").fit(X, y, offset=offset)
    curve = learning_curve(reg, X, y, train_sizes=[8, 16], offset=offset)
    now = curve.forecast(16).value
    assert_allclose(now, curve.test_error[-1], rtol=1e-3)
    assert 16 < curve.size_for(log_loss=curve.forecast(32, "log_loss").value) < 64
    # The grid of a measure has a spacing of a fiftieth of a deviation.
    assert_allclose(curve.measure(lambda p, t: (p - t) ** 2), curve.test_error, rtol=1e-6)
    mean, variance = curve.predict(X[:5], offset[:5])
    assert np.all(mean > 0.0)
    assert np.all(variance >= 0.0)
    assert curve.suspects(3)[0].doubt == np.max(curve.point_doubt[-1])


def test_offsets_are_asked_for():
    """A model that was fitted with offsets needs those of the pool."""
    X, y, offset = table("poisson", 20)
    reg = model("poisson").fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="pass offset="):
        learning_curve(reg, X, y)
    with pytest.raises(ValueError, match="needs likelihood='gaussian'"):
        learning_curve(
            model("poisson").fit(X, y), X, y, theory="variational", resampling="bootstrap"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tuned = GaussianProcessRegressor(ConstantKernel(1.0), likelihood="gamma").fit(X, y + 1.0)
    with pytest.raises(ValueError, match="likelihood__shape"):
        simulate_learning_curve(tuned, X, y + 1.0, retune=True)


def test_retuned_refits_of_counts():
    """Refits that tune again give counts in the table's units, whatever their level."""
    X, y, offset = table("poisson", 24)
    reg = GaussianProcessRegressor(
        ConstantKernel(1.0, (0.5, 2.0)), likelihood="poisson", normalize_y=True
    )
    how = {"train_sizes": [12], "n_repeats": 4, "random_state": 0, "offset": offset}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reg.fit(X, y, offset=offset)
        again = simulate_learning_curve(reg, X, y, retune=True, **how)
    kept = simulate_learning_curve(reg, X, y, **how)
    # A constant rate of 24 counts is found from 12 of them, whatever the kernel's variance.
    assert_allclose(again.test_log_loss, kept.test_log_loss, rtol=0.05)
    assert_allclose(again.point_mean, kept.point_mean, rtol=0.3)


def test_sites_of_a_bound_are_its_fixed_point():
    """The site of a Student t in a cavity has the precision that its own posterior asks for."""
    lik, c = StudentT(3.0, 0.5), Marginals(np.array([0.0, 1.0, -4.0]), np.array([0.5, 1.0, 2.0]))
    y = np.array([0.2, 5.0, 4.0])
    [(d1, d2)] = RepeatedSites(lik, y, np.ones(1), tol=1e-10)(c)
    q = Marginals(c.mean + c.variance * d1, c.variance * (1.0 + c.variance * d2))
    tau = lik.trust(y, q) / lik.scale**2
    assert_allclose(1.0 / q.variance, 1.0 / c.variance + tau, rtol=1e-8)
    assert_allclose(q.mean, q.variance * (c.mean / c.variance + tau * y), atol=1e-8)
    assert np.all(d2 <= 0.0)


def mid_tail(log_p, k, y):
    """Return the surprise of a count from sums of probabilities."""
    own = log_p[int(y)] - np.log(2.0)
    tails = [np.logaddexp.reduce([own, *log_p[side]]) for side in (k < y, k > y)]
    return abs(ndtri_exp(min(tails)))


@pytest.mark.parametrize("lik", [Poisson(), NegativeBinomial(3.0)])
def test_surprise_of_counts(lik):
    """It is that of the sums of all probabilities; far out, where they vanish, to a hundredth."""
    q, y = Marginals(np.array([1.0]), np.array([0.3])), np.array([0.0, 3.0, 20.0, 100.0, 300.0])
    found = surprise(lik, y, Marginals(q.mean + 0.0 * y, q.variance + 0.0 * y))
    k = np.arange(0.0, 700.0)
    log_p = lik.tilted(k, Marginals(q.mean + 0.0 * k, q.variance + 0.0 * k)).log_z
    truth = [mid_tail(log_p, k, v) for v in y]
    assert_allclose(found[:3], truth[:3], rtol=1e-9)
    # Beyond nine digits a tail is estimated from the density at its end.
    assert_allclose(found[3:], truth[3:], rtol=1e-2)


def test_surprise_of_real_targets():
    """It is the distance in deviations of a Gaussian, and the same on both sides of a Student t."""
    q = Marginals(np.full(5, 1.0), np.full(5, 0.3))
    d = np.array([0.1, 1.0, 5.0, 50.0, 1e4])
    assert_allclose(surprise(Gaussian(0.7), 1.0 + d, q), d, rtol=1e-12)
    lik = StudentT(4.0, 0.5)
    # Beyond nine digits the upper tail is estimated from the density at its end.
    assert_allclose(surprise(lik, 1.0 + d, q), surprise(lik, 1.0 - d, q), rtol=1e-2)
    assert_allclose(surprise(lik, 1.0 + d, q)[:3], surprise(lik, 1.0 - d, q)[:3], rtol=1e-8)
    limits = surprise(
        Censored(0.5, 0.0, 2.0),
        np.array([0.0, 1.0, 2.0]),
        Marginals(*(np.array([part] * 3) for part in (1.0, 0.3))),
    )
    assert_allclose(limits[0], limits[2], rtol=1e-9)
    assert limits[1] < 1e-6


def test_outliers_lead_the_suspects():
    """Of two per cent gross outliers nine in ten come first, and they do not spoil the fit."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (200, 2))
    f = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1]
    clean = f + 0.2 * rng.standard_normal(200)
    wrong = rng.choice(200, 4, replace=False)
    y = clean.copy()
    y[wrong] += np.array([4.0, -5.0, 6.0, -4.0])
    right = np.setdiff1d(np.arange(200), wrong)
    kernel = RBF(1.0, "fixed")
    robust = GaussianProcessRegressor(kernel, likelihood="student_t").fit(X, y)
    noise = WhiteKernel(0.1)
    without = GaussianProcessRegressor(kernel + noise).fit(X[right], clean[right])
    plain = GaussianProcessRegressor(kernel + noise).fit(X, y)
    assert set(np.argsort(-robust.outlier_score_)[:4]) == set(wrong)
    curve = learning_curve(robust, X, y, train_sizes=[200], retune=False)
    assert {suspect.index for suspect in curve.suspects(4)} == set(wrong)
    errors = [np.mean((m.predict(X[right]) - f[right]) ** 2) for m in (robust, without, plain)]
    noisy = [np.sqrt(error + 0.2**2) for error in errors]
    assert noisy[0] < 1.1 * noisy[1]
    assert errors[2] > 2.0 * errors[0]


def test_importance_and_effects_of_counts():
    """What predictions depend on is the expected count, and its band is that of drawn functions."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (50, 2))
    y = rng.poisson(np.exp(1.0 + 1.5 * X[:, 0]))
    reg = model("poisson", mean="linear", normalize_y=True).fit(X, y)
    found = feature_importance(reg, X, n_draws=50, random_state=0)
    assert found[0].feature == "x0"
    effect = feature_effect(reg, X, "x0", grid=[-0.8, 0.8], random_state=0)
    by_hand = [reg.predict(np.column_stack([np.full(50, v), X[:, 1]])).mean() for v in (-0.8, 0.8)]
    assert_allclose(effect.mean, by_hand, rtol=1e-10)
    assert np.all((effect.low < effect.mean) & (effect.mean < effect.high))
    draws = reg._model.draws(X[:4], 20_000, np.random.RandomState(0))
    # Twenty thousand draws of e^f: a standard error of half a per cent.
    assert_allclose(draws.mean(axis=0)[:, 0], reg.predict(X[:4]), rtol=0.03)


def test_folds_have_their_offsets_and_limits():
    """Cross-validation slices offsets, and each fold is cut off where the table is."""
    X, y, offset = table("poisson", 30)
    reg = model("poisson")
    mean, std = cross_val_tuned(reg, X, y, cv=3, offset=offset)
    there = cross_val_tuned(reg, X, y, cv=3, offset=offset + 0.0)
    assert_allclose(mean, there[0])
    assert np.all(std >= np.sqrt(mean))
    again = cross_val_tuned(reg, X, y, cv=3)[0]
    assert np.max(np.abs(np.log(mean / again))) > 0.1
    X, y, _ = table("censored", 30)
    censored = GaussianProcessRegressor(KERNEL, likelihood="censored", optimizer=None)
    found, _ = cross_val_tuned(censored, X, y, cv=10)
    assert np.all((found >= y.min()) & (found <= y.max()))


def test_methods_are_compared_on_counts():
    """The table of methods has the squared error and log loss of counts."""
    X, y, offset = table("poisson", 20)
    rows = compare_inference(
        X,
        y,
        KERNEL,
        likelihood="poisson",
        optimizer=None,
        offset=offset,
        inference=["ep", "laplace"],
    )
    reg = model("poisson", inference="ep").fit(X, y, offset=offset)
    assert_allclose(rows[0].loo_log_loss, -np.mean(reg.loo_log_prob_), rtol=1e-10)
    assert_allclose(rows[0].loo_error, np.mean((reg.loo_mean_ - y) ** 2), rtol=1e-10)
    assert all(row.converged for row in rows)
