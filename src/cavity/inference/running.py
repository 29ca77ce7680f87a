"""One example after the other: rank-one updates of the whole posterior.

They serve EP's sequential schedule, which takes an example's old site out before it is seen again,
and the heuristic of showing old examples as if they were new.
"""

import math
from collections.abc import Iterable

from cavity.arrays import add_outer, clip, copy, namespace, put
from cavity.inference.base import Problem, site_of
from cavity.priors import DensePosterior
from cavity.sites import Local, Marginals, Sites, cavity

__all__ = ["RunningPosterior", "revisit"]

_SMALLEST_REST = 1e-12


class RunningPosterior:
    """Mean and covariance of all training latent values, kept up to date site by site."""

    def __init__(self, problem: Problem, posterior: DensePosterior | None = None) -> None:
        self.problem = problem
        if posterior is None:
            self.mean = namespace(problem.y).zeros_like(problem.prior.diag)
            self.covariance = copy(problem.prior.K)
            self.sites = problem.prior.no_sites()
        else:
            self.mean, self.covariance = posterior.mean, posterior.covariance()
            self.sites = posterior.sites

    def marginal(self, i: int) -> Marginals:
        """Return the posterior marginal of one example, as arrays of length one."""
        # Rounding may leave a variance that has shrunk by sixteen orders at zero or below.
        xp = namespace(self.mean)
        floor = float(xp.finfo(self.mean.dtype).eps) ** 2 * float(self.problem.prior.diag[i])
        variance = clip(self.covariance[i : i + 1, i], low=floor)
        return Marginals(self.mean[i : i + 1], variance)

    def add(self, i: int, change: Sites) -> None:
        """Multiply one site (τ, ν, arrays of length one) into the posterior."""
        q = self.marginal(i)
        column = copy(self.covariance[:, i])
        grown = 1.0 + change.tau * q.variance
        self.mean = self.mean + ((change.nu - change.tau * q.mean) / grown) * column
        self.covariance = add_outer(self.covariance, -float(change.tau[0] / grown[0]), column)
        index = namespace(self.mean).asarray([i])
        self.sites = Sites(
            put(self.sites.tau, index, self.sites.tau[i : i + 1] + change.tau),
            put(self.sites.nu, index, self.sites.nu[i : i + 1] + change.nu),
        )


def revisit(posterior: RunningPosterior, order: Iterable[int]) -> float:
    """Replace each example's site by the one that its cavity asks for; return the largest change.

    The change is measured in units of the marginal's own precision.
    """
    likelihood, _, y, copies = posterior.problem
    largest = 0.0
    for i in order:
        q, w = posterior.marginal(i), copies[i : i + 1]
        old = Sites(posterior.sites.tau[i : i + 1], posterior.sites.nu[i : i + 1])
        # Rounding may take a marginal below the variance that its own site allows.
        rest = clip(1.0 - old.tau * q.variance, low=_SMALLEST_REST)
        c = cavity(Local(q, old, old.nu - old.tau * q.mean, rest), w)
        own = likelihood.subset(slice(i, i + 1))
        new = site_of(own, y[i : i + 1], c, w).sites
        change = Sites(new.tau - old.tau, new.nu - old.nu)
        posterior.add(i, change)
        largest = max(largest, _size(change, q))
    return largest


def _size(change: Sites, q: Marginals) -> float:
    variance = float(q.variance[0])
    tau, nu = float(change.tau[0]), float(change.nu[0])
    return max(abs(tau) * variance, abs(nu) * math.sqrt(variance))
