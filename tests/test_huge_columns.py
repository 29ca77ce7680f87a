"""Columns near the largest floats: refused where their spread is needed, in one sentence."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cavity import GaussianProcessClassifier, GaussianProcessRegressor

OPTIONS = {
    "auto": ("auto", {}),
    "hierarchical": (RBF(np.ones(3)), {"hyperprior": "hierarchical"}),
    "trend": (RBF(1.0), {"mean": "linear"}),
    "inducing": (RBF(1.0), {"n_inducing": 10}),
}
MODELS = {"classifier": GaussianProcessClassifier, "regressor": GaussianProcessRegressor}


def table(size):
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = (X[:, 0] > 0.0).astype(int)
    X[:, 1] *= size / np.max(np.abs(X[:, 1]))
    return X, y


@pytest.mark.parametrize("size", [1e101, 1e200, 1e308])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("model", MODELS)
def test_a_huge_column_is_named(model, option, size):
    """What measures the spread of columns says which one has none; no warning of NumPy's leaks."""
    X, y = table(size)
    kernel, options = OPTIONS[option]
    with pytest.raises(ValueError, match=r"^column 1 has numbers up to 1e\+\d+: .*scale") as found:
        MODELS[model](kernel, **options).fit(X, y)
    assert "\n" not in str(found.value)


def test_a_huge_column_is_called_by_its_name():
    """Columns of data frames have names."""
    pd = pytest.importorskip("pandas")
    X, y = table(1e200)
    with pytest.raises(ValueError, match=r"^column 'income' has numbers"):
        GaussianProcessClassifier("auto").fit(pd.DataFrame(X, columns=["a", "income", "b"]), y)


@pytest.mark.parametrize("size", [1e200, 1.7e308])
@pytest.mark.parametrize("model", MODELS)
def test_covariances_of_a_huge_column_exist(model, size):
    """A kernel of distances has an answer; nothing is refused, and no warning of NumPy's leaks."""
    X, y = table(size)
    # Their sum is not a number.
    X[:4, 1] = np.array([size, size, -size, -size])
    found = MODELS[model](RBF(1.0), optimizer=None).fit(X, y)
    assert np.all(np.isfinite(found.predict(X)))
