"""Laplace: a Gaussian at the posterior's mode with the curvature there (R&W section 3.4)."""

from collections.abc import Callable
from typing import Any, ClassVar

from cavity.arrays import Array
from cavity.inference.base import Method, expanded, log_joint, register
from cavity.likelihoods import Likelihood
from cavity.sites import Local, Matched, Moments, Rows, Slope


@register
class Laplace(Method):
    """Laplace's approximation: sites expanded at the mode of the posterior."""

    name: ClassVar[str] = "laplace"
    needs: ClassVar[str] = "derivatives"
    concave: ClassVar[bool] = True
    is_stationary: ClassVar[bool] = False  # its log determinant moves with the mode

    def respond(
        self, likelihood: Likelihood, rows: Rows, mean: Array, alpha: Array, lam: Array
    ) -> Matched:
        """Expand log p at the means."""
        return expanded(likelihood, rows, mean)

    def terms(self, rows: Rows, local: Local, lam: Array, moments: Moments) -> Array:
        """Return log p(y|f̂) − ½ α·f̂ row by row, R&W (3.32)."""
        return log_joint(rows, local, moments)

    def slope(self, likelihood: Likelihood, rows: Rows, local: Local, prior: Any) -> Slope:
        """Return the source ½ Σ_ii w ∂³log p: the mode, too, moves with K (R&W (5.23))."""
        d3 = likelihood.derivatives(rows.y, local.q.mean)[2]
        return Slope(source=0.5 * local.q.variance * rows.weight * d3)

    def depends(
        self, rows: Rows, local: Local, moved: Array | None
    ) -> Callable[[Likelihood], Array]:
        """Return log p + ½ Σ_ii ∂²log p, and what follows from the mode (R&W (5.23))."""
        (f, variance), shift = local.q, 0.0 if moved is None else moved

        def value(likelihood: Likelihood) -> Array:
            d1, d2, _ = likelihood.derivatives(rows.y, f)
            return rows.weight * (likelihood.log_prob(rows.y, f) + 0.5 * variance * d2 + shift * d1)

        return value
