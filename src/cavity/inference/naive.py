"""Naive mean field: cavities with the prior's variance; products with K and nothing else."""

from typing import Any, ClassVar

from cavity.arrays import Array
from cavity.inference.base import Method, register, whole_copies
from cavity.likelihoods import Likelihood
from cavity.sites import Local, Moments, Rows, Slope


@register
class Naive(Method):
    """The founding paper's second mean field theory: λ_i = K_ii.

    Means, evidence and gradient come from products with K alone. Predictive variances and
    leave-one-out probabilities use the linear-response sites and factor K + diag(1/τ) once, when
    first needed.
    """

    name: ClassVar[str] = "naive"
    needs: ClassVar[str] = "tilted"
    volume: ClassVar[bool] = False
    may_factor: ClassVar[bool] = False

    def prepare(self, likelihood: Likelihood, rows: Rows) -> tuple[Likelihood, Rows]:
        """Count no row less than once."""
        return whole_copies(*super().prepare(likelihood, rows))

    def terms(self, rows: Rows, local: Local, lam: Array, moments: Moments) -> Array:
        """Return −F = Σ log Z_i − ½ Σ_ij α_i (K_ij − δ_ij K_ii) α_j row by row; not a bound."""
        coupling = local.alpha * local.q.mean - lam * local.alpha**2 / rows.weight
        return rows.weight * moments.log_z - 0.5 * coupling

    def slope(self, likelihood: Likelihood, rows: Rows, local: Local, prior: Any) -> Slope:
        """Return the diagonal ½ w d2: −F is stationary in α, so only K's own slope counts."""
        d2 = self.moments(likelihood, rows, local).d2
        return Slope(precision=0.0, diagonal=0.5 * rows.weight * d2)
