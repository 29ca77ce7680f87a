"""Several classes on inducing points: the posterior of C − 1 functions at m of them.

Each class has a latent function of the same covariance, f_c = P u_c + e_c as in `inducing`. Labels
are about differences of classes, so the classes' mean stays as it was, and what is learned is of
the C − 1 functions H'f, with orthonormal columns in H: a priori they are independent, and each
has the covariance of a class. The sites of a row couple them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import helmert

from cavity.arrays import (
    Array,
    lower_product,
    matmul,
    mirrored,
    signed_gram,
)
from cavity.priors.base import KernelRule
from cavity.priors.coupled import Coupled, CoupledSums
from cavity.priors.differences import DifferenceSites, of_one_copy, without_own
from cavity.priors.draws import covariance_factor
from cavity.priors.inducing import Features, InducingPrior, Shares, left_over
from cavity.priors.labels import ClassLabels
from cavity.sites import ClassMarginals, Local, Marginals, Rows, Sites, Slope


class Labelled(NamedTuple):
    """Inputs and classes of a block of rows."""

    X: Any
    labels: ClassLabels


@dataclass(frozen=True)
class AsDifferences:
    """How a block of rows with class codes becomes one of differences of class values.

    Parameters
    ----------
    n_classes : int

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.priors import AsDifferences
    >>> from cavity.sites import Rows
    >>> X, codes = np.zeros((4, 1)), np.array([0, 2, 1, 2])
    >>> rows = AsDifferences(3)(Rows(codes, np.ones(4), X))
    >>> rows.y.shape, rows.X.labels.codes.tolist()
    ((8,), [0, 2, 1, 2])
    """

    n_classes: int

    def __call__(self, rows: Rows) -> Rows:
        """Return C − 1 rows of a binary problem for each row, with labels beside their inputs."""
        labels = ClassLabels.of(np.asarray(rows.y, dtype=int), self.n_classes, rows.weight)
        seen = labels.rows(rows.weight)
        return seen._replace(X=Labelled(rows.X, labels), place=rows.place, memo=rows.memo)


class ClassFeatures(NamedTuple):
    """Some rows as seen from the inducing points, and their classes."""

    one: Features
    """Of the function of one class."""
    labels: ClassLabels
    turns: Array
    """A H of each row, of shape (n, C − 1, C − 1): from the functions to differences."""

    def through(self, sites: Sites) -> DifferenceSites:
        """Return what the sites on differences say about P u."""
        return DifferenceSites(self.labels, sites, self.one.left)

    def turned(self, values: Array) -> Array:
        """Return differences, given values (n, C − 1) of the functions."""
        return np.einsum("ikc,ic->ik", self.turns, values)

    def back(self, differences: Array) -> Array:
        """Return weights of the functions, given weights of differences."""
        return np.einsum("ikc,ik->ic", self.turns, differences)

    def both(self, matrices: Array) -> Array:
        """Return precisions of the functions, given those of differences."""
        return np.asarray(self.turns.swapaxes(1, 2) @ matrices @ self.turns)


class ClassInducingPrior(NamedTuple):
    """Independent latent functions of C classes on the same inducing points.

    Its rows are differences of class values, as `AsDifferences` makes them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.inference import EP, Problem
    >>> from cavity.kernels import rule
    >>> from cavity.likelihoods import Probit
    >>> from cavity.priors import AsDifferences, ClassInducingPrior
    >>> from cavity.sites import Rows
    >>> X = np.linspace(0.0, 6.0, 90)[:, None]
    >>> codes = np.repeat([0, 1, 2], 30)
    >>> prior = ClassInducingPrior.of(rule(4.0 * RBF(1.0)), X[::15], 3)
    >>> rows = AsDifferences(3)(Rows(codes, np.ones(90), X))
    >>> fit = EP().fit(Problem(Probit(), prior, rows))
    >>> np.argmax(fit.posterior.at(X[[5, 45, 85]]).mean, axis=1).tolist()
    [0, 1, 2]
    """

    one: InducingPrior
    """Of the function of one class."""
    n_classes: int

    @classmethod
    def of(
        cls, rule: KernelRule, Z: Any, n_classes: int, *, whole: bool = True
    ) -> ClassInducingPrior:
        """Return the prior of a covariance function with the given inducing points."""
        return cls(InducingPrior.of(rule, Z, whole=whole), n_classes)

    @property
    def dense(self) -> bool:
        """Rows may come in blocks."""
        return False

    @property
    def rule(self) -> KernelRule:
        """The kernel of every class."""
        return self.one.rule

    @property
    def points(self) -> Any:
        """The inputs that new ones are compared with."""
        return self.one.Z

    @property
    def W(self) -> Array:
        """The inverse of their Cholesky factor."""
        return self.one.W

    @property
    def contrasts(self) -> Array:
        """H, of shape (C, C − 1): from the functions to class values whose mean is zero."""
        return np.asarray(helmert(self.n_classes).T)

    def cross(self, X: Any) -> Array:
        """Return P = k(X, Z) W', the inputs in the coordinates of u."""
        return self.one.cross(X)

    def features(self, rows: Rows) -> ClassFeatures:
        """Return the rows as seen from the inducing points, kept between visits if possible."""
        X, labels = rows.X
        one = self.one.features(rows._replace(X=X))
        return ClassFeatures(one, labels, labels.contrasts @ self.contrasts)

    def labels_of(self, rows: Rows) -> ClassLabels:
        """Return the classes of a block of rows."""
        return rows.X.labels  # type: ignore[no-any-return]

    def sums(self, seen: ClassFeatures, sites: Sites) -> CoupledSums:
        """Return what a block of rows adds to the posterior."""
        own = seen.through(sites)
        T, nu = seen.both(own.precision), seen.back(own.source)
        return CoupledSums.of(seen.one.P, T, nu, own.half_log_e)

    def condition(self, sums: CoupledSums | None = None) -> ClassInducingPosterior:
        """Return the posterior; of nothing, the prior itself."""
        m = len(self.W)
        if sums is None:
            size = m * (self.n_classes - 1)
            sums = CoupledSums(np.zeros((size, size)), np.zeros(size), 0.0)
        return ClassInducingPosterior(self, Coupled.of(sums, m))


class ClassInducingPosterior:
    """The posterior of several classes on inducing points, whatever the number of rows.

    Parameters
    ----------
    prior : ClassInducingPrior
    values : Coupled
    """

    def __init__(self, prior: ClassInducingPrior, values: Coupled) -> None:
        self.prior, self.values = prior, values

    @property
    def half_log_det(self) -> Any:
        """½ log det(I + G T) of all differences of all copies."""
        return self.values.half_log_det

    def under(self, sums: CoupledSums) -> ClassInducingPosterior:
        """Return the posterior with the same precisions and other sources ν."""
        return ClassInducingPosterior(self.prior, self.values.under(sums))

    def _alpha(self, seen: ClassFeatures, own: DifferenceSites) -> tuple[Array, Array]:
        """Return the means of P u and α, both of differences (n, C − 1)."""
        d = seen.turned(matmul(seen.one.P, np.ascontiguousarray(self.values.means.T)))
        return d, own.source - own.times(d)

    def _covariance(self, seen: ClassFeatures, own: DifferenceSites) -> Array:
        """Return the posterior covariances of differences, without the noise that they share."""
        S = self.values.spread(seen.one.P)
        return own.covariance(seen.turns @ S @ seen.turns.swapaxes(1, 2))

    def local(self, seen: ClassFeatures, sites: Sites | None) -> Local:
        """Return what the posterior says about each difference of a block of rows."""
        sites, labels, one = _given(seen, sites), seen.labels, seen.one
        own = seen.through(sites)
        d, alpha = self._alpha(seen, own)
        variance, rest = of_one_copy(labels, sites.tau, self._covariance(seen, own))
        mean = own.mean(d, alpha) + np.sum(alpha, axis=1, keepdims=True) / labels.copies[:, None]
        # A difference of two classes has twice their variance, and the noise's.
        each = np.repeat(
            np.array([2.0 * one.prior + 1.0, 2.0 * one.beyond + 0.0 * one.prior]),
            labels.n_classes - 1,
            axis=1,
        )
        q = Marginals(mean.ravel(), variance)
        return Local(q, sites, alpha.ravel(), rest, *each)

    def left_out(self, seen: ClassFeatures, sites: Sites | None, weight: Array) -> ClassMarginals:
        """Return the class values of each example, given all others: no site of its own is left."""
        sites = _given(seen, sites)
        own = seen.through(sites)
        d, alpha = self._alpha(seen, own)
        D, all_of = self._covariance(seen, own), own.mean(d, alpha)
        return without_own(seen.labels, sites.tau, alpha, all_of, D, seen.one.beyond)

    def at(self, X: Any, variance: Array | None = None) -> ClassMarginals:
        """Return means and covariances of the classes at new inputs."""
        own = self.prior.rule.diag(X) if variance is None else variance
        return self.predict(self.prior.cross(X), own)

    def predicted_mean(self, P: Array) -> Array:
        """Return each class's posterior mean at new inputs."""
        return matmul(matmul(P, np.ascontiguousarray(self.values.means.T)), self.prior.contrasts.T)

    def predict(self, P: Array, prior_variance: Array) -> ClassMarginals:
        """Return means (n, C) and covariances (n, C, C) of the classes at new inputs."""
        H, left = self.prior.contrasts, left_over(prior_variance, P)[:, None, None]
        S = self.values.spread(P) + left * np.eye(H.shape[1])
        # About the classes' mean, the labels say nothing.
        mean = prior_variance[:, None, None] / len(H)
        return ClassMarginals(self.predicted_mean(P), H @ S @ H.T + mean)

    def draw(self, P: Array, prior: Array, count: int, rng: Any) -> Array:
        """Draw the classes' functions at new inputs, with this prior covariance: (C, count, n)."""
        H, V, q = self.prior.contrasts, self.values.V, self.prior.n_classes - 1
        u = lower_product(V, rng.standard_normal((len(V), count)), transpose=True)
        u = (self.values.w[:, None] + u).reshape(q, -1, count)
        explained = np.einsum("nm,qmk->qkn", P, u, optimize=True)
        rest = covariance_factor(prior - matmul(P, P.T), prior)
        own = explained + rng.standard_normal((q, count, rest.shape[1])) @ rest.T
        whole = covariance_factor(prior, prior)
        shared = rng.standard_normal((count, whole.shape[1])) @ whole.T
        return np.einsum("cq,qkn->ckn", H, own) + shared / np.sqrt(len(H))

    def contract(
        self,
        seen: ClassFeatures,
        sites: Sites | None,
        slope: Slope,
        other: ClassInducingPosterior | None = None,
    ) -> Shares:
        """Return a block's share of the gradient: that of one function, summed over them all.

        See `InducingPosterior.contract`.
        """
        sites, p, P, W = _given(seen, sites), slope.precision, seen.one.P, self.prior.W
        own = seen.through(sites)
        T, a = seen.both(own.precision), seen.back(self._alpha(seen, own)[1])
        v = 0.0 * a if other is None else other.pulled(seen, Sites(sites.tau, slope.source))
        d = 0.0 * seen.one.prior
        if slope.diagonal is not None:
            d = 2.0 * np.sum(seen.labels.by_example(slope.diagonal), axis=1)
        R = np.einsum("icc->i", T) - np.einsum("icd,icd->i", T @ self.values.spread(P), T)
        all_of = np.sum(0.5 * a * a + a * v, axis=1) - 0.5 * p * R + d
        g = all_of if self.prior.one.whole else -np.sum(seen.labels.by_example(sites.tau), axis=1)
        H = self.values.weighed(P, -0.5 * p * T, W)
        H += (d - g)[:, None] * lower_product(W, P.T, transpose=True).T
        # P'H without what is the same for all blocks.
        pairs, outer = [(a + v, self.values)], 0.0 * W
        pairs += [] if other is None else [(a, other.values)]
        for left, right in pairs:
            back = matmul(right.means, W)
            H += matmul(0.5 * left, back)
            outer += matmul(matmul(P.T, 0.5 * left), back)
        theta = self.prior.one.contracted(seen.one.X, H, g, all_of)
        return Shares(theta, signed_gram(P, d - g), outer, p)

    def pulled(self, seen: ClassFeatures, sites: Sites) -> Array:
        """Return α of the functions under these sites."""
        return seen.back(self._alpha(seen, seen.through(sites))[1])

    def gradient(self, shares: Shares) -> Array:
        """Return d log Z/d theta from the sum of the shares."""
        rule, Z, W = self.prior.rule, self.prior.points, self.prior.W
        theta, gram, outer, p = shares
        PH = outer + matmul(mirrored(gram), W)
        # Σ P'R P = Σ (I − A⁻¹), over the functions.
        A = np.einsum("aiaj->ij", self.values.inverse)
        PH -= 0.5 * p * ((self.prior.n_classes - 1) * W - matmul(A, W))
        return theta - rule.vjp(Z, Z, lower_product(W, PH, transpose=True))


def _given(seen: ClassFeatures, sites: Sites | None) -> Sites:
    """Return the sites, empty ones where a block has none."""
    if sites is not None:
        return sites
    zero = np.zeros(len(seen.labels.codes) * (seen.labels.n_classes - 1))
    return Sites(zero, zero)
