"""Prediction: the tails of probabilities, and bounded memory whatever the number of rows."""

import pickle
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.estimators import process
from cavity.likelihoods import Probit
from cavity.sites import Slope

N = 40


def data(n=N, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    return X, np.digitize(
        X[:, 0] + 0.3 * rng.standard_normal(n), np.linspace(-1, 1, classes + 1)[1:-1]
    )


# Tails


def far_rows(model, mean, variance):
    """Covariances, with prior variances, of inputs with about this latent mean and variance."""
    posterior = model.base_estimator_.fits[0].posterior
    i = np.argmax(np.abs(posterior.alpha))
    R_ii = 2.0 * (0.5 * posterior.alpha[i] ** 2 - posterior.slope_matrix(Slope())[i, i])
    rows = np.zeros((len(mean), N))
    rows[:, i] = mean / posterior.alpha[i]
    return rows, variance + rows[:, i] ** 2 * R_ii


def probit_probability(m, v):
    return mpmath.ncdf(m / mpmath.sqrt(1 + v))


def logit_probability(m, v):
    """E 1/(1 + exp(−f)) by quadrature over pieces of one deviation, and of one near the kink."""
    s = mpmath.sqrt(v)
    around = [c + k * s for c in (m, m + v) for k in range(-13, 14)]
    pieces = sorted({*around, *map(mpmath.mpf, range(-20, 21, 4))})
    low, high = min(around), max(around)

    def integrand(f):
        return mpmath.npdf(f, m, s) / (1 + mpmath.exp(-f))

    return mpmath.quad(integrand, [f for f in pieces if low <= f <= high])


@pytest.mark.parametrize(
    ("likelihood", "probability", "means"),
    [
        ("probit", probit_probability, [-50.0, -37.0, -5.0, -0.1, 2.0, 8.0, 37.0]),
        ("logit", logit_probability, [-690.0, -200.0, -30.0, -1.0, 3.0, 100.0, 690.0]),
    ],
)
def test_log_probabilities_down_to_1e_300(likelihood, probability, means):
    """Both log probabilities are right to 1e-8, however little one of them leaves."""
    X, y = data()
    K = RBF(1.0)(X)
    model = GaussianProcessClassifier("precomputed", likelihood=likelihood).fit(K, y)
    mean, variance = (a.ravel() for a in np.meshgrid(means, [1e-2, 1.0, 30.0]))
    rows, prior = far_rows(model, mean, variance)
    known = model.with_prior_variance(prior)
    found = known.predict_log_proba(rows)
    latents = zip(*known.latent_mean_and_variance(rows), strict=True)
    seen = 0
    # What is left of one when 1e-300 is taken off has 300 nines.
    with mpmath.workdps(30):
        for row, (m, v) in zip(found, latents, strict=True):
            less = probability(-abs(mpmath.mpf(m)), mpmath.mpf(v))
            if less < 1e-300:
                continue
            for log_p, sign in zip(row, (-1, 1), strict=True):
                seen += 1
                truth = mpmath.log(less) if sign * m < 0 else log_of_rest(less)
                assert abs(log_p - truth) <= 1e-8 * abs(truth)
    assert seen > 30


def log_of_rest(p):
    """log(1 − p); the series' next term is below 1e-24 of the first."""
    return -p - p**2 / 2 - p**3 / 3 if p < 1e-8 else mpmath.log1p(-p)


@pytest.mark.parametrize("likelihood", ["probit", "logit", Probit(1e-6), "step"])
@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_probabilities(likelihood, classes):
    """Every row of probabilities is non-negative and sums to one, the leave-one-out ones too."""
    X, y = data(classes=classes)
    kernel = 1e4 * RBF(1.0)
    inference = "ensemble" if likelihood == "step" else "ep"
    model = GaussianProcessClassifier(
        kernel, optimizer=None, likelihood=likelihood, inference=inference
    ).fit(X, y)
    rng = np.random.default_rng(1)
    X_new = np.vstack([X, 3.0 * rng.standard_normal((50, 2)), [[1e6, -1e6]]])
    for proba in (model.predict_proba(X_new), model.loo_proba_):
        assert np.all(proba >= 0.0)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)


# Memory


@pytest.mark.parametrize("kernel", [RBF(1.0), "precomputed"], ids=["vectors", "precomputed"])
def test_blocks_change_nothing(kernel, monkeypatch):
    """Blocks of one row give what one block of all rows gives."""
    X, y = data(classes=3)
    X_new = np.random.default_rng(1).standard_normal((31, 2))
    train, new = (X, X_new) if kernel != "precomputed" else (RBF(1.0)(X), RBF(1.0)(X_new, X))
    classifiers = [
        GaussianProcessClassifier(kernel, optimizer=None, multi_class=way).fit(train, y)
        for way in ("one_vs_rest", "one_vs_one")
    ]
    regressor = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None)
    regressor.fit(train, np.column_stack([y, -y]))

    def answers():
        yield classifiers[0].predict_log_proba(new)
        yield classifiers[1].predict(new)
        yield regressor.predict(new)
        yield from regressor.predict(new, return_std=True)

    whole = list(answers())
    monkeypatch.setattr(process, "_BLOCK_BYTES", 1)
    for a, b in zip(whole, answers(), strict=True):
        # Products of other shapes are summed in another order.
        np.testing.assert_allclose(a, b, rtol=1e-10)


CHILD = """
import pickle, re, sys
import numpy as np

def peak():
    # Not ru_maxrss: a new process inherits that of the one that started it.
    with open("/proc/self/status") as file:
        return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", file.read())[1])

with open(sys.argv[1], "rb") as file:
    model, method, options = pickle.load(file)
X = np.random.default_rng(0).standard_normal((int(sys.argv[2]), 4))
before = peak()
answer = getattr(model, method)(X, **options)
parts = answer if isinstance(answer, tuple) else (answer,)
assert all(len(part) == len(X) and np.isfinite(part).all() for part in parts)
print(peak() - before - sum(part.nbytes for part in parts))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
@pytest.mark.parametrize(
    ("case", "method", "options"),
    [
        ("binary", "predict_proba", {}),
        ("binary", "predict", {}),
        ("logit", "predict_proba", {}),
        ("multiclass", "predict_proba", {}),
        ("regression", "predict", {"return_std": True}),
    ],
)
def test_a_million_rows(case, method, options, tmp_path):
    """A million rows against a thousand take at most 200 MB beside the inputs and the answer."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 4))
    f = X[:, 0] + 0.3 * rng.standard_normal(1000)
    if case == "regression":
        model = GaussianProcessRegressor(RBF(1.0), alpha=0.1, optimizer=None).fit(X, f)
    else:
        model = GaussianProcessClassifier(
            RBF(1.0), optimizer=None, likelihood="logit" if case == "logit" else "probit"
        ).fit(X, np.digitize(f, [-0.5, 0.5] if case == "multiclass" else [0.0]))
    path = tmp_path / "model"
    path.write_bytes(pickle.dumps((model, method, options)))
    # A process of its own, which has only loaded the model: fitting it takes memory as well.
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), "1000000"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Above zero, or nothing was measured: even one block takes some.
    assert 0 < int(done.stdout) <= 200e6
