"""Laplace's method for several classes at once: a Gaussian at the mode of all latent values."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cavity.arrays import Array, matmul
from cavity.inference.base import Method
from cavity.inference.newton import FORGIVEN, not_rounding, rounding, size_of_product
from cavity.inference.problem import Fit, Problem, WarmStart, report_of
from cavity.likelihoods import Likelihood
from cavity.sites import Rows, Sites, Slope
from cavity.solvers import solve

_PATIENCE = 5
_SMALLEST = 1e-200


@dataclass(frozen=True)
class SoftmaxLaplace(Method):
    """Laplace's approximation for the softmax of several classes (R&W section 3.5).

    Its problem has a `cavity.priors.ScorePrior` and rows with class codes.
    """

    name: ClassVar[str] = "laplace"
    needs: ClassVar[str] = "classes"
    concave: ClassVar[bool] = True
    is_stationary: ClassVar[bool] = False

    def slope(self, likelihood: Likelihood, rows: Rows, local: Any, prior: Any) -> Slope:
        """Return the source −½ w J (diag Σ − 2 Σ p), J = diag p − p p': the mode moves with K."""
        mean, S = local.marginals
        p = probabilities(likelihood, mean)
        turned = np.einsum("icc->ic", S) - 2.0 * np.einsum("icd,id->ic", S, p)
        J_turned = p * (turned - np.sum(p * turned, axis=1, keepdims=True))
        return Slope(source=(-0.5 * rows.weight[:, None] * J_turned).ravel())

    def fit(self, problem: Problem, start: WarmStart | None = None) -> Fit:
        """Find the mode by Newton's method, and the evidence there."""
        shape = len(problem.rows.y), problem.prior.n_classes
        labels = problem.rows.weight[:, None] * np.eye(shape[1])[problem.rows.y]
        # At a mode α is the label minus the site's weights.
        alpha = np.zeros(shape) if start is None else labels - start.sites.tau.reshape(shape)
        found = solve(
            lambda a: _Scores(problem, labels, a),
            alpha,
            tol=self.tol,
            max_iter=self.max_iter,
            patience=_PATIENCE,
        )
        state, report = found.state, report_of(found.converged, found.n_iter, found.residual)
        posterior = problem.prior.condition(state.sites, alpha=found.x.ravel())
        value = state.merit - posterior.half_log_det
        return Fit(problem, self, posterior, value, report, WarmStart(state.sites))


def probabilities(likelihood: Likelihood, f: Array) -> Array:
    """Return the probability of every class at class values f, of shape (n, C)."""
    n, C = f.shape
    each = [likelihood.log_prob(np.full(n, c), f) for c in range(C)]
    return np.asarray(np.exp(np.stack(each, axis=1)))


class _Scores:
    """A point of the iteration: α of shape (n, C), and the sites expanded at f = K α."""

    def __init__(self, problem: Problem, labels: Array, alpha: Array) -> None:
        likelihood, prior, rows = problem
        w, f = rows.weight[:, None], matmul(prior.K, alpha)
        p, self._prior = probabilities(likelihood, f), prior
        pi = w * np.maximum(p, _SMALLEST)
        pulled = p * (f - np.sum(p * f, axis=1, keepdims=True))
        self.sites = Sites(pi.ravel(), (w * pulled + labels - w * p).ravel())
        fit = rows.weight @ likelihood.log_prob(rows.y, f)
        self.merit = float(fit - 0.5 * np.sum(alpha * f))
        error, K_ii = np.abs(alpha - labels + w * p), prior.one.diag
        scale = np.sqrt(K_ii[:, None] / (1.0 + pi * (1.0 - p) * K_ii[:, None]))
        # What the products with K are rounded by, in any class: |w (diag p − p p')| of it.
        size = np.stack([size_of_product(K_ii, a) for a in alpha.T], axis=1)
        moved = pi * ((1.0 - 2.0 * p) * size + np.sum(p * size, axis=1, keepdims=True))
        forgiven = rounding(alpha, moved)
        off = error * scale - np.minimum(forgiven * scale, FORGIVEN)
        self.residual = not_rounding(float(np.max(off)))

    def target(self) -> Array:
        """Where Newton's method would go."""
        return self._prior.condition(self.sites).class_alpha
