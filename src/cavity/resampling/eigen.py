"""A start for the variational theory from the eigenvalues of the covariance matrix."""

import numpy as np

from cavity.arrays import Array
from cavity.resampling.orders import Order, Pool
from cavity.sites import Sites, cavity

__all__ = ["eigenvalue_start"]

_ROUNDS = 60
_CLOSE = 1e-4


def eigenvalue_start(pool: Pool, draws: Array) -> Order:
    """Return cavities of the posterior with G_ii ≈ Σ_k φ_ik²/(1/λ_k + u_i) in its sources.

    That is one equation for each example. With u_i = draws_i/(σ² + G_ii) its right-hand side
    rises with G_ii and meets it once, so that iterating from the prior's variance goes down to
    the root. Exact where all u_i are equal.
    """
    eigenvalues, vectors = np.linalg.eigh(pool.prior.K)
    eigenvalues = np.maximum(eigenvalues, 0.0)
    squares = vectors**2
    noise = pool.likelihood.latent_noise
    G = pool.prior.diag
    for _ in range(_ROUNDS):
        before, u = G, draws / (noise + G)
        G = np.sum(squares * (eigenvalues / (1.0 + eigenvalues * u[:, None])), axis=1)
        if np.max(np.abs(np.log(before / G))) < _CLOSE:
            break
    u = draws / (noise + G)
    c = cavity(pool.prior.condition(Sites(u, u * pool.y)).local)
    return Order(c.variance, c.mean, np.zeros_like(G))
