"""Labels of which some are wrong."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cavity.arrays import Array, clip, namespace
from cavity.arrays.special import ndtr
from cavity.likelihoods.base import Likelihood, draw_labels
from cavity.likelihoods.normal import (
    hazard_derivatives,
    log_ndtr_derivatives,
    proper,
    standardise,
)
from cavity.likelihoods.probit import Probit
from cavity.sites import Marginals, Moments

# Below it the formulas in the hazard lose digits, and below the other one Φ is zero.
_TAIL, _NONE = -4.0, -40.0


@dataclass(frozen=True)
class NoisyProbit(Likelihood, name="noisy_probit"):
    """p(y|f) = ε + (1 − 2ε) Φ(y f): a probit's label ±1, flipped with probability ε.

    A label that the others contradict is taken for a wrong one instead of moving the boundary. It
    is not log-concave.

    Parameters
    ----------
    label_noise : float, default=0.01
        The probability ε that a label is wrong, less than ½.
    label_noise_bounds : pair of float or "fixed", default (1e-06, 0.4)
        Limits of ε while it is tuned.
    """

    label_noise: float = 0.01
    label_noise_bounds: tuple[float, float] | str = (1e-6, 0.4)

    concave = False
    tunes: ClassVar[tuple[str, ...]] = ("label_noise",)
    open_ends = frozenset({("likelihood__label_noise", "lower")})

    def __post_init__(self) -> None:
        if not 0.0 < self.label_noise < 0.5:
            raise ValueError(f"label_noise must be between 0 and 1/2, got {self.label_noise!r}.")

    @property
    def offers(self) -> frozenset[str]:
        """Tilted moments, derivatives, and the bound of a mixture."""
        return frozenset({"tilted", "derivatives", "mixture"})

    @property
    def symmetric(self) -> bool:
        """p(−1|−f) = p(+1|f)."""
        return True

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return log[ε + (1 − 2ε) Φ(y f)]."""
        return self._log(standardise(y * f, 1.0))

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Return the first three derivatives of log p in f; the second may be positive."""
        d1, d2, d3, _ = self._slopes(standardise(y * f, 1.0))
        return y * d1, d2, y * d3

    def expected(self, y: Array, q: Marginals) -> Moments:
        """Raise an error: the average curvature may be positive."""
        raise ValueError(f'{self!r} is not log-concave: use inference="mixture".')

    def tilted(self, y: Array, c: Marginals) -> Moments:
        """Return log[ε + (1 − 2ε) Φ(z)], z = y m/√(1 + v), and its derivatives in m."""
        sd = _spread(c)
        z = standardise(y * c.mean, sd)
        d1, d2, _, _ = self._slopes(z)
        return Moments(self._log(z), y * d1 / sd, d2 / sd**2)

    def cumulants(self, y: Array, c: Marginals) -> tuple[Array, Array]:
        """Return v^l ∂^l log Z for l = 3 and 4."""
        sd = _spread(c)
        _, _, d3, d4 = self._slopes(standardise(y * c.mean, sd))
        scale = sd * (proper(c).variance / (1.0 + c.variance))
        return y * d3 * scale**3, d4 * scale**4

    def mixture(self, y: Array, q: Marginals) -> Moments:
        """Return log[(1 − ε) e^{E log Φ(y f)} + ε e^{E log Φ(−y f)}], its slope, and −τ."""
        xp = namespace(q.mean)
        right, wrong, odds = self._labels(y, q)
        share = 1.0 / (1.0 + xp.exp(clip(odds, -700.0, 700.0)))
        # log[e^a + e^b] = max + log(1 + e^{−|a − b|}).
        high = clip(odds, low=0.0) + math.log1p(-self.label_noise) + right.log_z
        bound = high + xp.log1p(xp.exp(-xp.abs(odds)))
        d1, d2 = (share * a + (1.0 - share) * b for a, b in zip(right[1:], wrong[1:], strict=True))
        return Moments(bound, d1, d2)

    def mislabelled(self, y: Array, q: Marginals) -> Array:
        """Return the probability that each label is wrong, given its row's posterior."""
        return 1.0 / (1.0 + namespace(q.mean).exp(clip(-self._labels(y, q)[2], -700.0, 700.0)))

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw labels ±1."""
        return draw_labels(self.log_prob(1.0, f), rng)

    def _labels(self, y: Array, q: Marginals) -> tuple[Moments, Moments, Array]:
        """Return the moments of right and of wrong labels, and the log odds of a wrong one."""
        right, wrong = Probit().expected(y, q), Probit().expected(-y, q)
        log_odds = math.log(self.label_noise) - math.log1p(-self.label_noise)
        return right, wrong, wrong.log_z - right.log_z + log_odds

    def _log(self, z: Array) -> Array:
        """Return log[ε + (1 − 2ε) Φ(z)]."""
        xp = namespace(z)
        e = self.label_noise
        above = xp.log1p(-e - (1.0 - 2.0 * e) * ndtr(-clip(z, low=0.0)))
        return xp.where(z > 0.0, above, xp.log(e + (1.0 - 2.0 * e) * ndtr(z)))

    def _slopes(self, z: Array) -> tuple[Array, Array, Array, Array]:
        """Return the first four derivatives of log[ε + (1 − 2ε) Φ(z)]."""
        xp = namespace(z)
        e = self.label_noise
        density = (1.0 - 2.0 * e) * xp.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        near = hazard_derivatives(density / (e + (1.0 - 2.0 * e) * ndtr(z)), z)
        tail = z < _TAIL
        pairs = zip(self._tail_slopes(clip(z, _NONE, _TAIL)), near, strict=True)
        d1, d2, d3, d4 = (xp.where(tail, a, b) for a, b in pairs)
        return d1, d2, d3, d4

    def _tail_slopes(self, z: Array) -> tuple[Array, Array, Array, Array]:
        """Return the same where log Φ has to be taken apart, for small ε.

        With l_k its derivatives and p the share of its part, of which the slope is p (1 − p) l_1.
        """
        e = self.label_noise
        l1, l2, l3, l4 = log_ndtr_derivatives(z)
        part = (1.0 - 2.0 * e) * ndtr(z)
        p, rest = part / (e + part), e / (e + part)
        p2, p3 = p * rest, p * rest * (rest - p)
        p4 = p2 * (1.0 - 6.0 * p2)
        d2, d3 = p * l2 + p2 * l1**2, p * l3 + 3.0 * p2 * l1 * l2 + p3 * l1**3
        d4 = p * l4 + p2 * (4.0 * l1 * l3 + 3.0 * l2**2) + 6.0 * p3 * l1**2 * l2 + p4 * l1**4
        return p * l1, d2, d3, d4


def _spread(c: Marginals) -> Array:
    return namespace(c.mean).sqrt(1.0 + c.variance)
