"""The softmax likelihood of several classes, p(y|f) = exp f_y / Σ_c exp f_c."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import log_softmax, logsumexp, ndtri

from cavity.arrays import Array
from cavity.likelihoods.base import Likelihood
from cavity.sites import ClassMarginals

_POINTS, _BLOCK = 2039, 64
_TINY = 1e-300


@dataclass(frozen=True)
class Softmax(Likelihood):
    """The probability of a class given the latent values of all, in the last axis of f.

    Not elementwise: it has its own inference.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods.softmax import Softmax
    >>> Softmax().log_prob(np.array([1]), np.zeros((1, 4))).round(4).tolist()
    [-1.3863]
    """

    @property
    def support(self) -> str:
        """Codes of classes."""
        return "codes"

    @property
    def offers(self) -> frozenset[str]:
        """What Laplace's method for several classes needs."""
        return frozenset({"classes"})

    def log_prob(self, y: Array, f: Array) -> Array:
        """Return the log probability of each class code, given f of shape (n, C)."""
        return np.take_along_axis(log_softmax(f, axis=-1), np.asarray(y)[:, None], axis=-1)[:, 0]

    def derivatives(self, y: Array, f: Array) -> tuple[Array, Array, Array]:
        """Raise an error: derivatives in several values are no three numbers."""
        raise ValueError("The softmax of several classes has no derivatives in one latent value.")

    def sample(self, f: Array, rng: np.random.Generator) -> Array:
        """Draw class codes."""
        return np.argmax(f + rng.gumbel(size=np.shape(f)), axis=-1)


def softmax_log_proba(q: ClassMarginals) -> Array:
    """Return log class probabilities of shape (n, C) under Gaussians over the latent values.

    Averages over the same 4,078 values of differences for every example, a lattice in which each
    point comes with its mirror image; the error is some 1e-3.

    Parameters
    ----------
    q : ClassMarginals

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods.softmax import softmax_log_proba
    >>> from cavity.sites import ClassMarginals
    >>> q = ClassMarginals(np.array([[0.0, 1.0, -1.0]]), np.eye(3)[None])
    >>> np.exp(softmax_log_proba(q)).round(2).tolist()
    [[0.28, 0.6, 0.12]]
    """
    n, C = q.mean.shape
    found, z = np.empty((n, C)), _lattice(C - 1)
    # An orthonormal basis of the values of mean zero.
    basis = np.linalg.qr(np.eye(C) - 1.0 / C)[0][:, : C - 1]
    values, vectors = np.linalg.eigh(basis.T @ q.covariance @ basis)
    roots = basis @ (vectors * np.sqrt(np.maximum(values, _TINY))[:, None, :])
    for i in range(0, n, _BLOCK):
        spread = z @ roots[i : i + _BLOCK].swapaxes(1, 2)
        log_p = log_softmax(q.mean[i : i + _BLOCK, None, :] + spread, axis=-1)
        found[i : i + _BLOCK] = logsumexp(log_p, axis=1) - np.log(len(z))
    return found


@cache
def _lattice(d: int) -> Array:
    """Return standard normal points of d dimensions from multiples of the roots of primes."""
    primes = [k for k in range(2, 20 * d + 20) if all(k % j for j in range(2, k))][:d]
    u = np.outer(np.arange(1, _POINTS + 1) - 0.5, np.sqrt(primes)) % 1.0
    # Folding makes the integrand periodic.
    z = ndtri(np.clip(np.abs(2.0 * u - 1.0), 1e-9, 1.0 - 1e-9))
    return np.concatenate([z, -z])
