"""Noise with heavy tails: outliers are possible, and so forgiven."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy import special

from cavity.arrays import Array, namespace, same_kind, to_numpy
from cavity.likelihoods import scale_mixture
from cavity.likelihoods.base import Likelihood, divided, require_positive
from cavity.likelihoods.normal import standardise
from cavity.likelihoods.stirling import log_rising
from cavity.sites import Marginals, Moments


@dataclass(frozen=True)
class StudentT(Likelihood, name="student_t"):
    """y is f plus σ times a Student t: p(y|f) ∝ [1 + z²/ν]^{−(ν+1)/2}, z = (y − f)/σ.

    It is a Gaussian whose precision λ/σ² varies from row to row, with λ drawn from a gamma
    distribution of mean one and shape ν/2. It is not log-concave.

    Parameters
    ----------
    degrees_of_freedom : float, default=4.0
        ν; the fewer, the heavier the tails. A Gaussian has infinitely many.
    scale : float, default=1.0
        σ.
    degrees_of_freedom_bounds : pair of float or "fixed", default (1.0, 1000.0)
    scale_bounds : pair of float or "fixed", default (0.0001, 1000.0)
        Limits of both while they are tuned.
    """

    degrees_of_freedom: float = 4.0
    scale: float = 1.0
    degrees_of_freedom_bounds: tuple[float, float] | str = (1.0, 1e3)
    scale_bounds: tuple[float, float] | str = (1e-4, 1e3)

    support = "reals"
    concave = False
    tunes: ClassVar[tuple[str, ...]] = ("degrees_of_freedom", "scale")
    open_ends = frozenset({("likelihood__degrees_of_freedom", "upper")})

    def __post_init__(self) -> None:
        require_positive("degrees_of_freedom", self.degrees_of_freedom)
        require_positive("scale", self.scale)

    def in_units(self, origin: float, scale: float) -> Likelihood:
        """Return the likelihood of targets (y − origin)/scale."""
        bounds = divided(self.scale_bounds, scale)
        return replace(self, scale=self.scale / scale, scale_bounds=bounds)

    @property
    def offers(self) -> frozenset[str]:
        """Tilted moments, derivatives, and the bound of a mixture."""
        return frozenset({"tilted", "derivatives", "mixture"})

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return the log density."""
        return self._bound(y, f, 0.0)

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of log p in f; the second may be positive."""
        nu, s = self.degrees_of_freedom, self.scale
        z = standardise(y - f, s)
        q = 1.0 / (nu + z * z)
        zz = z * z * q
        d1, d2 = z * q, q * (zz - nu * q)
        d3 = -2.0 * z * q * q * (3.0 * nu * q - zz)
        return (nu + 1.0) * d1 / s, (nu + 1.0) * d2 / s**2, (nu + 1.0) * d3 / s**3

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Raise an error: the average curvature may be positive."""
        raise ValueError(f'{self!r} is not log-concave: use inference="mixture".')

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return the moments by quadrature over λ; under each λ they are those of a Gaussian."""
        return scale_mixture.tilted(y, c, self.degrees_of_freedom, self.scale)

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return the cumulants by quadrature over λ."""
        return scale_mixture.cumulants(y, c, self.degrees_of_freedom, self.scale)

    def mixture(self, y: Array, q: Marginals) -> Moments:
        """Return log p with (y − f)² replaced by its mean: the bound at the best q(λ)."""
        tau = self.trust(y, q) / self.scale**2
        return Moments(self._bound(y, q.mean, q.variance), tau * (y - q.mean), -tau)

    def trust(self, y: Array, q: Marginals) -> Array:
        """Return E λ for each row, given its posterior: small for an outlier, else about one."""
        nu = self.degrees_of_freedom
        return (nu + 1.0) / (nu + self._square(y, q.mean, q.variance))

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw f plus noise."""
        noise = self.scale * rng.standard_t(self.degrees_of_freedom, f.shape)
        return f + same_kind(noise, f)

    def mean(self, f: Array) -> Array:
        """Return f."""
        return f

    def variance(self, f: Array) -> Array:
        """Return σ² ν/(ν − 2), infinite for two degrees of freedom or fewer."""
        nu = self.degrees_of_freedom
        return 0.0 * f + (self.scale**2 * nu / (nu - 2.0) if nu > 2.0 else math.inf)

    def response(self, q: Marginals) -> Marginals:
        """Return m and v plus the variance of the noise."""
        return Marginals(q.mean, q.variance + self.variance(q.mean))

    def cdf(self, y: Array, f: Array) -> Array:
        """Return the distribution function of the Student t at z."""
        z = to_numpy((y - f) / self.scale)
        return same_kind(special.stdtr(self.degrees_of_freedom, z), f)

    def _square(self, y: Array, m: Array, v: Array | float) -> Array:
        """Return E z²."""
        return standardise(y - m, self.scale) ** 2 + v / self.scale**2

    def _bound(self, y: Array, m: Array, v: Array | float) -> Array:
        nu = self.degrees_of_freedom
        constant = float(log_rising(0.5 * nu, 0.5)) - math.log(self.scale * math.sqrt(2 * math.pi))
        return constant - 0.5 * (nu + 1.0) * namespace(m).log1p(self._square(y, m, v) / nu)
