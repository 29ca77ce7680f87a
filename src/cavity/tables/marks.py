"""How well predictions agree with the answers that a table has, gathered from batches of rows."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtri

from cavity.arrays import Array
from cavity.resampling.scores import LARGEST_TARGET, class_scores, target_scores
from cavity.tables.encoding import numbers_of

_BINS = 10


class RunningMean:
    """The mean of numbers that come in batches, and its standard error."""

    def __init__(self) -> None:
        self.n, self.mean, self._square = 0, math.nan, 0.0

    def add(self, values: Array) -> None:
        """Take in some more numbers."""
        if not len(values):
            return
        before, own = (self.mean if self.n else 0.0), float(values.mean())
        share = len(values) / (self.n + len(values))
        # Chan, Golub and LeVeque (1983).
        self._square += float(((values - own) ** 2).sum()) + self.n * share * (own - before) ** 2
        self.mean, self.n = before + share * (own - before), self.n + len(values)

    @property
    def variance(self) -> float:
        """The mean square of the deviations from the mean."""
        return self._square / self.n if self.n else math.nan

    @property
    def standard_error(self) -> float:
        """That of the mean."""
        return math.sqrt(self.variance / (self.n - 1)) if self.n > 1 else math.nan


class Marks(ABC):
    """Scores of predictions; rows without an answer are counted and not scored.

    Parameters
    ----------
    source : str
        The name of the table.
    """

    def __init__(self, source: str) -> None:
        self._source, self._missing, self._row = source, 0, 0

    def add(self, answers: pl.Series, predicted: Any) -> None:
        """Take in the answers and predictions of the next rows."""
        known = answers.is_not_null()
        if answers.dtype.is_float():
            known &= answers.is_finite().fill_null(False)
        self._missing += len(answers) - int(known.sum())
        self._score(answers, known.to_numpy(), predicted)
        self._row += len(answers)

    @abstractmethod
    def _score(self, answers: pl.Series, known: Array, predicted: Any) -> None:
        """Score these rows as far as their answer is known."""

    @abstractmethod
    def result(self) -> dict[str, Any]:
        """Return the scores by name; NaN where there is none."""


class ClassMarks(Marks):
    """Scores of log class probabilities.

    The result has rows, rows_without_target, rows_of_other_classes (which the model does not know:
    they are not scored), error and log_loss, each with a standard error ..._se, and brier;
    confidence, the average probability of the predicted class; and calibration, as in a report: the
    class and, in bins of its probability, count and the averages predicted and observed.
    """

    def __init__(self, source: str, classes: tuple[Any, ...]) -> None:
        super().__init__(source)
        self._classes, self._strange = pl.Series(list(classes)), 0
        self._means = {name: RunningMean() for name in ("error", "log_loss", "brier", "confidence")}
        self._bins = np.zeros((len(classes), _BINS, 3))

    def _score(self, answers: pl.Series, known: Array, predicted: Array) -> None:
        codes = self._codes(answers)
        self._strange += int(np.sum(known & (codes < 0)))
        known = known & (codes >= 0)
        log_p, codes = predicted[known], codes[known]
        losses, p = class_scores(log_p, codes), np.exp(log_p)
        for name in ("error", "log_loss", "brier"):
            self._means[name].add(getattr(losses, name))
        self._means["confidence"].add(p.max(axis=1))
        for k in range(len(self._classes)):
            place = np.minimum((p[:, k] * _BINS).astype(int), _BINS - 1)
            for part, weight in enumerate((None, p[:, k], codes == k)):
                self._bins[k, :, part] += np.bincount(place, weight, _BINS)

    def _codes(self, answers: pl.Series) -> Array:
        """Return the number of each row's class, −1 if the model does not have it."""
        names, numbers = self._classes, answers.dtype.is_numeric()
        if names.dtype.is_integer() and numbers:
            # As text, since beyond 2^53 several whole numbers are one float.
            names, answers = names.cast(pl.String), _whole_as_text(answers)
        else:
            kind = pl.Float64 if names.dtype.is_numeric() and numbers else pl.String
            names, answers = names.cast(kind), answers.cast(kind)
        codes = answers.replace_strict(
            names, list(range(len(names))), default=-1, return_dtype=pl.Int64
        )
        return codes.to_numpy()

    def result(self) -> dict[str, Any]:
        """Return the scores by name."""
        means = self._means
        pairs = [(name, means[name]) for name in ("error", "log_loss")]
        return {
            "rows": means["error"].n,
            "rows_without_target": self._missing,
            "rows_of_other_classes": self._strange,
            **{name: found.mean for name, found in pairs},
            **{f"{name}_se": found.standard_error for name, found in pairs},
            "brier": means["brier"].mean,
            "confidence": means["confidence"].mean,
            "calibration": self._calibration(),
        }

    def _calibration(self) -> list[dict[str, Any]]:
        """Return the bins of the second of two classes, or of each of several."""
        count = len(self._classes)
        return [
            {
                "class": str(self._classes[k]),
                "bins": [
                    {
                        "lower": place / _BINS,
                        "upper": (place + 1) / _BINS,
                        "count": int(n),
                        "predicted": p / n,
                        "observed": happened / n,
                    }
                    for place, (n, p, happened) in enumerate(self._bins[k].tolist())
                    if n
                ],
            }
            for k in ([1] if count == 2 else range(count))
        ]


def _whole_as_text(numbers: pl.Series) -> pl.Series:
    """Return numbers as text; those that are whole without a decimal point."""
    whole = numbers.cast(pl.Int128, strict=False)
    same = (whole.cast(numbers.dtype, strict=False) == numbers).fill_null(False)
    return whole.cast(pl.String).zip_with(same, numbers.cast(pl.String))


class TargetMarks(Marks):
    """Scores of means and standard deviations of a quantity.

    The result has rows, rows_without_target; rmse and log_loss (minus the log density), each with a
    standard error ..._se; mae and r2; and coverage, the share of the answers inside their central
    interval of this level.
    """

    def __init__(self, source: str, name: str, level: float) -> None:
        super().__init__(source)
        self._name, self._level = name, level
        names = ("square", "log_loss", "mae", "coverage", "answer")
        self._means = {name: RunningMean() for name in names}

    def _score(self, answers: pl.Series, known: Array, predicted: tuple[Array, Array]) -> None:
        y, (mean, std) = self._known(answers, known), (part[known] for part in predicted)
        inside = np.abs(y - mean) <= ndtri(0.5 + 0.5 * self._level) * std
        self._take(y, mean, target_scores(mean, std**2, y).log_loss, inside)

    def _known(self, answers: pl.Series, known: Array) -> Array:
        return numbers_of(answers.alias(self._name), self._source, self._row, LARGEST_TARGET)[known]

    def _take(self, y: Array, mean: Array, log_loss: Array, inside: Array) -> None:
        off = np.abs(y - mean)
        found = (off**2, log_loss, off, inside.astype(float), y)
        for running, values in zip(self._means.values(), found, strict=True):
            running.add(values)

    def result(self) -> dict[str, Any]:
        """Return the scores by name."""
        means, spread = self._means, self._means["answer"].variance
        square = means["square"]
        rmse = math.sqrt(square.mean)
        return {
            "rows": square.n,
            "rows_without_target": self._missing,
            "rmse": rmse,
            "rmse_se": square.standard_error / (2.0 * rmse) if rmse > 0.0 else math.nan,
            "mae": means["mae"].mean,
            # A single row has no R².
            "r2": 1.0 - square.mean / spread if spread > 0.0 else math.nan,
            "log_loss": means["log_loss"].mean,
            "log_loss_se": means["log_loss"].standard_error,
            "level": self._level,
            "coverage": means["coverage"].mean,
        }


class ShapedTargets(NamedTuple):
    """Predictions of counts, or of a quantity with outliers.

    ``log_prob`` gives the log density of targets, given them and which rows they belong to.
    """

    mean: Array
    std: Array
    low: Array
    high: Array
    log_prob: Callable[[Array, Array], Array]


class ShapedMarks(TargetMarks):
    """The same scores of `ShapedTargets`."""

    def _score(self, answers: pl.Series, known: Array, predicted: Any) -> None:
        y = self._known(answers, known)
        inside = (y >= predicted.low[known]) & (y <= predicted.high[known])
        self._take(y, predicted.mean[known], -predicted.log_prob(y, known), inside)
