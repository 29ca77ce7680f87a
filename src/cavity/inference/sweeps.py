"""One example after the other: rank-one updates of the whole posterior.

The same sweep serves the sequential method, which meets each example once, and EP's sequential
schedule, which takes an example's old site out before it is seen again.
"""

import math
from collections.abc import Iterable

from cavity.arrays import Array, add_outer, copy, namespace, put
from cavity.inference.base import Problem
from cavity.likelihoods import Likelihood
from cavity.sites import Local, Marginals, Sites, cavity, match

__all__ = ["RunningPosterior", "revisit"]


class RunningPosterior:
    """Mean and covariance of all training latent values, kept up to date site by site."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.mean = copy(namespace(problem.y).zeros_like(problem.prior.diag))
        self.covariance = copy(problem.prior.K)
        self.sites = problem.prior.no_sites()

    def marginal(self, i: int) -> Marginals:
        """Return the posterior marginal of one example, as arrays of length one."""
        # Rounding may leave a variance that has shrunk by sixteen orders at zero or below.
        xp = namespace(self.mean)
        floor = float(xp.finfo(self.mean.dtype).eps) ** 2 * float(self.problem.prior.diag[i])
        variance = xp.clip(self.covariance[i : i + 1, i], min=floor)
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

    def present(self, i: int, likelihood: Likelihood) -> Array:
        """Learn one example as new; return its log predictive probability (ADF)."""
        q = self.marginal(i)
        moments = likelihood.tilted(self.problem.y[i : i + 1], q)
        self.add(i, match(q, moments))
        return moments.log_z[0]


def revisit(posterior: RunningPosterior, order: Iterable[int]) -> float:
    """Replace each example's site by the one that its cavity asks for; return the largest change.

    The change is measured in units of the marginal's own precision.
    """
    likelihood, _, y, copies = posterior.problem
    largest = 0.0
    for i in order:
        q, w = posterior.marginal(i), copies[i : i + 1]
        old = Sites(posterior.sites.tau[i : i + 1], posterior.sites.nu[i : i + 1])
        local = Local(q, old, old.nu - old.tau * q.mean, 1.0 - old.tau * q.variance)
        c = cavity(local, w)
        new = match(c, likelihood.tilted(y[i : i + 1], c), w)
        change = Sites(new.tau - old.tau, new.nu - old.nu)
        posterior.add(i, change)
        largest = max(largest, _size(change, q))
    return largest


def _size(change: Sites, q: Marginals) -> float:
    variance = float(q.variance[0])
    tau, nu = float(change.tau[0]), float(change.nu[0])
    return max(abs(tau) * variance, abs(nu) * math.sqrt(variance))
