"""What a likelihood offers: its log density, and moments of it under Gaussians."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from cavity.arrays import Array, namespace, same_kind, to_numpy
from cavity.arrays.differences import slope
from cavity.likelihoods import numerical
from cavity.likelihoods.targets import DESCRIPTIONS, check_support
from cavity.sites import Marginals, Moments

STEP = 1e-3
"""Of fourth-order differences in θ: their error is about 1e-12."""

REGISTRY: dict[str, Callable[[], Likelihood]] = {}
"""Likelihoods by name; a subclass declared with ``name=...`` is added."""


class Likelihood(ABC):
    """The probability p(y|f) of a label y given a latent value f; everything is elementwise.

    A subclass defines its log density, three derivatives of it and how to sample. Unless it has
    closed forms, moments come from adaptive quadrature, which assumes that p is log-concave in f.
    """

    def __init_subclass__(cls, *, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is not None:
            REGISTRY[name] = cls

    tunes: ClassVar[tuple[str, ...]] = ()
    """Positive parameters that tuning may change, if they are dataclass fields of these names.

    Each has a field ``<name>_bounds`` beside it: a pair of limits, or "fixed".
    """

    open_ends: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """Names of parameters and the bound, "lower" or "upper", near which they change nothing more.

    There the likelihood is a simpler one, and no warning asks to widen the bound.
    """

    @property
    def support(self) -> str:
        """What y may be.

        "signs" (labels ±1), "codes" (classes 0, 1, … in order), "counts" (0, 1, 2, …), "positive"
        or "reals".
        """
        return "signs"

    @property
    def offers(self) -> frozenset[str]:
        """What is available: some of "tilted", "derivatives", "expected" and "mixture"."""
        return frozenset({"tilted", "derivatives", "expected"})

    @abstractmethod
    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log p(y|f)."""

    @abstractmethod
    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of log p(y|f) in f."""

    @abstractmethod
    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw one label for each latent value."""

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log Z = log E p(y|f) under each cavity and its first two derivatives in the mean.

        Parameters
        ----------
        y : array or float
            Labels.
        c : Marginals
            Gaussians over f; the derivatives are taken in their means.

        Returns
        -------
        Moments
        """
        return numerical.tilted(self, y, c)

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Return E log p(y|f) under each Gaussian and its first two derivatives in the mean.

        Parameters
        ----------
        y : array or float
            Labels.
        q : Marginals
            Gaussians over f.

        Returns
        -------
        Moments
            E log p, E ∂log p and E ∂²log p.
        """
        return numerical.expected(self, y, q)

    def mixture(self, y: Array, q: Marginals) -> Moments:
        """Return a lower bound of E log p(y|f), its slope in the mean, and −τ.

        The bound is that of a mixture of log-concave densities, with the shares of its parts
        averaged over; its slope in the variance is −τ/2, and τ ≥ 0.
        """
        raise ValueError(f"{self!r} is not a mixture of log-concave likelihoods.")

    def mean(self, f: Array) -> Array:
        """Return E[y|f]; by default for labels ±1."""
        if self.support != "signs":
            raise ValueError(f"{self!r} does not say what its targets are on average.")
        xp = namespace(f)
        return xp.exp(self.log_prob(1.0, f)) - xp.exp(self.log_prob(-1.0, f))

    def variance(self, f: Array) -> Array:
        """Return Var[y|f]; by default for labels ±1."""
        if self.support != "signs":
            raise ValueError(f"{self!r} does not say how its targets vary.")
        return 4.0 * namespace(f).exp(self.log_prob(1.0, f) + self.log_prob(-1.0, f))

    def response(self, q: Marginals) -> Marginals:
        """Return the mean and variance of y under each Gaussian over f.

        What is too large for a float is infinite.
        """
        if self.support != "signs":
            return numerical.response(self, q)
        xp = namespace(q.mean)
        plus, minus = self.tilted(1.0, q).log_z, self.tilted(-1.0, q).log_z
        return Marginals(xp.exp(plus) - xp.exp(minus), 4.0 * xp.exp(plus + minus))

    def log_response(self, q: Marginals) -> tuple[Array, Array]:
        """Return the logs of the mean and of the standard deviation of y that is not negative.

        They may be known where these are too large or too small for a float.
        """
        mean, variance = self.response(q)
        with numerical.quiet():
            return namespace(mean).log(mean), 0.5 * namespace(mean).log(variance)

    def cdf(self, y: Array, f: Array) -> Array:
        """Return P(Y ≤ y|f), for targets that are numbers."""
        raise ValueError(f"{self!r} does not say how its targets are distributed.")

    def has_mass(self, y: Array) -> Array | bool:
        """Return whether p(y|f) is a probability of single values, rather than a density."""
        return self.support != "reals" and self.support != "positive"

    def deviance(self, y: Array, mean: Array) -> Array | None:
        """Return twice the gap of log p to that of the best mean; None if it has no name."""
        return None

    @property
    def n_classes(self) -> int | None:
        """How many classes it is for, if its parameters say so."""
        return None

    @property
    def expects(self) -> str:
        """What the targets must be, in words."""
        return DESCRIPTIONS[self.support]

    def check_targets(self, y: Array, first: int = 0) -> None:
        """Raise a ValueError that names the first target that is not what is expected.

        The first of these targets is that of row ``first`` of a table.
        """
        check_support(y, self.support, type(self).__name__, self.expects, first)

    def fitted_to(self, y: Array, weight: Array | None = None) -> Likelihood:
        """Return the likelihood with what it has to take from the targets."""
        return self

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return the third and fourth cumulants of each tilted distribution ∝ p(y|f) N(f; m, v)."""
        return numerical.cumulants(self, y, c)

    def power(self, eta: Array | float) -> Likelihood:
        """Return the likelihood p(y|f)^eta, which is not normalised in y."""
        # A power is a likelihood, too: its file needs this one.
        from cavity.likelihoods.powered import Powered

        return Powered(self, eta)

    def subset(self, rows: slice) -> Likelihood:
        """Return the likelihood of some of the examples, if they differ in parameters."""
        return self

    @property
    def quadratic(self) -> bool:
        """Whether log p is quadratic in f, so that p is its own site, whatever the cavity."""
        return False

    @property
    def symmetric(self) -> bool:
        """Whether p(−1|−f) = p(+1|f), so that the sign of f's mean decides between two classes."""
        return False

    def with_noise(self, variance: float) -> Likelihood | None:
        """Return E p(y|f + ε) with Gaussian ε of this variance, or None if unknown."""
        return None

    noise_variance: Array | float = 0.0
    """Variance of the Gaussian noise on f that p(y|f) includes."""

    shift: Any = 0.0
    """What is added to the latent value of each row, a known offset or a trend."""

    def drift(self, X: Any) -> Any:
        """Return the trend at new inputs, which is added to their latent values."""
        return 0.0

    drift_slopes: Any = 0.0
    """The trend's gradient in the inputs."""

    def in_units(self, origin: float, scale: float) -> Likelihood:
        """Return the likelihood of targets (y − origin)/scale."""
        return self

    def level(self, y: Array, weight: Array, offset: Array | float = 0.0) -> float:
        """Return the latent value whose mean is that of the targets; 0 unless the link is a log."""
        return 0.0

    @property
    def bare(self) -> Likelihood:
        """The likelihood without what belongs to its rows, such as their offsets."""
        return self

    @property
    def concave(self) -> bool:
        """Whether log p is concave in f, so that every site has a precision of at least zero."""
        return True

    @property
    def names(self) -> list[str]:
        """Names of the parameters that tuning changes, as a kernel names its own."""
        return [f"likelihood__{name}" for name in self._free]

    @property
    def theta(self) -> Array:
        """Their values; of positive ones, the logarithms."""
        return np.log([float(getattr(self, name)) for name in self._free])

    @property
    def bounds(self) -> Array:
        """Their limits, of shape (p, 2), on the same scale."""
        return np.log([getattr(self, f"{name}_bounds") for name in self._free]).reshape(-1, 2)

    def with_theta(self, theta: Array) -> Likelihood:
        """Return the same likelihood with other values of these parameters."""
        values = dict(zip(self._free, np.exp(theta).tolist(), strict=True))
        return replace(self, **values) if values else self  # type: ignore[type-var]

    @property
    def _free(self) -> list[str]:
        return [name for name in self.tunes if getattr(self, f"{name}_bounds") != "fixed"]

    def in_theta(self, what: Callable[[Likelihood], Array]) -> list[Array]:
        """Return the derivative in each of these parameters, by differences.

        ``what`` returns one number for each row, which depends on no other row.
        """
        theta = self.theta

        def along(e: Array) -> Callable[[float], Array]:
            return lambda h: what(self.with_theta(theta + h * e))

        return [slope(along(e), STEP) for e in np.eye(len(theta))]


def draw_labels(log_p: Array, rng: np.random.Generator) -> Array:
    """Return labels ±1, each +1 with probability exp(log_p)."""
    p = to_numpy(namespace(log_p).exp(log_p))
    return same_kind(np.where(rng.random(p.shape) < p, 1.0, -1.0), log_p)


def forwarded(name: str) -> Any:
    """Return a property of a likelihood made of another that is the same as that one's."""
    return property(lambda made: getattr(made.base, name), doc="As for the likelihood itself.")


def take(parameter: Any, rows: slice) -> Any:
    """Return the entries of a parameter that may be one for all examples or one for each."""
    return parameter[rows] if getattr(parameter, "ndim", 0) else parameter


def divided(bounds: tuple[float, float] | str, unit: float) -> tuple[float, float] | str:
    """Return the bounds of a parameter that is measured in another unit."""
    return bounds if isinstance(bounds, str) else (bounds[0] / unit, bounds[1] / unit)


def require_positive(name: str, value: Any) -> None:
    """Raise a ValueError unless every entry of the value is positive and finite."""
    numbers = np.asarray(to_numpy(value), dtype=float)
    if not np.all((numbers > 0.0) & np.isfinite(numbers)):
        raise ValueError(f"{name} must be positive and finite, got {value!r}.")
