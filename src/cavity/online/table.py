"""Expectation propagation over a whole table, at the basis points that one pass has chosen."""

import numpy as np

from cavity.arrays import Array, invert_lower, row_blocks
from cavity.inference import EP, Mixture, Problem, Report, WarmStart
from cavity.inference.sweeps import sweep as sweep_blocks
from cavity.likelihoods import Likelihood
from cavity.online.block import site_through_noise, solve_block
from cavity.online.posterior import BLOCK, CHUNK, OnlinePosterior, features
from cavity.priors import InducingPrior, KernelRule
from cavity.rows import MemoryBlocks, State
from cavity.sites import Marginals, Rows, Sites

_CLOSE = 1e-8
"""Change of the sites, in units of the marginals' own precision, at which sweeping stops."""


def sweep(
    rule: KernelRule,
    likelihood: Likelihood,
    posterior: OnlinePosterior,
    X: Array,
    y: Array,
    weight: Array,
    sweeps: int,
) -> tuple[OnlinePosterior, Report]:
    """Return EP's posterior and evidence of a table, after at most this many rounds.

    With a likelihood that is not log-concave they are those of its variational bound.

    The basis points are those of the given posterior, and residual variances are independent from
    example to example. The first sites are those of one pass from the prior at these basis points,
    so that what the given posterior has learned does not count twice.
    """
    if not len(posterior.Z):
        # The function is zero everywhere, so the examples are independent.
        return posterior, Report(True, 0, 0.0, "no basis points")
    prior = InducingPrior(rule, posterior.Z, invert_lower(posterior.L.copy()))
    blocks = MemoryBlocks(Rows(y, weight, X), CHUNK)
    tau, nu = (weight * part for part in _first_sites(rule, likelihood, posterior, X, y))
    first = State(blocks)
    blocks.reduce(lambda rows, *_: (Sites(tau[rows.place], nu[rows.place]), None), None, first.name)
    method = EP(tol=_CLOSE) if likelihood.concave else Mixture(tol=_CLOSE)
    fit = sweep_blocks(method, Problem(likelihood, prior, blocks), WarmStart(first), sweeps)
    V, w, _ = fit.posterior.values
    found = posterior._replace(mean=w, cov=V.T @ V, log_evidence=fit.log_evidence)
    return found, fit.report


def _first_sites(
    rule: KernelRule, likelihood: Likelihood, posterior: OnlinePosterior, X: Array, y: Array
) -> Sites:
    """Return the sites of one pass from the prior, with the basis as it is."""
    b, tau, nu = len(posterior.mean), np.empty(len(y)), np.empty(len(y))
    posterior = posterior._replace(mean=np.zeros(b), cov=np.eye(b))
    for i, j in row_blocks(len(y), BLOCK):
        rows = slice(i, j)
        own, seen = likelihood.subset(rows), features(rule, posterior, X[rows])
        noise = seen.residual + seen.noise
        block = solve_block(posterior, own, y[rows], seen._replace(residual=0 * noise, noise=noise))
        whole = Marginals(block.c.mean, block.c.variance + noise)
        tau[rows], nu[rows] = site_through_noise(own, y[rows], whole, 0.0).sites
        posterior = block.learn(posterior, j - i)
    return Sites(tau, nu)
