"""Several classes by one factorisation of the covariance matrix of all differences."""

from functools import cached_property
from typing import Any

import numpy as np

from cavity.arrays import Array, matmul
from cavity.priors.dense import DensePosterior
from cavity.priors.labels import site_precisions
from cavity.sites import Sites, Slope


class ProjectedFactor:
    """The posterior of n (C − 1) differences as that of a binary problem.

    Parameters
    ----------
    prior : ClassPrior
    tau : array of shape (n (C − 1),)
    """

    def __init__(self, prior: Any, tau: Array) -> None:
        self._prior, self._labels = prior, prior.labels
        self._posterior = DensePosterior(prior.projected, Sites(tau, 0.0 * tau))
        self._s = site_precisions(prior.labels, tau)[1]

    @property
    def half_log_det(self) -> Any:
        """½ log det(I + G T); copies of an example differ from their mean by their noise."""
        copies = 0.5 * np.sum((self._labels.copies - 1.0) * np.log(self._s))
        return self._posterior.half_log_det + float(copies)

    def alpha(self, nu: Array) -> Array:
        """Return α of the differences under these sources."""
        return self._posterior.under(Sites(self._posterior.sites.tau, nu)).alpha

    def variance(self) -> tuple[Array, Array]:
        """Return the variance of each difference of one copy, and one minus τ times it."""
        local = self._posterior.local()
        spread = (1.0 - 1.0 / self._labels.copies) / self._s
        more = np.repeat(spread, len(local.rest) // len(spread))
        return local.q.variance + more, local.rest - local.sites.tau * more

    def differences(self) -> Array:
        """Return the covariances (n, C − 1, C − 1) of f_y − f_j, j ≠ y, of each example."""
        n, q = self._labels.others.shape
        index = np.arange(n)
        prior = self._pattern * self._prior.K[:, None, :, None]
        G = np.reshape(prior, (n * q, n * q))
        return self._posterior.predict_covariance(G, G).reshape(n, q, n, q)[index, :, index]

    def explained(self, K_star: Array) -> Array:
        """Return by how much the sites reduce the covariances (m, C, C) at new inputs."""
        n, q = self._labels.others.shape
        wide = np.repeat(K_star.T, q, axis=0)
        A = self._labels.contrasts.reshape(n * q, -1)
        V = np.stack([self._posterior.whitened(column[:, None] * wide) for column in A.T])
        V = V.transpose(2, 0, 1)
        return V @ V.swapaxes(1, 2)

    def pulled(self, scale: float) -> Array:
        """Return this multiple of Σ_kl R_ik,jl [A_i A_j']_kl, the slope of the log determinant."""
        n, q = self._labels.others.shape
        M = self._posterior.slope_matrix(Slope(-2.0 * scale)).reshape(n, q, n, q)
        return np.einsum("ikjl,ikjl->ij", M, self._pattern)

    def covariance(self) -> Array:
        """Return the covariance of all differences."""
        return self._posterior.covariance()

    @cached_property
    def _pattern(self) -> Array:
        """A_i A_j' of all pairs of examples."""
        A = self._labels.contrasts
        n, q, C = A.shape
        A = A.reshape(n * q, C)
        return matmul(A, A.T).reshape(n, q, n, q)
