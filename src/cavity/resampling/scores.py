"""Scores of predictions: of given ones, and averaged over training sets.

From one training set to the next an example's prediction is Gaussian: each latent function's
posterior mean there is h ~ N(R, V), its posterior variance G. Every average score is one over h.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from cavity.arrays import Array
from cavity.resampling.laws import Occupancy
from cavity.resampling.pool import Averages, Targets
from cavity.resampling.repeats import RepeatedSites
from cavity.sites import Marginals

NODES = 40
REACH = 8.0
SMALLEST = 1e-300
# Smaller differences between predictions are rounding.
TIE = 1e-12
LARGEST_TARGET, SMALLEST_SPREAD = 1e50, 1e-50
"""Scatter of squared errors is made of fourth powers, which for such targets are far from the ends
of the floats."""
# Fine enough for a function that jumps.
_SPACING = 0.02


class Losses(NamedTuple):
    """Scores of predictions, for each example or averaged.

    ``error`` is whether the prediction is wrong, or its squared error; ``log_loss`` the negative
    log predictive probability (or density) of the label; ``brier`` is for classes only. In averages
    over training sets, ``support`` is the log of the label's average probability (or density).
    """

    error: Array
    log_loss: Array
    brier: Array | None = None
    support: Array = None


def checked_units(y: Array) -> Array:
    """Return targets; a ValueError if their errors have no fourth power."""
    largest, spread = np.max(np.abs(y), initial=0.0), np.ptp(y) if len(y) else 0.0
    if largest > LARGEST_TARGET or 0.0 < spread < SMALLEST_SPREAD:
        found = f"reach {largest:.3g}" if largest > 1.0 else f"differ by at most {spread:.3g}"
        raise ValueError(
            f"Learning curves need fourth powers of errors, and the targets {found}: use units in "
            f"which they lie within {LARGEST_TARGET:g} and differ by {SMALLEST_SPREAD:g} or more."
        )
    return y


def class_scores(log_p: Array, codes: Array) -> Losses:
    """Return error, log loss and Brier score of log class probabilities of shape (..., n, classes).

    A label that shares the largest probability with another class counts as half an error. The
    Brier score of two classes is (1 − p)², as in scikit-learn; of more, the sum over classes.
    """
    n_classes = log_p.shape[-1]
    truth = np.eye(n_classes, dtype=bool)[codes]
    own = np.max(np.where(truth, log_p, -np.inf), axis=-1)
    best_other = np.max(np.where(truth, -np.inf, log_p), axis=-1)
    rounding = TIE * np.maximum(1.0, np.abs(own))
    error = 0.5 * ((own <= best_other + rounding) * 1.0 + (own < best_other - rounding))
    brier = np.sum((np.exp(log_p) - truth) ** 2, axis=-1) / (2.0 if n_classes == 2 else 1.0)
    return Losses(error, -own, brier)


def target_scores(mean: Array, variance: Array, y: Array) -> Losses:
    """Return squared error and negative log density of normal predictions, noise included."""
    square = (y - mean) ** 2
    return Losses(square, 0.5 * (np.log(2.0 * np.pi * variance) + square / variance))


def log_odds_against(log_p: Array) -> Array:
    """Return log (1 − p)/p."""
    log_p = np.minimum(log_p, -SMALLEST)
    return np.log(-np.expm1(log_p)) - log_p


def field_grid() -> tuple[Array, Array]:
    """Return nodes and weights for the average of any function of a standard normal variable."""
    x = np.arange(-REACH, REACH + 0.5 * _SPACING, _SPACING)
    weight = norm.pdf(x)
    return x, weight / weight.sum()


class Scores(ABC):
    """Average scores of predictions from training sets out of pools, one per latent function.

    Predictions are compared with ``truth``: classes 0, 1, ..., or a target. Averages and marginals
    are one for each latent function, or one of all classes together.
    """

    task: str
    scale, origin = 1.0, 0.0
    several = 0
    """How many classes there are, if one number does not tell them apart."""

    def __init__(self, pools: Sequence[Any], truth: Array) -> None:
        self.pools, self.truth = pools, truth

    @abstractmethod
    def held_out(self, averages: Sequence[Any]) -> Losses:
        """Return the scores at examples that were not trained on."""

    @abstractmethod
    def pool_error(
        self, pool: Sequence[Any], held_out: Sequence[Any], occupancy: Occupancy, /
    ) -> Array:
        """Return the expected error at each example of the pool, drawn or not."""

    @abstractmethod
    def doubt(self, averages: Sequence[Any], support: Array) -> Array:
        """Return the doubt about each label, given its held-out averages and its support."""

    @abstractmethod
    def losses(self, latent: Sequence[Any]) -> Losses:
        """Return the scores of given predictions, marginals of shape (..., n), at each example."""

    @abstractmethod
    def prediction(self, latent: Sequence[Any]) -> Array:
        """Return the probability of the second class, or the target, from given marginals."""

    def check_measurable(self) -> None:
        """Raise a ValueError if predictions are not one number."""
        if self.several:
            raise ValueError(
                "measure() needs a prediction of one number: two classes or a real target, not "
                f"{self.several} classes."
            )

    def measure(self, g: Callable[[Array, Array], Array], latent: Sequence[Any]) -> Array:
        """Return g(prediction, truth), of the shape of the marginals."""
        p = self.prediction(latent)
        return np.broadcast_to(g(p, np.broadcast_to(self.truth.astype(float), p.shape)), p.shape)

    @property
    def shifts(self) -> list[Any]:
        """What is added to the latent values of the examples, for each latent function."""
        return [pool.likelihood.shift for pool in self.pools]

    def predicted(
        self, by_size: Sequence[Sequence[Any]], shifts: Sequence[Any] | None = None
    ) -> tuple[Array, Array]:
        """Return predictions' means and variances, of shape (sizes, n) or (sizes, n, classes).

        At new inputs, ``shifts`` are what is added to their latent values.
        """
        added = self.shifts if shifts is None else shifts
        parts = np.array(
            [
                [(c.R + shift, c.V) for c, shift in zip(averages, added, strict=True)]
                for averages in by_size
            ]
        )
        mean, variance = np.moveaxis(parts, (2, 3), (0, 2))
        if len(self.pools) == 1:
            mean, variance = mean[:, :, 0], variance[:, :, 0]
        return mean * self.scale + self.origin, variance * self.scale**2


def drawn(pool: Targets, c: Averages, q: Marginals, occupations: Array) -> Iterator[Marginals]:
    """Yield the marginals with 1, 2, ... draws of each example, from those without it."""
    repeats = RepeatedSites(pool.likelihood, pool.y, occupations)
    for slope, curvature in repeats(q, c.excess_response):
        G = q.variance
        yield Marginals(q.mean + c.response * slope, G * (1.0 + G * curvature))
