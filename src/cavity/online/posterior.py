"""What is kept from a stream: a Gaussian over the function's values at the basis points.

With K = L Lᵀ the prior covariance at the basis points Z, their values are f = L f̃ with f̃ ~ N(0, I)
before any data and f̃ ~ N(μ, Σ) after. In these coordinates everything stays well conditioned,
0 < Σ ≤ I, and a new basis point only pads μ with 0 and Σ with 1. The usual parameters
follow: α = L⁻ᵀ μ, Q = L⁻ᵀ L⁻¹, C = L⁻ᵀ (Σ − I) L⁻¹. Another input x has features φ = L⁻¹ k(Z, x);
its value is φ·f̃ plus an independent part with the residual variance γ = k(x,x) − φ·φ.
"""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array, clip, column_square_sums, row_blocks, solve_lower
from cavity.priors import KernelRule
from cavity.sites import Marginals

BLOCK = 64
"""Maximum number of examples learned together."""
CHUNK = 2048
"""Rows of a table that are processed together."""


class Options(NamedTuple):
    """How to learn."""

    budget: int
    """Maximum number of basis points."""
    novelty: float
    """Least residual variance of a novel input, as a share of its prior variance."""
    forget: float = 1.0
    """Factor by which each example discounts the evidence of earlier ones."""

    @property
    def interval(self) -> int:
        """Examples between two upkeeps, when old evidence fades and scores are updated.

        A tenth of the memory 1/(1 − forget), and at most a block.
        """
        if self.forget == 1.0:
            return BLOCK
        return int(min(BLOCK, max(1.0, 0.1 / (1.0 - self.forget) + 1e-9)))


class OnlinePosterior(NamedTuple):
    """A posterior process: Z, L, μ and Σ as above; arrays are never changed in place."""

    Z: Array
    L: Array
    mean: Array
    cov: Array
    log_evidence: float = 0.0
    """Σ_t log Z_t, each example predicted by those before it."""
    seen: int = 0
    """Examples presented."""
    floor: float = 0.0
    """The lowest score of a basis point, at the last upkeep; a new one must exceed it."""
    size: int = 1
    """Examples to try as the next block."""
    changes: int = 0
    """How often the basis has changed."""

    @classmethod
    def empty(cls, columns: int) -> "OnlinePosterior":
        """Return the prior: no basis points yet, for inputs of that many columns."""
        return cls(np.empty((0, columns)), np.empty((0, 0)), np.empty(0), np.empty((0, 0)))


class BasisFeatures(NamedTuple):
    """Some inputs in the coordinates of the basis points: φ, a column for each input, and γ.

    It also has the prior variance k(x, x) without noise, and the variance of the kernel's noise.
    """

    phi: Array
    residual: Array
    prior: Array
    noise: Array

    def part(self, rows: slice) -> "BasisFeatures":
        """Return some of the inputs."""
        phi, *variances = self
        return BasisFeatures(phi[:, rows], *(variance[rows] for variance in variances))


def features(rule: KernelRule, posterior: OnlinePosterior, X: Array) -> BasisFeatures:
    """Return the inputs in the coordinates of the basis points."""
    noise = np.maximum(rule.noise(X), 0.0)
    prior = rule.diag(X) - noise
    if not len(posterior.Z):
        return BasisFeatures(np.empty((0, len(X))), prior, prior, noise)
    phi = solve_lower(posterior.L, np.ascontiguousarray(rule.matrix(X, posterior.Z).T))
    # Rounding may make the residual variance of a basis point negative.
    return BasisFeatures(phi, clip(prior - column_square_sums(phi), low=0.0), prior, noise)


def predict(rule: KernelRule, posterior: OnlinePosterior, X: Array) -> Marginals:
    """Return mean and variance at new inputs, the kernel's noise included."""
    mean, variance = np.empty((2, len(X)))
    for i, j in row_blocks(len(X), CHUNK):
        phi, residual, _, noise = features(rule, posterior, X[i:j])
        explained = np.einsum("ij,ij->j", phi, posterior.cov @ phi)
        mean[i:j] = phi.T @ posterior.mean
        variance[i:j] = residual + clip(explained, low=0.0) + noise
    return Marginals(mean, variance)
