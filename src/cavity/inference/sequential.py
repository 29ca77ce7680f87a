"""Sequential: Bayesian online learning, each example met once (the founding paper's third way)."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from cavity.inference.base import Fit, Method, Problem, Report, Start, register
from cavity.inference.sweeps import RunningPosterior
from cavity.priors import DensePosterior

__all__ = ["Sequential"]


@register
@dataclass(frozen=True)
class Sequential(Method):
    """One sweep over the data in the order given; no inverse, no iteration.

    Parameters
    ----------
    sweeps : int
        More than one re-presents the data *without* taking old contributions out: the founding
        paper's heuristic, which counts every example several times. The evidence is that of the
        first sweep, the only one in which the examples are new. Proper removal is EP.
    """

    sweeps: int = 1

    name: ClassVar[str] = "sequential"
    needs: ClassVar[str] = "tilted"
    has_gradient: ClassVar[bool] = False

    def fit(self, problem: Problem, start: Start | None = None) -> Fit:
        """Learn the examples one by one."""
        running = RunningPosterior(problem)
        log_evidence = _sweep(running)
        for _ in range(self.sweeps - 1):
            _sweep(running)
        posterior = problem.prior.condition(running.sites)
        report = Report(True, self.sweeps, 0.0, f"{self.sweeps} sweep(s) in the order given")
        next_start = Start(posterior.alpha, problem.prior.diag)
        return Fit(problem, self, posterior, log_evidence, report, next_start)

    def solve(self, problem: Problem, start: Start | None) -> tuple[DensePosterior, Report, Start]:
        """Find the posterior."""
        found = self.fit(problem, start)
        return found.posterior, found.report, found.start

    def log_evidence(self, problem: Problem, posterior: DensePosterior) -> Any:
        """Return Σ_t log Z_t of one sweep."""
        return _sweep(RunningPosterior(problem))


def _sweep(running: RunningPosterior) -> float:
    """Present every example as often as it counts; return the summed log probabilities.

    An example of weight 2.5 is presented twice and then once through p(y|f)^½.
    """
    total = 0.0
    likelihood, _, _, copies = running.problem
    for i in range(copies.shape[0]):
        part, whole = math.modf(float(copies[i]))
        for _ in range(int(whole)):
            total += float(running.present(i, likelihood))
        if part:
            total += float(running.present(i, likelihood.power(part)))
    return total
