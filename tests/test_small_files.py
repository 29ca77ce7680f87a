"""A few bytes that ask for endless work: weights of billions, and length scales by the thousand."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessRegressor, OnlineGaussianProcessClassifier, storage
from cavity.inference import sequential
from cavity.online import block


def data(n=12):
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X, (X[:, 0] > 0).astype(int)


def test_waiting_rows_of_billions(tmp_path, monkeypatch):
    """A warm-up file whose rows weigh 2e9 each opens and learns at the cost of ordinary rows."""
    path, (X, y) = tmp_path / "model", data()
    waiting = OnlineGaussianProcessClassifier(RBF(1.0), warmup=13, optimizer=None, budget=12)
    waiting.partial_fit(X, y, classes=[0, 1]).save(path)
    header, arrays = storage.read(path, "OnlineGaussianProcessClassifier")
    arrays["waiting.weight"].fill(2e9)
    storage.write(path, "OnlineGaussianProcessClassifier", header, arrays)
    model, solved, original = OnlineGaussianProcessClassifier.load(path), [], block.solve_block
    for room in ("cavity.online.block", "cavity.online.stream"):
        count = lambda *a: (solved.append(1), original(*a))[1]  # noqa: E731
        monkeypatch.setattr(f"{room}.solve_block", count)
    model.partial_fit(X[:1], y[:1])
    assert np.all(np.isfinite(model.predict_proba(X)))
    # One by one they would be twenty-four thousand million.
    assert 0 < len(solved) < len(X) * (sequential.SINGLY + 20)


@pytest.mark.parametrize("d", [5000])
def test_thousands_of_length_scales(d):
    """Tuning 5,000 length scales takes few evaluations, and no table of rows times parameters."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, d))
    calls = []

    def few(objective, theta, bounds):
        value, slope = objective(theta)
        calls.append(len(slope))
        return theta - 1e-3 * slope / np.linalg.norm(slope), value

    kernel = RBF(np.full(d, 70.0))
    model = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=few).fit(X, X[:, 0])
    assert calls == [d]
    assert np.all(np.isfinite(model.predict(X)))
    with pytest.warns(UserWarning, match="too good"):
        loo = model.loo_mean_
    assert np.all(np.isfinite(loo))
