"""An inference method outside the package: Laplace after one Newton step."""

from typing import ClassVar

from cavity.inference import Method
from cavity.inference.base import expanded, register
from cavity.inference.self_consistent import one_step


@register
class ToyOneStep(Method):
    """Sites expanded at the prior's mean."""

    name: ClassVar[str] = "toy_one_step"
    needs: ClassVar[str] = "derivatives"

    def respond(self, likelihood, rows, mean, alpha, lam):
        return expanded(likelihood, rows, 0.0 * mean)

    def terms(self, rows, local, lam, moments):
        return rows.weight * moments.log_z + 0.5 * local.sites.nu * local.q.mean

    def has_slopes(self, likelihood):
        # The sites are those of the prior's mean: the evidence is not stationary in them.
        return not len(likelihood.theta)

    def driver(self, problem):
        return one_step if problem.prior.dense else super().driver(problem)
