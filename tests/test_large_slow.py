"""Inducing points at 3,000 rows, against the dense model and against refits."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import log_loss

from cavity import GaussianProcessClassifier, learning_curve

pytestmark = pytest.mark.slow
N, KERNEL = 3000, 4.0 * RBF([1.0, 1.0])


def classes(n, seed=0):
    """Return a smooth table of two inputs and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1]
    return X, np.where(f + 0.5 * rng.normal(size=n) > 0.0, 1, -1)


@pytest.fixture(scope="module")
def dense():
    """The dense model at its own optimum."""
    return GaussianProcessClassifier(KERNEL).fit(*classes(N))


def at(kernel, **points):
    """Return a model with this kernel and these points, fitted to all rows."""
    model = GaussianProcessClassifier(kernel, optimizer=None, random_state=0, **points)
    return model.fit(*classes(N))


@pytest.mark.parametrize("m", [100, 300])
def test_points_reach_the_dense_optimum(dense, m):
    """The evidence at the dense optimum is within half a nat, and so is the tuned one."""
    X, y = classes(N, seed=1)
    model = at(dense.kernel_, n_inducing=m)
    own = GaussianProcessClassifier(KERNEL, n_inducing=m, random_state=0).fit(*classes(N))
    truth, loss = dense.log_marginal_likelihood_value_, log_loss(y, dense.predict_proba(X))
    for found in (model, own):
        assert abs(found.log_marginal_likelihood_value_ - truth) < 0.5
        assert abs(log_loss(y, found.predict_proba(X)) - loss) < 0.002


@pytest.mark.parametrize("m", [100, 300])
def test_left_out_rows_are_those_of_refits(m):
    """Leave-one-out probabilities are those of refits at the same kernel and points."""
    X, y = classes(N)
    model, differences = at(KERNEL, n_inducing=m), []
    given = clone(model).set_params(inducing_points=model.inducing_points_, n_inducing=None)
    doubtful = np.argsort(model.loo_proba_[np.arange(N), (y > 0).astype(int)])
    for i in np.r_[doubtful[:15], doubtful[:: N // 15]]:
        rest = np.arange(N) != i
        p = given.fit(X[rest], y[rest]).predict_proba(X[[i]])[0]
        differences.append(np.max(np.abs(p - model.loo_proba_[i])))
    assert np.max(differences[16:]) < 0.002
    # The rows that the others contradict most: EP's cavities answer to first order, dense or not.
    assert np.max(differences) < 0.003


@pytest.mark.parametrize("m", [100, 300])
def test_curves_are_those_of_refits(m):
    """Average errors and log losses are within 5 % of refits, at five sizes of six."""
    X, y = classes(N)
    model, rng = at(KERNEL, n_inducing=m), np.random.default_rng(0)
    given = clone(model).set_params(inducing_points=model.inducing_points_, n_inducing=None)
    sizes = [30, 60, 125, 250, 500, 1000]
    curve = learning_curve(model, X, y, train_sizes=sizes, retune=False)
    close = []
    for k, size in enumerate(sizes):
        found = []
        for _ in range(max(8, 3000 // size)):
            order = rng.permutation(N)
            drawn, rest = order[:size], order[size:]
            p = given.fit(X[drawn], y[drawn]).predict_proba(X[rest])
            truth = (y[rest] > 0).astype(int)
            found.append([np.mean((p[:, 1] > 0.5) != truth), log_loss(truth, p)])
        want = np.mean(found, axis=0)
        pair = np.array([curve.test_error[k], curve.test_log_loss[k]])
        close += list(np.abs(pair / want - 1.0) < 0.05)
    assert np.mean(close) >= 0.85
