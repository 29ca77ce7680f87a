"""Prior densities of log hyperparameters θ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cavity.arrays import Array
from cavity.kernels import length_scales

_TYPICAL_LENGTH = 0.7
"""Log of a typical length scale in one dimension, in standard deviations of the input."""
_NOISE = 0.2
"""Typical variance of the noise, as a share of that of the latent function."""
_VAGUE = 2.0
"""Standard deviation of the log of a hyperparameter of which little is known."""


class Hyperparameters(Protocol):
    """What has hyperparameters: a kernel's rule, or an evidence with those of a likelihood, too."""

    @property
    def names(self) -> Sequence[str]:
        """Their names, as in scikit-learn."""

    @property
    def theta(self) -> Array:
        """Their values, most of them as logarithms."""


class Hyperprior(ABC):
    """A prior density of the log hyperparameters θ of a kernel and, if it has any, a likelihood.

    For a density of your own, write these three methods and pass an object of your class as
    ``hyperprior``.
    """

    def of(self, rule: Hyperparameters) -> Hyperprior:
        """Return the density for these hyperparameters; by default, itself."""
        return self

    @abstractmethod
    def log_density(self, theta: Array) -> float:
        """Return log p(θ)."""

    @abstractmethod
    def gradient(self, theta: Array) -> Array:
        """Return its gradient."""

    @abstractmethod
    def curvature(self, theta: Array) -> Array:
        """Return minus its matrix of second derivatives."""


@dataclass(frozen=True)
class NormalPrior(Hyperprior):
    """θ = mean + factor z, with independent standard normal z.

    There may be more z than θ (a level that several θ share, and a deviation of each), or fewer (θ
    that are tied together, such as the length scales of an isotropic kernel).

    Parameters
    ----------
    mean : array of shape (p,)
    factor : array of shape (p, k)

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.evidence import NormalPrior
    >>> prior = NormalPrior(np.zeros(2), 2.0 * np.eye(2))
    >>> prior.gradient(np.array([4.0, -4.0])).tolist()
    [-1.0, 1.0]
    """

    mean: Array
    factor: Array

    def theta(self, z: Array) -> Array:
        """Return the hyperparameters at z."""
        return self.mean + self.factor @ z

    def z(self, theta: Array) -> Array:
        """Return the shortest z that comes closest to θ."""
        return np.linalg.lstsq(self.factor, theta - self.mean, rcond=None)[0]

    def log_density(self, theta: Array) -> float:
        """Return log N(θ; mean, factor factorᵀ)."""
        r = theta - self.mean
        _, log_det = np.linalg.slogdet(self._precision)
        return float(0.5 * (log_det - r @ self._precision @ r - len(r) * np.log(2.0 * np.pi)))

    def gradient(self, theta: Array) -> Array:
        """Return its gradient."""
        return -self._precision @ (theta - self.mean)

    def curvature(self, theta: Array) -> Array:
        """Return the precision."""
        return self._precision

    @cached_property
    def _precision(self) -> Array:
        return np.linalg.inv(self.factor @ self.factor.T)


@dataclass(frozen=True)
class LogNormal(Hyperprior):
    """Independent log-normal densities, chosen by the names of the hyperparameters.

    Parameters
    ----------
    by_name : mapping from str to (float, float)
        Median and spread of the hyperparameters whose name ends in the key, such as
        ``"length_scale"``, ``"k2__noise_level"`` or ``"likelihood__shape"``; the longest key
        wins. The spread is the standard deviation of the logarithm.
    default : (float, float), default (1.0, 2.0)
        Median and spread of all others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.evidence import LogNormal
    >>> from cavity.kernels import rule
    >>> prior = LogNormal({"length_scale": (3.0, 0.5)}).of(rule(1.0 * RBF(1.0)))
    >>> np.exp(prior.mean).round(6).tolist(), np.diag(prior.factor).tolist()
    ([1.0, 3.0], [2.0, 0.5])
    """

    by_name: Mapping[str, tuple[float, float]]
    default: tuple[float, float] = (1.0, _VAGUE)

    def of(self, rule: Hyperparameters) -> NormalPrior:
        """Return the density for these hyperparameters."""
        found = np.array([self._of_name(name) for name in rule.names]).reshape(-1, 2)
        if not np.all((found > 0.0) & np.isfinite(found)):
            raise ValueError(f"Medians and spreads must be positive; got {dict(self.by_name)!r}.")
        return NormalPrior(np.log(found[:, 0]), np.diag(found[:, 1]))

    def _of_name(self, name: str) -> tuple[float, float]:
        plain = name.split("[")[0]
        fitting = [key for key in self.by_name if plain.endswith(key)]
        return self.by_name[max(fitting, key=len)] if fitting else self.default

    def log_density(self, theta: Array) -> float:
        """Refuse: the names of the hyperparameters are not known."""
        raise ValueError("LogNormal needs a kernel: call .of(rule) first.")

    gradient = curvature = log_density


@dataclass(frozen=True)
class Hierarchy:
    """Length scales that share a level, from which each deviates by a spread that is learned.

    log ℓ_j = centre_j + c + s δ_j with standard normal c and δ_j. Spread s = 0 is an isotropic
    kernel in units of the centres, a large s leaves every length scale free. All other
    hyperparameters have vague priors.

    Parameters
    ----------
    names : sequence of str
    centre : array of shape (p,)
        Medians of the hyperparameters, as logarithms.
    """

    names: Sequence[str]
    centre: Array

    @classmethod
    def of(cls, rule: Hyperparameters, spreads: Array | None, amplitude: float) -> Hierarchy:
        """Return the hierarchy of a kernel.

        A hyperparameter of another kind, such as a period or one of a likelihood, has its given
        value as its median.

        Parameters
        ----------
        rule : Hyperparameters
            A kernel's rule, or an evidence.
        spreads : array of shape (d,) or None
            Standard deviation of each input; None if the inputs are no vectors.
        amplitude : float
            Typical variance of the latent function.
        """
        names, centre = rule.names, np.array(rule.theta, dtype=float)
        kinds = np.array([name.split("__")[-1] for name in names], dtype=str)
        centre[kinds == "constant_value"] = np.log(amplitude)
        centre[kinds == "noise_level"] = np.log(_NOISE * amplitude)
        if spreads is not None:
            typical = _TYPICAL_LENGTH + 0.5 * np.log(len(spreads)) + np.log(spreads)
            for place in _groups(names):
                if len(place) in (1, len(spreads)):
                    centre[place] = typical if len(place) > 1 else typical.mean()
        return cls(names, centre)

    @property
    def has_spread(self) -> bool:
        """Whether there are several length scales that can differ."""
        return any(len(place) > 1 for place in _groups(self.names))

    def at(self, spread: float) -> NormalPrior:
        """Return the prior at one spread of the length scales."""
        p = len(self.names)
        shared, own = [], np.where(length_scales(self.names), 0.0, _VAGUE)
        for place in _groups(self.names):
            shared.append(np.isin(np.arange(p), place).astype(float))
            own[place] = spread if len(place) > 1 else 0.0
        columns = [*shared, *np.diag(own)[own > 0.0]]
        return NormalPrior(self.centre, np.reshape(columns, (len(columns), p)).T)


def _groups(names: Sequence[str]) -> list[Array]:
    """Return the places of each kernel part's length scales."""
    stems = np.array([name.split("[")[0] for name in names])
    is_scale = length_scales(names)
    return [np.flatnonzero(stems == s) for s in dict.fromkeys(stems[is_scale].tolist())]
