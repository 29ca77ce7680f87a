"""What is remembered of a stream: a Gaussian over the function's values at the basis points.

With K = L Lᵀ the prior covariance at the basis points Z, their values are f = L f̃ with f̃ ~ N(0, I)
before any data and f̃ ~ N(μ, Σ) after. In these coordinates everything stays well conditioned,
0 < Σ ≤ I, and a new basis point only pads μ with 0 and Σ with 1. The usual parameters
follow: α = L⁻ᵀ μ, Q = L⁻ᵀ L⁻¹, C = L⁻ᵀ (Σ − I) L⁻¹. Another input x has features φ = L⁻¹ k(Z, x)
and the value φ·f̃ plus a part of variance γ = k(x,x) − φ·φ that the basis points do not tell.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from cavity.arrays import Array, clip, column_square_sums, invert_lower, solve_lower
from cavity.sites import Marginals

__all__ = ["Covariance", "Features", "Options", "State", "empty_state", "features", "predict"]


class Covariance(Protocol):
    """What learning needs of a kernel: its covariances, and its noise apart from them."""

    def matrix(self, X: Array, Z: Array) -> Array:
        """Return the covariances between two sets of inputs, without noise."""

    def variance(self, X: Array) -> tuple[Array, Array]:
        """Return each input's prior variance without noise, and the variance of its noise."""


@dataclass(frozen=True)
class Options:
    """How to learn.

    Parameters
    ----------
    budget : int
        The most basis points.
    tol : float
        The share of its prior variance that an input must have to itself to become one.
    forget : float
        By how much old evidence is multiplied with each example.
    """

    budget: int
    tol: float
    forget: float = 1.0

    @property
    def rhythm(self) -> int:
        """After how many examples old evidence fades, all of their fading at once.

        A tenth of the memory 1/(1 − forget), or what is learned as one block if that is less.
        """
        if self.forget == 1.0:
            return BLOCK
        return int(min(BLOCK, max(1.0, 0.1 / (1.0 - self.forget) + 1e-9)))


BLOCK = 64
"""Examples learned together, and the rhythm in which the basis points' worth is looked at."""


class State(NamedTuple):
    """A posterior process; arrays are never changed in place."""

    Z: Array
    """Basis points, (b, d)."""
    L: Array
    """Lower Cholesky factor of their prior covariance."""
    mean: Array
    """μ, the mean of f̃."""
    cov: Array
    """Σ, the covariance of f̃."""
    log_evidence: float = 0.0
    """Σ_t log Z_t, each example predicted by those before it."""
    seen: int = 0
    """Examples presented."""
    floor: float = 0.0
    """The worth of the least basis point when last looked at; a new one must exceed it."""
    size: int = 1
    """Examples to try as the next block."""
    changes: int = 0
    """How often the basis has changed."""

    @property
    def alpha(self) -> Array:
        """Weights of the basis points in the mean."""
        return solve_lower(self.L, self.mean, transpose=True)

    @property
    def Q(self) -> Array:
        """Inverse of the basis points' prior covariance."""
        W = invert_lower(self.L.copy())
        return W.T @ W

    @property
    def C(self) -> Array:
        """Weights of the basis points in the covariance: k(x,x') + k(x,Z) C k(Z,x')."""
        W = invert_lower(self.L.copy())
        C = W.T @ (self.cov - np.eye(len(W))) @ W
        return 0.5 * (C + C.T)


class Features(NamedTuple):
    """Some inputs as seen from the basis points."""

    phi: Array
    """(b, r): L⁻¹ k(Z, x), one column for each input."""
    own: Array
    """γ: variance that the basis points do not tell."""
    prior: Array
    """k(x, x) without noise."""
    noise: Array
    """Variance of the kernel's noise."""

    def part(self, rows: slice) -> "Features":
        """Return some of the inputs."""
        return Features(self.phi[:, rows], self.own[rows], self.prior[rows], self.noise[rows])


def empty_state(columns: int) -> State:
    """Return the prior: no basis points yet, for inputs of that many columns."""
    return State(np.empty((0, columns)), np.empty((0, 0)), np.empty(0), np.empty((0, 0)))


def features(kernel: Covariance, Z: Array, L: Array, X: Array) -> Features:
    """Return the inputs as the basis points with factor L see them."""
    prior, noise = kernel.variance(X)
    if not len(Z):
        return Features(np.empty((0, len(X))), prior, prior, noise)
    phi = solve_lower(L, np.ascontiguousarray(kernel.matrix(X, Z).T))
    # Rounding leaves inputs that the basis tells completely at zero or below.
    return Features(phi, clip(prior - column_square_sums(phi), low=0.0), prior, noise)


def predict(kernel: Covariance, state: State, X: Array) -> Marginals:
    """Return mean and variance at new inputs, the kernel's noise included.

    Parameters
    ----------
    kernel : Covariance
    state : State
    X : array of shape (r, d)
    """
    phi, own, _, noise = features(kernel, state.Z, state.L, X)
    explained = np.einsum("ij,ij->j", phi, state.cov @ phi)
    return Marginals(phi.T @ state.mean, own + clip(explained, low=0.0) + noise)
