"""Latent values of several classes, seen through the differences that a label is about.

Each class has a latent function of the same covariance K. An example of class y says that
g_j = f_y − f_j + u is, most likely, positive for all j ≠ y, with a noise u of its own that all
its differences share. The differences of all examples are the latent values of a binary problem in
which every label is +1: every method runs on it unchanged. An example of weight w has w copies,
each with its own u; the mean of these is all that others see of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from cavity.arrays import Array, add_outer, matmul
from cavity.priors.base import ClassFactor, KernelRule
from cavity.priors.dense import DensePrior
from cavity.priors.differences import without_own
from cavity.priors.draws import draw_classes
from cavity.priors.labels import ClassLabels
from cavity.priors.projected import ProjectedFactor
from cavity.priors.structured import StructuredFactor
from cavity.sites import (
    ClassMarginals,
    Local,
    Marginals,
    Rows,
    Sites,
    Slope,
)

_SMALL = 256
_FEW = 3
"""Up to so many classes one factorisation of all differences costs less than one a class."""


class DenseClasses:
    """Independent latent functions of C classes, f_c ~ N(0, K), at inputs that one block holds.

    Parameters
    ----------
    K : array of shape (n, n)
        Covariance of one class's latent values.
    labels : ClassLabels
    rule : KernelRule, optional
        Where K came from.
    X : array of shape (n, d), optional
        The inputs that K belongs to.
    """

    dense: ClassVar[bool] = True

    def __init__(
        self, K: Array, labels: ClassLabels, rule: KernelRule | None = None, X: Any = None
    ) -> None:
        self.one = DensePrior(K, rule, X)
        self.labels, self.X = labels, X
        self.points, self.rule = X, rule

    @classmethod
    def of(cls, rule: KernelRule, X: Any, labels: ClassLabels, *more: Any) -> Self:
        """Return the prior of a covariance function at the given inputs."""
        return cls(DensePrior.of(rule, X).K, labels, rule, X, *more)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.labels.n_classes

    @property
    def K(self) -> Array:
        """The covariance of one class's latent values."""
        return self.one.K

    def cross(self, X: Any) -> Array:
        """Return what a posterior needs of new inputs: their covariances with these."""
        return self.one.cross(X)

    def features(self, rows: Rows) -> Rows:
        """Return the rows themselves."""
        return rows

    def labels_of(self, rows: Rows) -> ClassLabels:
        """Return the classes of all rows."""
        return self.labels

    def sums(self, seen: Rows, sites: Sites) -> Sites:
        """Return the sites: one block holds all rows."""
        return sites


class ClassPrior(DenseClasses):
    """Latent functions of several classes, seen through their differences.

    The posterior is that of n (C − 1) differences. It is found from their covariance matrix, or
    class by class: that takes memory and time proportional to C.

    Parameters
    ----------
    K, labels, rule, X
        As in `DenseClasses`.
    structured : bool, optional
        Whether to go class by class; by default from four classes on.
    """

    pre_solved: ClassVar[bool] = False

    def __init__(
        self,
        K: Array,
        labels: ClassLabels,
        rule: KernelRule | None = None,
        X: Any = None,
        structured: bool | None = None,
    ) -> None:
        super().__init__(K, labels, rule, X)
        self.structured = self.n_classes > _FEW if structured is None else structured
        self._last: tuple[Array, ClassFactor] | None = None

    @cached_property
    def diag(self) -> Array:
        """Prior variances of the differences."""
        return np.repeat(2.0 * self.one.diag + 1.0, self.labels.n_classes - 1)

    @property
    def size(self) -> int:
        """Number of differences."""
        return len(self.labels.codes) * (self.labels.n_classes - 1)

    @property
    def factors_cheaply(self) -> bool:
        """Whether a factorisation costs no more than about ten products."""
        return self.size <= _SMALL

    def product(self, a: Array) -> Array:
        """Return the covariances of the differences times a, the copies of an example merged."""
        labels = self.labels
        F = matmul(self.K, labels.to_classes(a))
        noise = np.sum(labels.by_example(a), axis=1) / labels.copies
        return (labels.of_classes(F) + noise[:, None]).ravel()

    @property
    def kernel_rule(self) -> KernelRule:
        """The kernel of every class."""
        return self.one.kernel_rule

    def condition(self, sums: Sites | None = None, alpha: Array | None = None) -> ClassPosterior:
        """Return the posterior given the sites, and its α if already known."""
        if sums is None:
            zero = 0.0 * self.diag
            return ClassPosterior(self, Sites(zero, zero), zero)
        return ClassPosterior(self, sums, alpha)

    def factor(self, tau: Array) -> ClassFactor:
        """Return the factored posterior covariance under sites of these precisions.

        The last result is kept, and no other: it takes up to C + 1 matrices.
        """
        if self._last is None or self._last[0] is not tau:
            self._last = None
            how = StructuredFactor if self.structured else ProjectedFactor
            self._last = tau, how(self, tau)
        return self._last[1]

    @cached_property
    def projected(self) -> DensePrior:
        """The covariance matrix of all differences, the copies of an example merged."""
        A, n = self.labels.contrasts, len(self.labels.codes)
        q = A.shape[1]
        G = np.einsum("ikc,jlc->ikjl", A, A)
        G *= self.K[:, None, :, None]
        # Every difference of an example has the same noise.
        np.einsum("ikil->ikl", G)[...] += (1.0 / self.labels.copies)[:, None, None]
        return DensePrior(G.reshape(n * q, n * q))


class ClassPosterior:
    """The posterior of all classes' latent values under sites on their differences.

    Parameters
    ----------
    prior : ClassPrior
    sites : Sites
        Of shape (n (C − 1),) each, summed over copies.
    alpha : array, optional
        The weights α = ν − τ μ of the differences, if already known.
    """

    def __init__(self, prior: ClassPrior, sites: Sites, alpha: Array | None = None) -> None:
        self.prior, self.sites = prior, sites
        if alpha is not None:
            self.alpha = alpha

    @property
    def _factor(self) -> ClassFactor:
        return self.prior.factor(self.sites.tau)

    @property
    def half_log_det(self) -> Any:
        """½ log det(I + G T) of all differences of all copies."""
        return self._factor.half_log_det

    @cached_property
    def alpha(self) -> Array:
        """Weights α = ν − τ μ of the differences."""
        return self._factor.alpha(self.sites.nu)

    @cached_property
    def class_alpha(self) -> Array:
        """Weights of the examples in each class's mean, of shape (n, C); rows sum to zero."""
        return self.prior.labels.to_classes(self.alpha)

    @cached_property
    def mean(self) -> Array:
        """Posterior means of the differences."""
        return self.prior.product(self.alpha)

    def local(self, seen: Rows | None = None, sites: Sites | None = None) -> Local:
        """Return marginals of the differences with all that is needed to remove a site."""
        return self._local

    @cached_property
    def _local(self) -> Local:
        variance, rest = self._factor.variance()
        q = Marginals(self.mean, variance)
        return Local(q, self.sites, self.alpha, rest, self.prior.diag)

    def means(self) -> Local:
        """Return the local view of a method that needs no variances, without a factorisation."""
        diag = self.prior.diag
        return Local(Marginals(self.mean, diag), self.sites, self.alpha, np.ones_like(diag), diag)

    def left_out(self, seen: Any, sites: Sites | None, weight: Array) -> ClassMarginals:
        """Return the class values of each example, given all others: no site of its own is left.

        Of a repeated example one copy is left out. Classes are compared with their mean.
        """
        labels, D = self.prior.labels, self._factor.differences()
        d = labels.of_classes(matmul(self.prior.K, self.class_alpha))
        return without_own(labels, self.sites.tau, self.alpha, d, D)

    def solve(self, v: Array) -> Array:
        """Return B⁻¹ v = v − S Σ S v, B = I + S G S."""
        s = np.sqrt(self.sites.tau)
        return v - s * self.prior.product(self._factor.alpha(s * v))

    def at(self, X: Any, variance: Array | None = None) -> ClassMarginals:
        """Return means and covariances of the classes at new inputs."""
        own = self.prior.kernel_rule.diag(X) if variance is None else variance
        return self.predict(self.prior.cross(X), own)

    def predicted_mean(self, K_star: Array) -> Array:
        """Return each class's posterior mean at new inputs."""
        return matmul(K_star, self.class_alpha)

    def predict(self, K_star: Array, prior_variance: Array) -> ClassMarginals:
        """Return means (m, C) and covariances (m, C, C) of the classes at new inputs."""
        own = prior_variance[:, None, None] * np.eye(self.prior.labels.n_classes)
        return ClassMarginals(self.predicted_mean(K_star), own - self._factor.explained(K_star))

    def draw(self, K_star: Array, prior: Array, count: int, rng: Any) -> Array:
        """Draw the classes' functions at new inputs, with this prior covariance: (C, count, m)."""
        labels, (tau, nu) = self.prior.labels, self.sites

        def weights(f: Array) -> Array:
            u = rng.standard_normal((len(f), 1)) / np.sqrt(labels.copies)[:, None]
            g = (labels.of_classes(f) + u).ravel()
            source = nu - tau * g + np.sqrt(tau) * rng.standard_normal(len(tau))
            return labels.to_classes(self._factor.alpha(source))

        return draw_classes(self.prior.K, K_star, prior, labels.n_classes, weights, count, rng)

    def under(self, sums: Sites) -> ClassPosterior:
        """Return the posterior with the same precisions and other sources ν."""
        return ClassPosterior(self.prior, Sites(self.sites.tau, sums.nu))

    def covariance(self) -> Array:
        """Return the posterior covariance of all differences, the copies of an example merged."""
        return self._factor.covariance()

    def separate(self) -> tuple[ClassPosterior, Array, Array]:
        """Return the posterior with a row for each copy; which rows these were, of how many copies.

        The copies of an example share their class values, but not their noise.
        """
        (codes, n_classes, copies), q = self.prior.labels, self.prior.labels.n_classes - 1
        if np.any(copies != np.round(copies)):
            raise ValueError("This needs sample weights that are whole numbers.")
        rows = np.repeat(np.arange(len(codes)), copies.astype(int))
        index = (rows[:, None] * q + np.arange(q)).ravel()
        each = np.repeat(copies[rows], q)
        labels = ClassLabels.of(codes[rows], n_classes)
        prior = ClassPrior(self.prior.K[np.ix_(rows, rows)], labels)
        tau, nu = self.sites
        return prior.condition(Sites(tau[index] / each, nu[index] / each)), index, each

    def contract(
        self, seen: Rows, sites: Sites | None, slope: Slope, other: ClassPosterior | None = None
    ) -> Array:
        """Return the gradient of the log evidence in the kernel's hyperparameters."""
        M = self.slope_matrix(slope, other)
        return self.prior.kernel_rule.vjp(self.prior.X, None, M, self.prior.K)

    def gradient(self, shares: Array) -> Array:
        """Return the gradient: there is one share."""
        return shares

    def slope_matrix(self, slope: Slope, other: ClassPosterior | None = None) -> Array:
        """Return M of shape (n, n) with d log Z = Σ_ij M_ij dK_ij."""
        if slope.matrix is not None:
            raise ValueError(
                "This method has no gradient in the covariance of the classes: use "
                "'ep', 'laplace', 'variational' or 'naive'."
            )
        labels, a = self.prior.labels, self.class_alpha
        M = self._factor.pulled(-0.5 * slope.precision)
        M = classes_slope(M, a, None if other is None else other.class_alpha)
        if slope.diagonal is not None:
            # The variance of a difference is 2 K_ii + 1.
            np.einsum("ii->i", M)[...] += 2.0 * np.sum(labels.by_example(slope.diagonal), axis=1)
        return M


def classes_slope(M: Array, alpha: Array, v: Array | None) -> Array:
    """Return M + ½ Σ_c (α_c α_c' + v_c α_c' + α_c v_c'); consumes M."""
    for c, a in enumerate(alpha.T):
        M = add_outer(M, 0.5, np.ascontiguousarray(a))
        if v is not None:
            # As two squares, so that M is updated in place.
            M = add_outer(M, 0.25, a + v[:, c])
            M = add_outer(M, -0.25, a - v[:, c])
    return M
