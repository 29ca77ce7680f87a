"""From prepared data to a fitted estimator."""

import warnings
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.tables.kernels import parse_kernel
from cavity.tables.prepare import Prepared


@dataclass(frozen=True)
class Settings:
    """How to model the data.

    The kernel is what `parse_kernel` takes. Inference and likelihood are for classification;
    regression has Gaussian noise and is exact. ``restarts`` are additional starts of the tuning.
    """

    kernel: str = "auto"
    inference: str = "ep"
    likelihood: str = "probit"
    restarts: int = 0
    seed: int = 0


def unfitted(data: Prepared, settings: Settings) -> Any:
    """Return the estimator for these data, not yet fitted."""
    is_regression = data.task == "regression"
    kernel = parse_kernel(settings.kernel, data.X.shape[1], noise=is_regression)
    common: dict[str, Any] = {
        "n_restarts_optimizer": settings.restarts,
        "random_state": settings.seed,
    }
    if is_regression:
        return GaussianProcessRegressor(kernel, normalize_y=True, **common)
    return GaussianProcessClassifier(
        kernel, inference=settings.inference, likelihood=settings.likelihood, **common
    )


def fit_model(data: Prepared, settings: Settings) -> tuple[Any, list[str]]:
    """Fit; return the estimator and its warnings."""
    estimator = unfitted(data, settings)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(data.X, data.y)
    return estimator, [str(warning.message) for warning in caught]
