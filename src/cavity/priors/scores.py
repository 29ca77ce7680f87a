"""Latent values of several classes under sites on the values themselves, class by class."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from cavity.arrays import Array, matmul
from cavity.priors.classes import DenseClasses, classes_slope
from cavity.priors.draws import draw_classes
from cavity.priors.structured import ClassWise
from cavity.sites import ClassMarginals, Sites, Slope


class ScorePrior(DenseClasses):
    """Independent latent functions of C classes, f_c ~ N(0, K), with sites on their values.

    An example's sites are exp(ν·f − f'T f/2), T = diag π − π π'/s with weights π that sum to s. Of
    `Sites`, τ holds the weights; both parts have one entry for each example and class.
    """

    def by_example(self, a: Array) -> Array:
        """Return one row for each example, one column for each class."""
        return np.reshape(a, (len(self.K), self.n_classes))

    def condition(self, sums: Sites, alpha: Array | None = None) -> ScorePosterior:
        """Return the posterior given the sites, and its α if already known."""
        return ScorePosterior(self, sums, alpha)


class ScorePosterior:
    """The posterior of all classes' latent values under sites on the values themselves.

    Parameters
    ----------
    prior : ScorePrior
    sites : Sites
        Of shape (n C,) each.
    alpha : array of shape (n C,), optional
        The weights α = ν − T μ, if already known.
    """

    def __init__(self, prior: ScorePrior, sites: Sites, alpha: Array | None = None) -> None:
        self.prior, self.sites = prior, sites
        if alpha is not None:
            self.alpha = alpha

    @cached_property
    def _classes(self) -> ClassWise:
        return ClassWise(self.prior.K, self.prior.by_example(self.sites.tau))

    @property
    def half_log_det(self) -> float:
        """½ log det(I + K T)."""
        s = np.sum(self.prior.by_example(self.sites.tau), axis=1)
        return self._classes.half_log_det - 0.5 * float(np.sum(np.log(s)))

    @cached_property
    def alpha(self) -> Array:
        """Weights α = ν − T μ."""
        return self._classes.alpha(self.prior.by_example(self.sites.nu)).ravel()

    @property
    def class_alpha(self) -> Array:
        """The same, of shape (n, C)."""
        return self.prior.by_example(self.alpha)

    @cached_property
    def marginals(self) -> ClassMarginals:
        """Means and covariances of each example's class values."""
        return ClassMarginals(matmul(self.prior.K, self.class_alpha), self._classes.blocks())

    def left_out(self, seen: Any, sites: Any, weight: Array) -> ClassMarginals:
        """Return the class values of each example, given all others and its other copies."""
        (mean, S), C, w = self.marginals, self.prior.n_classes, self.prior.labels.copies
        pi = self.prior.by_example(self.sites.tau) / w[:, None]
        s = np.sum(pi, axis=1)[:, None, None]
        T = pi[:, :, None] * (np.eye(C) - pi[:, None, :] / s)
        V = np.linalg.solve(np.eye(C) - S @ T, S)
        mean = mean - np.einsum("icd,id->ic", V, self.class_alpha / w[:, None])
        centre = np.eye(C) - 1.0 / C
        return ClassMarginals(mean @ centre, centre @ V @ centre)

    def predicted_mean(self, K_star: Array) -> Array:
        """Return each class's posterior mean at new inputs."""
        return matmul(K_star, self.class_alpha)

    def predict(self, K_star: Array, prior_variance: Array) -> ClassMarginals:
        """Return means (m, C) and covariances (m, C, C) of the classes at new inputs."""
        own = prior_variance[:, None, None] * np.eye(self.prior.n_classes)
        return ClassMarginals(self.predicted_mean(K_star), own - self._classes.explained(K_star))

    def draw(self, K_star: Array, prior: Array, count: int, rng: Any) -> Array:
        """Draw the classes' functions at new inputs, with this prior covariance: (C, count, m)."""
        pi, nu = (self.prior.by_example(part) for part in self.sites)
        root = np.sqrt(pi)
        v = root / np.sqrt(np.sum(pi, axis=1, keepdims=True))

        def project(a: Array) -> Array:
            return root * (a - v * np.sum(v * a, axis=1, keepdims=True))

        def weights(f: Array) -> Array:
            # T = project project'.
            source = nu - project(root * f) + project(rng.standard_normal(f.shape))
            return self._classes.alpha(source)

        C = self.prior.n_classes
        return draw_classes(self.prior.K, K_star, prior, C, weights, count, rng)

    def local(self, seen: Any, sites: Any) -> ScorePosterior:
        """Return the posterior itself: its rows have no marginals of one value each."""
        return self

    def under(self, sums: Sites) -> ScorePosterior:
        """Return the posterior with the same precisions and other sources ν."""
        other = ScorePosterior(self.prior, Sites(self.sites.tau, sums.nu))
        other._classes = self._classes
        return other

    def contract(
        self, seen: Any, sites: Any, slope: Slope, other: ScorePosterior | None = None
    ) -> Array:
        """Return the gradient of the log evidence in the kernel's hyperparameters."""
        M = self.slope_matrix(slope, other)
        return self.prior.one.kernel_rule.vjp(self.prior.X, None, M, self.prior.K)

    def gradient(self, shares: Array) -> Array:
        """Return the gradient: there is one share."""
        return shares

    def slope_matrix(self, slope: Slope, other: ScorePosterior | None = None) -> Array:
        """Return M of shape (n, n) with d log Z = Σ_ij M_ij dK_ij."""
        M = self._classes.pulled(-0.5 * slope.precision)
        return classes_slope(M, self.class_alpha, None if other is None else other.class_alpha)
