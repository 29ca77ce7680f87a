"""Averages over training sets of one size: the fixed point that both theories share.

The averages give each example's cavity, a theory turns the cavities into effective sites, and the
sites give the averages: G = (K⁻¹ + diag u)⁻¹, R = G γ, V_i = Σ_j G_ij² w_j.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, add_to_diagonal, namespace, put, symmetric_product
from cavity.priors import DensePosterior, DensePrior
from cavity.resampling.pool import Averages, EffectiveSites, Pool
from cavity.resampling.theories import Theory
from cavity.sites import Sites, cavity
from cavity.solvers import contraction, solve

# First-order steps after a factorisation: at most this many, or until this share of the change
# remains. Without them ten sizes take 1.3 (Pima) to 3 times (crabs) as many factorisations.
_STEPS, _ENOUGH = 3, 0.05
_SHORTEST, _LONGEST = 0.1, 1.5
_TINY = float(np.finfo(float).tiny)
# The first order is not used beyond this change of the cavities ...
_FAR_OFF = 1.0
# ... nor for a larger change of a log variance.
_FARTHEST = 2.0
# A squared error of this share of the squared targets is rounding.
_ROUNDING = 1e-16
# Where so many iterations bring no smaller residual and it is still above this, whole steps go back
# and forth about the solution, and it is sought from their middle. So it was for ten of 653 random
# pools under wide priors, and four to seven iterations from there found all of them.
_PATIENCE, _SOON, _NEAR = 25, 8, 0.1
# An iteration is never assumed to contract faster than this.
_FASTEST = 0.05


class OthersSquares:
    """Σ_ij² off the diagonal, for products.

    Σ_ij = −[B⁻¹]_ij/(s_i s_j), except where a site is almost empty.

    Parameters
    ----------
    posterior : DensePosterior
    """

    def __init__(self, posterior: DensePosterior) -> None:
        B = posterior.B_inverse()
        xp = namespace(B)
        self._posterior = posterior
        self._u = xp.where(posterior.cancels, 1.0, posterior.sites.tau)
        B *= B
        self._B = add_to_diagonal(B, -xp.linalg.diagonal(B))

    def product(self, w: Array) -> Array:
        """Return Σ_{j≠i} Σ_ij² w_j for each i."""
        xp = namespace(w)
        cancels = self._posterior.cancels
        total = symmetric_product(self._B, xp.where(cancels, 0.0, w / self._u)) / self._u
        weak = xp.nonzero(cancels)[0]
        return self._with_weak(total, weak, w) if weak.shape[0] else total

    def _with_weak(self, total: Array, weak: Array, w: Array) -> Array:
        """Add what the weakest sites give to the others, and set what they receive."""
        xp = namespace(w)
        q = self._posterior
        squares = q.cross_covariance(xp.take(q.prior.K, weak, axis=0)) ** 2
        own = xp.take(q.local().q.variance, weak) ** 2 * xp.take(w, weak)
        total = total + squares @ xp.take(w, weak)
        return put(total, weak, squares.T @ w - own)


class AveragedPosterior:
    """Averages under given effective sites.

    If the response of the inference differs from its own variance, predictions and their spread
    follow from the response χ = (K⁻¹ + diag u_χ)⁻¹ instead of G. ``pool`` are the averages with
    each example's own site, ``held_out`` those without it.
    """

    def __init__(self, prior: DensePrior, sites: EffectiveSites) -> None:
        self.prior, self.sites = prior, sites
        # First, so that its matrix is freed before the other's is made.
        u, gamma, _, u_chi = sites
        with_u = None if u_chi is None else prior.condition(Sites(u, gamma)).local()
        self._posterior = prior.condition(Sites(sites.response, sites.gamma))
        self._local = local = self._posterior.local()
        self._squares = OthersSquares(self._posterior)
        (R, chi), c = local.q, cavity(local)
        others = self._squares.product(sites.w)
        V, V_c = others + chi**2 * sites.w, others / local.rest**2
        self.pool, self.held_out = Averages(chi, R, V), Averages(c.variance, c.mean, V_c)
        if with_u is not None:
            self.pool = Averages(with_u.q.variance, R, V, chi)
            self.held_out = Averages(cavity(with_u).variance, c.mean, V_c, c.variance)

    def first_order(self, sites: EffectiveSites) -> Averages:
        """Return the cavities under other sites, to first order.

        With G_ij/(1 − u_i G_ii) the response of example i's cavity to example j, δG_i =
        −Σ_j G_ij² δu_j and δR_i = Σ_j G_ij (δγ_j − R_j δu_j), both without example i.
        """
        local, c = self._local, self.held_out
        du = sites.response - self.sites.response
        fall = self._squares.product(du) / local.rest**2
        grow = np.exp(np.clip(-fall / c.response, -_FARTHEST, _FARTHEST))
        push = sites.gamma - self.sites.gamma - local.q.mean * du
        reply = self._posterior.under(Sites(du, push)).mean - local.q.variance * push
        # The responses between two examples change about as much as their variances do.
        V = grow**2 * self._squares.product(sites.w) / local.rest**2
        chi = None if c.chi is None else c.chi * grow
        return Averages(c.G * grow, c.R + reply / local.rest + local.alpha * fall, V, chi)


class SizeSolution(NamedTuple):
    """Averages over random training sets of one size, and how they were found.

    ``pool`` is over all training sets, ``held_out`` over those that an example is not in. They are
    not ``reliable`` if a correction that should be small is large.
    """

    pool: Averages
    held_out: Averages
    sites: EffectiveSites
    converged: bool
    n_iter: int
    residual: float
    reliable: bool = True

    def at(self, prior: DensePrior, K_star: Array, prior_variance: Array) -> Averages:
        """Return the averages at m new inputs, from their (m, n) covariances with the pool's."""
        u, gamma, w, u_chi = self.sites
        posterior = prior.condition(Sites(self.sites.response, gamma))
        q = posterior.predict(K_star, prior_variance)
        V = w @ posterior.cross_covariance(K_star) ** 2
        if u_chi is None:
            return Averages(q.variance, q.mean, V)
        with_u = prior.condition(Sites(u, gamma)).predict(K_star, prior_variance)
        return Averages(with_u.variance, q.mean, V, q.variance)


def prior_cavities(prior: DensePrior) -> Averages:
    """Return the cavities before anything is learned."""
    zero = np.zeros_like(prior.diag)
    return Averages(prior.diag, zero, zero)


def pack(c: Averages, scale: Array) -> Array:
    """Return averages as one vector without dimension; ``scale`` are the prior variances."""
    return np.concatenate([np.log(c.G), np.log(c.response), c.R / np.sqrt(scale), c.V / scale])


def unpack(x: Array, scale: Array) -> Averages:
    """Return the averages that a vector holds."""
    log_G, log_chi, R, V = x.reshape(4, -1)
    # Extrapolation may overshoot; neither variance can be below zero, nor G above the prior's.
    G, chi = (np.minimum(np.exp(log), scale) for log in (log_G, log_chi))
    return Averages(G, R * np.sqrt(scale), np.maximum(V, 0.0) * scale, chi)


def largest_change(a: Averages, b: Averages) -> float:
    """Return the largest change.

    Of a log variance, of a mean in standard deviations, of a spread relative to the variance.
    """
    size = a.G + a.V
    changes = [
        np.abs(np.log(a.G / b.G)),
        np.abs(np.log(a.response / b.response)),
        np.abs(a.R - b.R) / np.sqrt(size),
        np.abs(a.V - b.V) / size,
    ]
    return float(np.max(changes))


def _change_of(pool: Pool) -> Callable[[Averages, Averages], float]:
    """Return the largest change of cavities, and of the squared errors if they are exact.

    Under wide priors a squared error may be far below the variance, and so below its tolerance.
    """
    if not pool.likelihood.quadratic:
        return largest_change
    rounding = _ROUNDING * float(pool.y**2 @ pool.share) + _TINY

    def change(a: Averages, b: Averages) -> float:
        before, after = (float(((c.R - pool.y) ** 2 + c.V) @ pool.share) for c in (a, b))
        return max(largest_change(a, b), abs(before - after) / (after + rounding))

    return change


def left_over(change: Callable[[Any, Any], float], point: Any, last: Any) -> float:
    """Return the share of the last change of cavities that is still to come."""
    if last is None:
        return 1.0
    moved = change(point.cavities, last.cavities)
    return max(_FASTEST, contraction(moved, change(point.held_out, last.held_out)))


class AveragesPoint:
    """Cavities, and the averages under the effective sites that they lead to.

    The cavities that the sites give back are closer to the solution, by the factor at which the
    iteration contracts; the residual is theirs. ``last`` is the point before.
    """

    def __init__(
        self,
        theory: Theory,
        cavities: Averages,
        posterior: AveragedPosterior,
        last: "AveragesPoint | None",
        change: Callable[[Averages, Averages], float],
    ) -> None:
        self.cavities, self.sites = cavities, posterior.sites
        self.pool, self.held_out = posterior.pool, posterior.held_out
        self._theory, self._posterior = theory, posterior
        self._change = change(self.held_out, cavities)
        self.residual = self._change * left_over(change, self, last)
        # From the prior, residuals may grow on the way to the solution: nothing is rejected unless
        # it is not a number.
        self.merit = 0.0 if np.isfinite(self.residual) else -np.inf

    def target(self) -> Array:
        """Return the cavities found, moved on by first-order steps if these can be trusted."""
        found, posterior = self.held_out, self._posterior
        # Free its matrices before those of the next point are made.
        del self._posterior
        scale = posterior.prior.diag
        x, last, step = pack(found, scale), None, 1.0
        for _ in range(_STEPS if self._change <= _FAR_OFF else 0):
            c = unpack(x, scale)
            found = posterior.first_order(self._theory(c))
            if largest_change(found, c) <= _ENOUGH * self._change:
                break
            move = pack(found, scale) - x
            if last is not None:
                # How much of it to make, from how it differs from the last one (Aitken). Whole
                # moves do not contract under wide priors: wine needs ten times the factorisations.
                turn = move - last
                length = -step * float(last @ turn) / max(float(turn @ turn), _TINY)
                step = min(max(length, _SHORTEST), _LONGEST)
            x, last = x + step * move, move
        return pack(found, scale)


def solve_averages(
    pool: Pool, theory: Theory, start: Averages, *, tol: float, max_iter: int
) -> SizeSolution:
    """Return the averages over random training sets that a theory is consistent with.

    From the cavities ``start``, until the log variances, the means in standard deviations and the
    spread relative to the variance change by less than ``tol``.
    """
    scale, change = pool.prior.diag, _change_of(pool)
    last: AveragesPoint | None = None

    def evaluate(x: Array) -> AveragesPoint:
        nonlocal last
        c = unpack(x, scale)
        point = AveragesPoint(theory, c, AveragedPosterior(pool.prior, theory(c)), last, change)
        # A value that is not a number says nothing about the contraction.
        last = point if np.isfinite(point.residual) else last
        return point

    run, patience = partial(solve, evaluate, tol=tol), max(_PATIENCE, max_iter // 8)
    found = run(pack(start, scale), max_iter=max_iter, patience=patience)
    n_iter = found.n_iter
    if found.residual > tol and n_iter < max_iter:
        near, x = found.residual <= _NEAR, found.x
        x = x if near else 0.5 * (x + pack(found.state.held_out, scale))
        found = run(x, max_iter=max_iter - n_iter, patience=None if near else _SOON)
        n_iter += found.n_iter
    end, how = found.state, (found.converged, n_iter, found.residual)
    return SizeSolution(end.pool, end.held_out, end.sites, *how)
