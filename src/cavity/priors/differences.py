"""What the sites on an example's differences say about its class values, row by row.

With A from class values f to the differences to the label's own class, and G = A A' = I + 1 1',
the sites are exp(b·d − d'T d/2) on d = A f, once the noise that the differences share is
integrated out: T = diag τ − τ τ'/s. All arrays here have an entry or a matrix for each example.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cavity.arrays import Array
from cavity.priors.labels import ClassLabels, site_precisions
from cavity.sites import ClassMarginals, Sites


def of_one_copy(labels: ClassLabels, tau: Array, D: Array) -> tuple[Array, Array]:
    """Return the variance of each difference, its noise included, and one minus τ times it.

    Given f, the noise that the differences share has precision s and mean −τ'd/s.

    Parameters
    ----------
    labels : ClassLabels
    tau : array of shape (n (C − 1),)
        Summed over copies.
    D : array of shape (n, C − 1, C − 1)
        Posterior covariances of d.
    """
    (tau, s), copies = site_precisions(labels, tau), labels.copies[:, None]
    s = s[:, None]
    pulled = np.einsum("ikl,il->ik", D, tau) / s
    both = np.sum(pulled * tau, axis=1, keepdims=True) / s
    own = np.einsum("ikk->ik", D) - 2.0 * pulled + both
    total = tau * copies
    # Less than rounding leaves of one copy is not left.
    least = 1.0 - copies * (1.0 - np.finfo(float).eps)
    rest = np.maximum(1.0 - total / s - total * own, least)
    return (own + 1.0 / s).ravel(), rest.ravel()


def without_own(
    labels: ClassLabels, tau: Array, alpha: Array, d: Array, D: Array, beyond: Array | float = 0.0
) -> ClassMarginals:
    """Return the class values of each example, given all others: no site of its own is left.

    Of a repeated example one copy is left out. Classes are compared with their mean.

    Parameters
    ----------
    labels : ClassLabels
    tau, alpha : arrays of shape (n (C − 1),)
        Of the differences, summed over copies.
    d, D : arrays of shape (n, C − 1) and (n, C − 1, C − 1)
        Posterior means and covariances of d.
    beyond : array of shape (n,), default 0.0
        Variance of each class value on which no site acts.
    """
    tau, s = site_precisions(labels, tau)
    eye = np.eye(tau.shape[1])
    T = tau[:, :, None] * (eye - tau[:, None, :] / s[:, None, None])
    D = np.linalg.solve(eye - D @ T, D)
    one = labels.by_example(alpha) / labels.copies[:, None]
    d = d - np.einsum("ikl,il->ik", D, one)
    D = D + np.reshape(beyond, (-1, 1, 1)) * (eye + 1.0)
    back = labels.from_differences
    return ClassMarginals(np.einsum("ick,ik->ic", back, d), back @ D @ back.swapaxes(1, 2))


class DifferenceSites:
    """Sites on differences of values P u + e, e of variance r for each class, as sites on P u.

    Their precisions are again diag t − t t'/S, with t = τ/(1 + r τ) and the same of the label's own
    class, whose weight is the number of copies.

    Parameters
    ----------
    labels : ClassLabels
    sites : Sites
        Of shape (n (C − 1),) each, summed over copies.
    left : array of shape (n,)
        r.
    """

    def __init__(self, labels: ClassLabels, sites: Sites, left: Array) -> None:
        self._labels, self._left, self._copies = labels, left[:, None], labels.copies[:, None]
        self._tau, self._nu = map(labels.by_example, sites)
        self.s = site_precisions(labels, sites.tau)[1]
        self._t = self._tau / (1.0 + self._left * self._tau)
        own = labels.copies / (1.0 + left * labels.copies)
        self._sum = own + np.sum(self._t, axis=1)

    @cached_property
    def half_log_e(self) -> float:
        """What e and the shared noise add to ½ log det(I + G T) of all copies."""
        r, w = self._left[:, 0], self._copies[:, 0]
        grown = np.log1p(r * w) + np.sum(np.log1p(self._left * self._tau), axis=1)
        return 0.5 * float(np.sum(grown + np.log(self._sum / (w * self.s)) + w * np.log(self.s)))

    def times(self, d: Array) -> Array:
        """Return the precisions on P u times differences d."""
        pulled = np.sum(self._t * d, axis=1, keepdims=True) / self._sum[:, None]
        return self._t * (d - pulled)

    @cached_property
    def precision(self) -> Array:
        """The precisions on P u, as matrices."""
        t = self._t
        D = -t[:, :, None] * t[:, None, :] / self._sum[:, None, None]
        np.einsum("ikk->ik", D)[...] += t
        return D

    @cached_property
    def source(self) -> Array:
        """The sources on P u, in differences."""
        tau, shared = self._tau / self._copies, np.sum(self._nu, axis=1) / self.s
        b = self._nu - tau * shared[:, None]
        return b - self._left * self.times(b + np.sum(b, axis=1, keepdims=True))

    def mean(self, d: Array, alpha: Array) -> Array:
        """Return the posterior means of all of d, given those of its part in P u, and α."""
        return d + self._left * (alpha + np.sum(alpha, axis=1, keepdims=True))

    def covariance(self, D: Array) -> Array:
        """Return the posterior covariances of all of d, given those of its part in P u."""
        G, r = np.eye(D.shape[1]) + 1.0, self._left[:, :, None]
        Q = np.eye(D.shape[1]) - r * (G @ self.precision)
        return np.asarray(r * (Q @ G) + Q @ D @ Q.swapaxes(1, 2))
