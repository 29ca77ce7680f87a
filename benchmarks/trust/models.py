"""The automatic model, other Gaussian processes, and the peers, each for classes and targets."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier as SklearnClassifier
from sklearn.gaussian_process import GaussianProcessRegressor as SklearnRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from cavity import GaussianProcessClassifier, GaussianProcessRegressor

__all__ = ["MODELS", "OURS", "auto", "models"]

OURS = ("auto", "isotropic", "relevances")
"""The models that report leave-one-out predictions."""

Maker = Callable[[int], Any]


def auto(kind: str) -> Any:
    """Return the automatic model, which takes its inputs as they are."""
    if kind == "classes":
        return GaussianProcessClassifier(kernel="auto")
    return GaussianProcessRegressor(kernel="auto")


def models(kind: str) -> dict[str, Maker]:
    """Return the makers of all models that can be had; each takes the number of inputs."""
    found = MODELS[kind]
    return {k: v for k, v in found.items() if k != "LightGBM" or find_spec("lightgbm")}


def _process(kind: str, kernel: Any) -> Any:
    if kind == "classes":
        return _scaled(GaussianProcessClassifier(1.0 * kernel))
    kernel = 1.0 * kernel + WhiteKernel(0.1)
    return _scaled(GaussianProcessRegressor(kernel, normalize_y=True))


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


def _svc(d: int) -> Any:
    """Return a support vector machine whose calibrated log loss chooses C and gamma."""
    model = _scaled(CalibratedClassifierCV(SVC(), ensemble=False))
    at = "calibratedclassifiercv__estimator__"
    grid = {f"{at}C": [0.1, 1.0, 10.0, 100.0], f"{at}gamma": [0.1 / d, 1.0 / d, 10.0 / d]}
    return GridSearchCV(model, grid, scoring="neg_log_loss")


def _logistic(d: int) -> Any:
    return _scaled(LogisticRegressionCV(scoring="neg_log_loss", max_iter=2000))


def _lightgbm(kind: str) -> Any:
    import lightgbm

    options = {"verbose": -1, "n_jobs": 1, "random_state": 0}
    if kind == "classes":
        return lightgbm.LGBMClassifier(**options)
    return WithSpread(lightgbm.LGBMRegressor(**options))


class WithSpread(RegressorMixin, BaseEstimator):
    """A regressor whose predictions have one normal error, measured by five-fold cross-validation.

    Parameters
    ----------
    model : estimator
        A regressor.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: np.ndarray, y: np.ndarray) -> "WithSpread":
        """Fit the model and measure its error."""
        left = y - cross_val_predict(self.model, X, y, cv=5)
        self.spread_ = float(np.sqrt(np.mean(left**2)))
        self.model_ = clone(self.model).fit(X, y)
        return self

    def predict(self, X: np.ndarray, return_std: bool = False) -> Any:
        """Return predictions, and the standard deviation of their errors."""
        mean = self.model_.predict(X)
        return (mean, np.full(len(mean), self.spread_)) if return_std else mean


def _ours(kind: str) -> dict[str, Maker]:
    return {
        "auto": lambda d: auto(kind),
        "isotropic": lambda d: _process(kind, RBF(1.0)),
        "relevances": lambda d: _process(kind, RBF(np.ones(d))),
    }


MODELS: dict[str, dict[str, Maker]] = {
    "classes": {
        **_ours("classes"),
        "scikit-learn GP": lambda d: _scaled(SklearnClassifier(1.0 * RBF(1.0))),
        "logistic": _logistic,
        "forest": lambda d: RandomForestClassifier(300, random_state=0),
        "boosting": lambda d: HistGradientBoostingClassifier(random_state=0),
        "LightGBM": lambda d: _lightgbm("classes"),
        "SVC": _svc,
    },
    "target": {
        **_ours("target"),
        "scikit-learn GP": lambda d: _scaled(
            SklearnRegressor(1.0 * RBF(1.0) + WhiteKernel(0.1), normalize_y=True)
        ),
        "ridge": lambda d: WithSpread(_scaled(RidgeCV(np.logspace(-3.0, 3.0, 13)))),
        "forest": lambda d: WithSpread(RandomForestRegressor(300, random_state=0)),
        "boosting": lambda d: WithSpread(HistGradientBoostingRegressor(random_state=0)),
        "LightGBM": lambda d: _lightgbm("target"),
    },
}
