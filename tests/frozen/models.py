"""What users see: estimators, learning curves, streams and tuned kernels."""

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.preprocessing import StandardScaler

from cavity import (
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    OnlineGaussianProcessClassifier,
    OnlineGaussianProcessRegressor,
    learning_curve,
)
from cavity.datasets import load_crabs, load_pima

__all__ = ["CURVES", "MODELS", "ROOMS", "STREAMS", "TUNED"]

TOL, CURVE_TOL = 1e-11, 1e-10
KERNEL = 1.5 * RBF([0.9, 1.4]) + WhiteKernel(0.2)


def two_classes(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, (np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.standard_normal(n) > 0).astype(int)


def three_classes(n, seed):
    return make_blobs(n, centers=3, cluster_std=2.5, center_box=(-3, 3), random_state=seed)


def targets(n, seed, outputs=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    waves = [np.sin((1.0 + k) * X[:, 0]) + 0.3 * X[:, 1] for k in range(outputs)]
    y = 3.0 + 2.0 * np.stack(waves, axis=1) + 0.3 * rng.standard_normal((n, outputs))
    return X, y[:, 0] if outputs == 1 else y


def weights(n, seed, values=(0.0, 0.5, 1.0, 2.0)):
    return np.random.default_rng(seed).choice(values, size=n)


def classifier(**options):
    return GaussianProcessClassifier(KERNEL, optimizer=None, tol=TOL, **options)


def regressor(**options):
    return GaussianProcessRegressor(KERNEL, optimizer=None, **options)


def _slope(model):
    value, gradient = model.log_marginal_likelihood(model.kernel_.theta + 0.1, eval_gradient=True)
    return {"evidence": model.log_marginal_likelihood_value_, "moved": value, "gradient": gradient}


def _classified(data, weight=None, **options):
    X, y = data
    model = classifier(**options).fit(X, y, weight)
    found = _slope(model) | {"predicted": model.predict(X[:9] + 0.3)}
    if options.get("multi_class") != "one_vs_one":
        found |= {"proba": model.predict_proba(X[:5] + 0.3), "loo": model.loo_proba_}
    return found | {"correction": model.evidence_correction_}


def _regressed(data, weight=None, **options):
    X, y = data
    model = regressor(**options).fit(X, y, weight)
    mean, std = model.predict(X[:5] + 0.3, return_std=True)
    loo = {"loo_mean": model.loo_mean_, "loo_std": model.loo_std_}
    return _slope(model) | {"mean": mean, "std": std, "alpha": model.alpha_} | loo


def _precomputed_classes():
    X, y = two_classes(36, 24)
    K, cross = KERNEL(X[:30]), KERNEL(X[30:], X[:30])
    model = GaussianProcessClassifier("precomputed", tol=TOL).fit(K, y[:30], weights(30, 8))
    evidence = model.log_marginal_likelihood_value_
    return {"evidence": evidence, "proba": model.predict_proba(cross), "loo": model.loo_proba_}


def _precomputed_targets():
    X, y = targets(36, 25)
    K, cross = KERNEL(X[:30]), KERNEL(X[30:], X[:30])
    model = GaussianProcessRegressor("precomputed", alpha=0.1).fit(K, y[:30])
    mean, std = model.predict(cross, return_std=True)
    return {"mean": mean, "std": std, "loo_mean": model.loo_mean_, "loo_std": model.loo_std_}


MODELS = {
    "binary": lambda: _classified(two_classes(40, 11)),
    "binary, logit": lambda: _classified(two_classes(30, 12), likelihood="logit"),
    "binary, weights": lambda: _classified(two_classes(35, 13), weights(35, 13)),
    "one vs rest": lambda: _classified(three_classes(36, 14)),
    "one vs rest, weights": lambda: _classified(three_classes(33, 15), weights(33, 15)),
    "one vs one": lambda: _classified(three_classes(36, 16), multi_class="one_vs_one"),
    "precomputed classes": _precomputed_classes,
    "exact: plain": lambda: _regressed(targets(40, 17), alpha=0.1),
    "exact: normalised": lambda: _regressed(targets(40, 18), alpha=0.1, normalize_y=True),
    "exact: two targets": lambda: _regressed(targets(30, 19, 2), alpha=0.2, normalize_y=True),
    "exact: noise": lambda: _regressed(targets(30, 20), alpha=np.linspace(0.05, 0.5, 30)),
    "exact: weights": lambda: _regressed(
        targets(35, 21), weights(35, 21), alpha=0.1, normalize_y=True
    ),
    "exact: precomputed": _precomputed_targets,
}
"""Estimators with a kernel that stays as it is."""


def _curve(model, data, tol=CURVE_TOL, **options):
    curve = learning_curve(model, *data, train_sizes=[6, 12, 20, 28], tol=tol, **options)
    assert curve.converged.all()
    names = ["test_error", "test_log_loss", "pool_error", "posterior_variance"]
    found = {name: getattr(curve, name) for name in names}
    return found | {"point_support": curve.point_support[:, :5]}


CURVES = {
    "two classes": lambda **o: _curve(classifier(), two_classes(40, 31), **o),
    "two classes, bootstrap": lambda **o: _curve(
        classifier(), two_classes(40, 32), resampling="bootstrap", **o
    ),
    "two classes, logit": lambda **o: _curve(
        classifier(likelihood="logit"), two_classes(32, 33), **o
    ),
    "two classes, weights": lambda **o: _curve(
        classifier(),
        two_classes(40, 34),
        sample_weight=weights(40, 34, (0.5, 1.0, 1.5)),
        resampling="bootstrap",
        **o,
    ),
    "three classes": lambda **o: _curve(classifier(), three_classes(36, 35), **o),
    "three classes, bootstrap": lambda **o: _curve(
        classifier(), three_classes(36, 36), resampling="bootstrap", **o
    ),
    "pairs": lambda **o: _curve(
        regressor(alpha=0.1, normalize_y=True), targets(40, 37), theory="pairs", **o
    ),
    "pairs, bootstrap": lambda **o: _curve(
        regressor(alpha=0.1, normalize_y=True),
        targets(40, 38),
        theory="pairs",
        resampling="bootstrap",
        **o,
    ),
    "regression, cavity": lambda **o: _curve(
        regressor(alpha=0.1, normalize_y=True), targets(40, 39), theory="cavity", **o
    ),
    "regression, variational": lambda **o: _curve(
        regressor(alpha=0.1, normalize_y=True),
        targets(40, 40),
        theory="variational",
        resampling="bootstrap",
        **o,
    ),
}
"""Learning curves, to a given tolerance."""


def _streamed_classes(data, weight=None, **options):
    X, y = data
    model = OnlineGaussianProcessClassifier(KERNEL, **options).fit(X, y, weight)
    return {"proba": model.predict_proba(X[:6] + 0.3), "evidence": model.log_evidence_}


def _streamed_targets(data, weight=None, **options):
    X, y = data
    model = OnlineGaussianProcessRegressor(KERNEL, **options).fit(X, y, weight)
    mean, std = model.predict(X[:6] + 0.3, return_std=True)
    return {"mean": mean, "std": std, "evidence": model.log_evidence_}


STREAMS = {
    "classes, budget": lambda: _streamed_classes(two_classes(120, 41), budget=15),
    "classes, sweeps": lambda: _streamed_classes(three_classes(90, 42), budget=12, sweeps=60),
    "targets, forget": lambda: _streamed_targets(targets(120, 43), budget=15, forget=0.99),
    "targets, weights": lambda: _streamed_targets(targets(100, 44), weights(100, 44), budget=20),
}
"""Online estimators."""


def _tuned(model, X, y):
    model.fit(X, y)
    return {"theta": model.kernel_.theta, "evidence": model.log_marginal_likelihood_value_}


def _tuned_pima():
    X, y = load_pima(return_X_y=True)
    return _tuned(GaussianProcessClassifier(1.0 * RBF(1.0)), StandardScaler().fit_transform(X), y)


def _tuned_crabs():
    X, y = load_crabs(return_X_y=True)
    # The two columns that matter, and no amplitude: the evidence grows with it for ever.
    X = StandardScaler().fit_transform(X[:, 2:4])
    kernel = ConstantKernel(100.0, "fixed") * RBF([1.0, 1.0])
    return _tuned(GaussianProcessClassifier(kernel), X, y)


def _tuned_targets():
    kernel = 1.0 * Matern([1.0, 1.0], nu=2.5) + WhiteKernel(0.1)
    return _tuned(GaussianProcessRegressor(kernel, normalize_y=True), *targets(120, 45))


TUNED = {"pima": _tuned_pima, "crabs": _tuned_crabs, "regression": _tuned_targets}
"""Kernels tuned at the default settings."""

ROOMS = {"model": MODELS, "curve": CURVES, "stream": STREAMS, "tuned": TUNED}
"""All of them."""
