"""What averages over training sets say about predictions: errors, log losses, Brier scores.

An example's prediction is Gaussian from one training set to the next: each latent function's
posterior mean there is h ~ N(R, V), its posterior variance G. Every measure is an average over h.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import entr
from scipy.stats import norm

from cavity.arrays import Array
from cavity.arrays.special import ndtr
from cavity.likelihoods import Likelihood
from cavity.likelihoods.normal import standardise
from cavity.resampling.laws import Occupancy
from cavity.resampling.orders import Order, Pool
from cavity.resampling.repeats import Copies
from cavity.resampling.theories import average_over_fields, lag
from cavity.sites import Marginals

__all__ = [
    "Expected",
    "Losses",
    "Measured",
    "Scorer",
    "Target",
    "TwoClasses",
    "class_scores",
    "field_grid",
    "log_odds_against",
    "target_scores",
]

_NODES = 40
_KNOTS = 65
_SMALLEST = 1e-300
# Wide enough for every digit, fine enough for a measure that jumps.
_REACH, _SPACING = 8.0, 0.02


class Losses(NamedTuple):
    """What predictions are worth: numbers for each example, or their weighted averages.

    Attributes
    ----------
    error : array
        Whether the prediction is wrong, or its squared error.
    log_loss : array
        Negative log predictive probability (or density) of the label.
    brier : array or None
        Brier score of class probabilities.
    """

    error: Array
    log_loss: Array
    brier: Array | None = None

    def averages(self, weight: Array) -> "Losses":
        """Return the averages over examples with the given weights, which sum to one."""
        return Losses(*(None if part is None else part @ weight for part in self))


def class_scores(log_p: Array, codes: Array, weight: Array | None = None) -> Losses:
    """Return error, log loss and Brier score of predicted class probabilities.

    A label that shares the largest probability with another class counts as half an error. The
    Brier score of two classes is (1 − p)², as in scikit-learn; of more, the sum over classes.

    Parameters
    ----------
    log_p : array of shape (..., n, n_classes)
        Log probabilities.
    codes : array of int of shape (n,)
        Each example's class: 0, 1, ...
    weight : array of shape (n,), optional
        Each example's share of the averages to return; without it every example is by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.resampling.scores import class_scores
    >>> log_p = np.log([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4]])
    >>> class_scores(log_p, np.array([0, 1, 1])).error.tolist()
    [0.0, 0.5, 1.0]
    """
    n_classes = log_p.shape[-1]
    truth = np.eye(n_classes, dtype=bool)[codes]
    own = np.max(np.where(truth, log_p, -np.inf), axis=-1)
    best_other = np.max(np.where(truth, -np.inf, log_p), axis=-1)
    error = (own < best_other) + 0.5 * (own == best_other)
    brier = np.sum((np.exp(log_p) - truth) ** 2, axis=-1) / (2.0 if n_classes == 2 else 1.0)
    found = Losses(error, -own, brier)
    return found if weight is None else found.averages(weight)


def target_scores(mean: Array, variance: Array, y: Array, weight: Array | None = None) -> Losses:
    """Return squared error and negative log density of normal predictions of a real target.

    Parameters
    ----------
    mean, variance : arrays of shape (..., n)
        Of the predictive distribution, noise included.
    y : array of shape (n,)
    weight : array of shape (n,), optional
        Each example's share of the averages to return; without it every example is by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.resampling.scores import target_scores
    >>> found = target_scores(np.zeros(2), np.ones(2), np.array([0.0, 2.0]), np.full(2, 0.5))
    >>> float(found.error), round(float(found.log_loss), 4)
    (2.0, 1.9189)
    """
    square = (y - mean) ** 2
    found = Losses(square, 0.5 * (np.log(2.0 * np.pi * variance) + square / variance))
    return found if weight is None else found.averages(weight)


@dataclass(frozen=True)
class Measured:
    """Held-out measures of each example.

    Attributes
    ----------
    error : array of shape (n,)
        Probability of a wrong prediction, or mean squared error.
    log_loss : array of shape (n,)
        Expected negative log predictive probability (or density) of the example's label.
    brier : array of shape (n,) or None
        Expected Brier score of a classifier.
    support : array of shape (n,)
        Log probability (or density) of the example's own label, averaged over training sets.
    evidence : array of shape (n,)
        Against the label: log odds, or how many standard deviations the target is off.
    """

    error: Array
    log_loss: Array
    brier: Array | None
    support: Array
    evidence: Array


class Expected(NamedTuple):
    """Held-out measures of each example that a model expects of itself.

    The label is drawn from the predictive distribution of the model that is judged, not the
    example's own: over examples they vary far less, and they are right where the model is.

    Attributes
    ----------
    error : array of shape (n,)
        Probability of a wrong prediction, or mean squared error.
    log_loss : array of shape (n,)
        Entropy of the predictive distribution.
    """

    error: Array
    log_loss: Array


def log_odds_against(log_p: Array) -> Array:
    """Return log (1 − p)/p."""
    log_p = np.minimum(log_p, -_SMALLEST)
    return np.log(-np.expm1(log_p)) - log_p


def field_grid() -> tuple[Array, Array]:
    """Return nodes and weights for the average of any function of a standard normal variable."""
    x = np.arange(-_REACH, _REACH + 0.5 * _SPACING, _SPACING)
    weight = norm.pdf(x)
    return x, weight / weight.sum()


def _wrong_side(y: Array, c: Order) -> Array:
    """Return the probability Φ(−y R/√V) that the sign of the prediction is not the label's."""
    return ndtr(standardise(-y * c.R, np.sqrt(np.maximum(c.V, _SMALLEST))))


class Scorer(ABC):
    """How predictions of one or several latent functions are judged; three kinds of it exist."""

    task = "classification"

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = pools

    @abstractmethod
    def held_out(self, orders: Sequence[Order]) -> Measured:
        """Judge the predictions at examples that were not trained on."""

    @abstractmethod
    def expected(self, orders: Sequence[Order]) -> Expected:
        """Return what the models expect of themselves at examples they were not trained on."""

    @abstractmethod
    def pool_error(
        self, pool: Sequence[Order], held_out: Sequence[Order], occupancy: Occupancy, /
    ) -> Array:
        """Return the expected error at each example of the pool, drawn or not."""

    @abstractmethod
    def predictions(self, orders: Sequence[Order], x: Array) -> Array:
        """Return the predictions that standardised fields x lead to, of shape (len(x), n, ...)."""


class Target(Scorer):
    """A real target."""

    task = "regression"

    def held_out(self, orders: Sequence[Order]) -> Measured:
        """Squared errors and negative log predictive densities."""
        [c], [pool] = orders, self.pools
        support, d1, d2 = pool.likelihood.tilted(pool.y, Marginals(c.R, c.G + c.V))
        deviation = np.abs(d1) / np.sqrt(-d2)
        return Measured(self.pool_error(orders), _log_loss(pool, c), None, support, deviation)

    def expected(self, orders: Sequence[Order]) -> Expected:
        """Predictive variances and the entropies of normal densities."""
        [c], [pool] = orders, self.pools
        # Of log N(y; h, σ² + G) the second derivative is −1/(σ² + G), whatever y and h are.
        variance = -1.0 / pool.likelihood.tilted(pool.y, Marginals(c.R, c.G)).d2
        return Expected(variance, 0.5 * np.log(2.0 * np.pi * np.e * variance))

    def pool_error(self, orders: Sequence[Order], /, *_: object) -> Array:
        """Squared errors: two moments are enough."""
        [c], [pool] = orders, self.pools
        return (c.R - pool.y) ** 2 + c.V

    def predictions(self, orders: Sequence[Order], x: Array) -> Array:
        """Predicted targets."""
        [c] = orders
        return c.R + np.sqrt(c.V) * x[:, None]


class TwoClasses(Scorer):
    """Two classes, one latent function."""

    def held_out(self, orders: Sequence[Order]) -> Measured:
        """Errors, log losses and Brier scores."""
        [c], [pool] = orders, self.pools

        def losses(h: Array) -> tuple[Array, Array]:
            log_p = pool.likelihood.tilted(pool.y, Marginals(h, c.G)).log_z
            return -log_p, np.expm1(log_p) ** 2

        log_loss, brier = average_over_fields(losses, c.R, c.V, _NODES)
        support = pool.likelihood.tilted(pool.y, Marginals(c.R, c.G + c.V)).log_z
        return Measured(_wrong_side(pool.y, c), log_loss, brier, support, log_odds_against(support))

    def expected(self, orders: Sequence[Order]) -> Expected:
        """Probabilities of the less probable class, and entropies."""
        [c], [pool] = orders, self.pools

        def losses(h: Array) -> tuple[Array, Array]:
            log_p = pool.likelihood.tilted(1.0, Marginals(h, c.G)).log_z
            p, q = np.exp(log_p), -np.expm1(log_p)
            return np.minimum(p, q), entr(p) + entr(q)

        return Expected(*average_over_fields(losses, c.R, c.V, _NODES))

    def pool_error(
        self, pool: Sequence[Order], held_out: Sequence[Order], occupancy: Occupancy, /
    ) -> Array:
        """Probability of the wrong sign, for each number of draws by itself.

        An example that was drawn is nearly always right, one that was not often wrong: over both
        together the prediction is far from Gaussian.
        """
        [c], [examples] = held_out, self.pools
        wrong = (1.0 - occupancy.probability.sum(axis=0)) * _wrong_side(examples.y, c)
        for p, side in zip(
            occupancy.probability, _wrong_after(examples, c, occupancy), strict=True
        ):
            wrong += p * side
        return wrong

    def predictions(self, orders: Sequence[Order], x: Array) -> Array:
        """Probabilities of the second class."""
        [c], [pool] = orders, self.pools
        return _probability(pool.likelihood, c.R + np.sqrt(c.V) * x[:, None], c.G)


def _wrong_after(pool: Pool, c: Order, occupancy: Occupancy) -> Iterator[Array]:
    """Yield the probability of the wrong sign once an example has been drawn 1, 2, ... times.

    The posterior mean rises with the field h; the sign is wrong below the field where it is zero.
    """
    x = np.linspace(-_REACH, _REACH, _KNOTS)
    spread = np.sqrt(np.maximum(c.V, _SMALLEST))
    h = c.R + pool.y * spread * x[:, None]
    copies = Copies(pool.likelihood, pool.y, occupancy.s)
    for slope, _ in copies(Marginals(h, c.G), lag(c)):
        mean = pool.y * (h + c.response * slope)
        yield ndtr(_root(x, mean))


def _root(x: Array, f: Array) -> Array:
    """Return where increasing functions, in the columns of f, are zero: Hermite's inverse cubic."""
    right = np.clip(np.sum(f <= 0.0, axis=0), 1, len(x) - 1)
    columns, slope = np.arange(f.shape[1]), np.gradient(f, x, axis=0)
    ends = [(x[i], f[i, columns], slope[i, columns]) for i in (right - 1, right)]
    (x0, f0, d0), (x1, f1, d1) = ends
    width = np.maximum(f1 - f0, _SMALLEST)
    # Where rounding has made it flat, a slope far below the chord's.
    d0, d1 = (np.maximum(d, 1e-3 * width / (x1 - x0)) for d in (d0, d1))
    t = np.clip(-f0 / width, 0.0, 1.0)
    between = x0 + (x1 - x0) * t**2 * (3.0 - 2.0 * t)
    between += width * t * (1.0 - t) * ((1.0 - t) / d0 - t / d1)
    return np.clip(between, x0, x1)


def _log_loss(pool: Pool, c: Order) -> Array:
    def loss(h: Array) -> tuple[Array]:
        return (-pool.likelihood.tilted(pool.y, Marginals(h, c.G)).log_z,)

    return average_over_fields(loss, c.R, c.V, _NODES)[0]


def _probability(likelihood: Likelihood, h: Array, G: Array) -> Array:
    return np.exp(likelihood.tilted(1.0, Marginals(h, G)).log_z)
