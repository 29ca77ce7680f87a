"""The evidence with the hyperparameters integrated out, and how they would move without a row.

Near its maximum the evidence times the hyperprior is a Gaussian in θ. Its integral compares kernels
with different numbers of hyperparameters, and spreads of a hierarchical prior, on one scale. Its
covariance says by how much θ is uncertain, and so how far tuning without a row would move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from cavity.arrays import Array
from cavity.evidence.evidence import Evaluation, Evidence
from cavity.evidence.hyperpriors import Hierarchy, Hyperprior, NormalPrior
from cavity.evidence.objective import Objective
from cavity.evidence.tuning import Progress, loosened
from cavity.inference import WarmStart
from cavity.sites import Marginals

STEP = 0.02
"""Step of the differences in log hyperparameters."""
MOST_DIRECTIONS = 1000
"""Directions of hyperparameters that are looked along, each of which takes an evaluation."""
_SPREADS = np.geomspace(0.05, 4.0, 45)
_SMALLEST_SPREAD, _FIRST_SPREAD = 0.2, 1.0
"""The first spread to try beside zero is within these, whatever the approximation predicts."""
_LEAP = 3.0
"""Largest factor between a spread and the next one."""
_ROUNDS = 4
_FLAT = 1e-4
"""Least precision of a prior density: a standard deviation of 100 in log θ."""
_SETTLED = 0.15
"""A smaller change of the log spread is not followed up."""
_OPTIONS: Any = {"maxcor": 30, "ftol": 1e-7, "gtol": 1e-2}
"""The integral needs the maximum to a hundredth of a nat."""
_FARTHEST = 30.0
"""Largest coordinate of the search, in standard deviations of the prior."""


class Neighbour(NamedTuple):
    """What is kept of an evaluation near the maximum."""

    gradient: Array
    cavities: list[Any]


@dataclass(frozen=True)
class HyperPosterior:
    """The Gaussian approximation of p(θ | y) around its maximum θ̂: θ = θ̂ + D t.

    Parameters
    ----------
    evaluation : Evaluation
        At the maximum.
    prior : Hyperprior
    directions : array of shape (p, k)
        D, which spans all that the prior lets vary.
    neighbours : list of Neighbour
        What was found at one step along each direction.
    """

    evaluation: Evaluation
    prior: Hyperprior
    directions: Array
    neighbours: list[Neighbour]

    @property
    def theta(self) -> Array:
        """The maximum."""
        return self.evaluation.theta

    @cached_property
    def curvature(self) -> Array:
        """H, minus the matrix of second derivatives of the log evidence in t."""
        here = self.evaluation.gradient
        rows = [(here - there.gradient) @ self.directions / STEP for there in self.neighbours]
        H = np.array(rows).reshape(len(rows), len(rows))
        return 0.5 * (H + H.T)

    @cached_property
    def factor(self) -> Array:
        """W, with the prior's covariance W Wᵀ in t."""
        if isinstance(self.prior, NormalPrior):
            return np.linalg.lstsq(self.directions, self.prior.factor, rcond=None)[0]
        values, vectors = np.linalg.eigh(self.prior.curvature(self.theta))
        # A density that does not curve downwards here says nothing about this direction.
        return vectors / np.sqrt(np.maximum(values, _FLAT))

    @cached_property
    def whitened(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of Wᵀ H W."""
        return np.linalg.eigh(self.factor.T @ self.curvature @ self.factor)

    def covariance(self, share: float = 1.0) -> Array:
        """Return the covariance of t, given this share of the rows.

        Directions in which the evidence is convex count as flat.
        """
        values, vectors = self.whitened
        V = self.factor @ vectors
        return (V / (1.0 + share * np.maximum(values, 0.0))) @ V.T

    @cached_property
    def log_evidence(self) -> float:
        """The log evidence with θ integrated out, by Laplace's method."""
        if isinstance(self.prior, NormalPrior):
            density = -0.5 * float(np.sum(self.prior.z(self.theta) ** 2))
        else:
            density = self.prior.log_density(self.theta) + float(
                np.linalg.slogdet(self.factor)[1] + 0.5 * len(self.theta) * np.log(2.0 * np.pi)
            )
        volume = 0.5 * float(np.sum(np.log1p(np.maximum(self.whitened[0], 0.0))))
        return self.evaluation.value + density - volume

    @cached_property
    def slopes(self) -> list[Marginals]:
        """Derivatives of each cavity's mean and log variance in t, (n, k) each, by target."""
        found = []
        for i, fit in enumerate(self.evaluation.fits):
            here, others = fit.unseen, [there.cavities[i] for there in self.neighbours]
            mean = [(c.mean - here.mean) / STEP for c in others]
            log_v = [np.log(c.variance / here.variance) / STEP for c in others]
            shape = (len(others), len(here.mean))
            found.append(Marginals(*(np.reshape(a, shape).T for a in (mean, log_v))))
        return found

    def principal(self, share: float = 1.0) -> Array:
        """Return independent directions of θ, each as long as θ is uncertain along it.

        A table with this multiple of the rows is taken to be as informative as so many copies.
        """
        values, vectors = self.whitened
        scale = np.sqrt(1.0 + share * np.maximum(values, 0.0))
        return self.directions @ self.factor @ vectors / scale

    def draws(self, count: int, rng: np.random.RandomState) -> list[Array]:
        """Return random θ, in pairs on either side of the maximum."""
        V = self.principal()
        half = V @ rng.standard_normal((V.shape[1], (count + 1) // 2))
        return [self.theta + side for side in np.hstack([half, -half]).T[:count]]


def posterior_at(
    evaluation: Evaluation, prior: Hyperprior, *, full: bool = False
) -> HyperPosterior:
    """Return the Gaussian approximation around a maximum: one evaluation for each direction.

    Unless ``full``, only what the prior lets vary counts, such as the level of tied length scales.
    """
    D = np.eye(len(evaluation.theta))
    if isinstance(prior, NormalPrior) and prior.factor.shape[1] < len(D) and not full:
        D = prior.factor / np.max(np.abs(prior.factor), axis=0, initial=0.0)
    if D.shape[1] > MOST_DIRECTIONS:
        raise ValueError(
            f"The posterior of {D.shape[1]:,} hyperparameters takes an evaluation of the evidence "
            f"for each; {MOST_DIRECTIONS:,} are the most. Use a kernel with fewer, such as one "
            "length scale for all inputs, or hyperprior='hierarchical', which ties that many."
        )
    return HyperPosterior(evaluation, prior, D, [_beside(evaluation, STEP * step) for step in D.T])


def _beside(evaluation: Evaluation, step: Array) -> Neighbour:
    found = evaluation.evidence.at(evaluation.theta + step, evaluation.starts)
    return Neighbour(found.gradient, [fit.unseen for fit in found.fits])


@dataclass(frozen=True)
class Tried:
    """A spread that was tried, and its integrated log evidence."""

    spread: float
    log_evidence: float


@dataclass(frozen=True)
class Tuned:
    """Hyperparameters tuned under a hierarchical prior, and the spreads that were tried."""

    posterior: HyperPosterior
    spread: float
    tried: list[Tried]
    n_evaluations: int

    @property
    def log_evidence(self) -> float:
        """The log evidence with the hyperparameters integrated out."""
        return self.posterior.log_evidence


def integrate(evidence: Evidence, hierarchy: Hierarchy, progress: Progress | None = None) -> Tuned:
    """Maximise under a hierarchical prior, with its spread chosen by the integrated evidence.

    Parameters
    ----------
    evidence : Evidence
    hierarchy : Hierarchy
    progress : Progress, optional
    """
    found = tied(evidence, hierarchy, progress)
    return spread_out(found, hierarchy, progress) if hierarchy.has_spread else found


def tied(evidence: Evidence, hierarchy: Hierarchy, progress: Progress | None = None) -> Tuned:
    """Maximise with all length scales tied together: the hierarchy at spread zero."""
    prior = hierarchy.at(0.0)
    posterior, count = _around(evidence, prior, np.zeros(prior.factor.shape[1]), None, progress)
    return Tuned(posterior, 0.0, [Tried(0.0, posterior.log_evidence)], count)


def spread_out(start: Tuned, hierarchy: Hierarchy, progress: Progress | None = None) -> Tuned:
    """Go on from tied length scales to the best spread.

    The quadratic approximation around each maximum predicts the integral at every other spread, and
    so where to look next; a step too far is taken back half of the way. More than
    `MOST_DIRECTIONS` hyperparameters stay tied.
    """
    if len(start.posterior.theta) > MOST_DIRECTIONS:
        return start
    best, here = start, posterior_at(start.posterior.evaluation, start.posterior.prior, full=True)
    proposed = float(np.clip(_best_spread(here, hierarchy), _SMALLEST_SPREAD, _FIRST_SPREAD))
    count, tried, failures = start.n_evaluations + len(here.theta), list(start.tried), 0
    for _ in range(_ROUNDS):
        prior, evaluation = hierarchy.at(proposed), here.evaluation
        z = prior.z(evaluation.theta)
        found, more = _around(evaluation.evidence, prior, z, evaluation.starts, progress)
        count += more
        tried.append(Tried(proposed, found.log_evidence))
        if found.log_evidence > best.log_evidence:
            best, here = Tuned(found, proposed, tried, count), found
            following = _best_spread(found, hierarchy)
            following = float(np.clip(following, proposed / _LEAP, proposed * _LEAP))
        else:
            following = float(np.sqrt(proposed * max(best.spread, _SMALLEST_SPREAD)))
            failures += 1
        if failures > 1 or abs(np.log(following / proposed)) < _SETTLED:
            break
        proposed = following
    return replace(best, tried=tried, n_evaluations=count)


def _around(
    evidence: Evidence,
    prior: NormalPrior,
    z: Array,
    starts: Sequence[WarmStart] | None,
    progress: Progress | None,
) -> tuple[HyperPosterior, int]:
    """Return the posterior around the maximum found from z, and how many evaluations it took."""
    objective, bounds = Objective(loosened(evidence), progress), evidence.bounds
    objective.starts = starts

    def at(z: Array) -> tuple[float, Array]:
        free = prior.theta(z)
        theta = np.clip(free, bounds[:, 0], bounds[:, 1])
        value, slope = objective(theta, penalty=0.5 * float(z @ z))
        return value, prior.factor.T @ (slope * (theta == free)) + z

    if len(z):
        box = [(-_FARTHEST, _FARTHEST)] * len(z)
        optimize.minimize(at, z, method="L-BFGS-B", jac=True, bounds=box, options=_OPTIONS)
    else:
        at(z)
    objective.check()
    best = objective.best
    found = evidence.at(best.theta, best.starts)
    if not found.converged:
        found = evidence.at(best.theta)
    posterior = posterior_at(found, prior)
    return posterior, objective.n_evaluations + 1 + len(posterior.neighbours)


def _best_spread(posterior: HyperPosterior, hierarchy: Hierarchy) -> float:
    """Return the spread with the largest integral of the quadratic approximation."""
    values, vectors = np.linalg.eigh(posterior.curvature)
    H = (vectors * np.maximum(values, 0.0)) @ vectors.T
    found = [_predicted(posterior, H, hierarchy.at(s)) for s in _SPREADS]
    return float(_SPREADS[int(np.argmax(found))])


def _predicted(posterior: HyperPosterior, H: Array, prior: NormalPrior) -> float:
    """Return the integrated evidence under another prior, from the quadratic approximation."""
    g, F, off = posterior.evaluation.gradient, prior.factor, prior.mean - posterior.theta
    A = np.eye(F.shape[1]) + F.T @ H @ F
    z = np.linalg.solve(A, F.T @ (g - H @ off))
    move = off + F @ z
    value = posterior.evaluation.value + g @ move - 0.5 * move @ H @ move
    return float(value - 0.5 * z @ z - 0.5 * np.linalg.slogdet(A)[1])
