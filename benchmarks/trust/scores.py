"""Errors and log losses, row by row, of fresh rows and of the rows left out by a fit."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from cavity.model_selection import loo_losses

__all__ = ["Scores", "final", "left_out", "mean_and_error", "on_rows"]

_LEAST = 1e-15
"""Where probabilities are cut off, as scikit-learn's log_loss once did."""


class Scores(NamedTuple):
    """The error and the log loss of each row; the error of a target is squared."""

    error: np.ndarray
    log_loss: np.ndarray

    def means(self) -> dict[str, float]:
        """Return both averages by name."""
        return {name: float(np.mean(values)) for name, values in self._asdict().items()}


def on_rows(kind: str, model: Any, X: np.ndarray, y: np.ndarray) -> Scores:
    """Score a fit's predictions of rows."""
    if kind == "classes":
        return _class_scores(model.predict_proba(X), np.searchsorted(model.classes_, y))
    return _target_scores(*model.predict(X, return_std=True), y)


def left_out(kind: str, model: Any, y: np.ndarray) -> Scores:
    """Score the leave-one-out predictions that one of our fits reports."""
    found = loo_losses(final(model), y)
    return Scores(found.error, found.log_loss)


def final(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def mean_and_error(values: Any) -> tuple[float, float]:
    """Return the mean and its standard error."""
    values = np.asarray(values, dtype=float)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def _class_scores(p: np.ndarray, codes: np.ndarray) -> Scores:
    top = p.max(axis=1)
    of_label = p[np.arange(len(codes)), codes]
    # Classes that tie at the top share the hit.
    error = 1.0 - (of_label == top) / (p == top[:, None]).sum(axis=1)
    return Scores(error, -np.log(np.clip(of_label, _LEAST, 1.0)))


def _target_scores(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> Scores:
    square = (y - mean) ** 2
    return Scores(square, 0.5 * (np.log(2.0 * np.pi * std**2) + square / std**2))
