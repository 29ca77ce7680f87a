"""What pairs of examples add to the averages over training sets.

The theory of single examples puts each one into the average of all others. The deviation t of an
example's precision from its average then averages to zero, and the first term that is missing is
that in which two examples i and j each deviate twice, in turn:

    ΔG_aa = Σ_{i≠j} G_ai τ_i G_ij³ τ_j G_ja,   τ_i = ⟨t_i²⟩.

It makes the average posterior variance larger: by about ten per cent if training sets are
small, and by almost nothing if nearly all examples are drawn. With Gaussian noise it also
gives the squared error: the posterior mean misses y by −G K⁻¹ y, so that the average squared error
is the slope, at ε = 0, of the average −G when K is replaced by K − ε y yᵀ. With other likelihoods
it would change the variance by less than one per cent on most data sets tried, and is not used.
"""

from typing import NamedTuple

import numpy as np

from cavity.arrays import Array, add_outer, matmul, row_blocks
from cavity.resampling.averaged import SizeSolution
from cavity.resampling.laws import Occupancy
from cavity.resampling.pool import Averages, Pool
from cavity.resampling.theories import curvature_moments
from cavity.sites import Sites

# Step of the central difference for the slope in ε, relative to G over the squared error.
_STEP = 1e-3
_BLOCK = 256
# A term of an expansion is of use if it is small. These bounds are far above the changes seen where
# it is (by 0.7 to 1.6, for single examples), ...
_DOWN, _UP = -0.5, 2.0
# ... and so is this one, for the average variance.
_MOST_CHANGE = 0.5
# What neighbours say is missed: at most 0.03 where refits agree, from 0.17 on where they do not.
_MOST_MISSED = 0.1


class PairState(NamedTuple):
    """The average G between examples, each one's cavity variance, and the strengths τ.

    τ = Var(κ) (1 + u G_c)⁴ for precisions κ = −d2 of an example in its cavity.
    """

    G: Array
    cavity: Array
    tau: Array

    def moved(self, slope: "PairState", step: float) -> "PairState":
        """Return the state at another ε, in the memory of this one's matrix."""
        for i, j in row_blocks(len(self.tau), _BLOCK):
            self.G[i:j] += step * slope.G[i:j]
        return PairState(self.G, self.cavity + step * slope.cavity, self.tau + step * slope.tau)


def with_pairs(pool: Pool, found: SizeSolution, occupancy: Occupancy) -> SizeSolution:
    """Return the averages of a Gaussian likelihood with what pairs of examples add to them."""
    state, slope = _state_and_slope(pool, found, occupancy)
    missed = _missed_by_neighbours(pool, found, state.G, occupancy) if len(pool.y) > 1 else 0.0
    (gain, held_out_gain), (error, held_out_error) = _gains_and_slopes(state, slope)
    # A small gain is added in full; no gain exceeds the prior variance.
    room = np.maximum(pool.prior.diag - found.pool.G, np.finfo(float).tiny)
    trust = 1.0 / (1.0 + np.maximum(gain, 0.0) / room)
    more = _more(pool, found.pool, trust * gain, trust * error)
    others = _more(pool, found.held_out, trust * held_out_gain, trust * held_out_error)
    change = (more.G @ pool.share) / (found.pool.G @ pool.share) - 1.0
    reliable = abs(change) < _MOST_CHANGE and missed < _MOST_MISSED
    return found._replace(pool=more, held_out=others, reliable=bool(reliable))


def _missed_by_neighbours(pool: Pool, found: SizeSolution, G: Array, occupancy: Occupancy) -> float:
    """Return by which share the held-out variance is too low, as each nearest example tells.

    In the average of all others, without the two examples i and j, the variances C of both are
    exact to average over: with s draws of j, that of i is C_ii − C_ij² s/(σ² + s C_jj).
    """
    u, g, j = found.sites.u, found.pool.G, _nearest(G)
    h = G[np.arange(len(g)), j]
    a, b = 1.0 - u * g, 1.0 - u[j] * g[j]
    det = np.maximum(a * b - u * u[j] * h**2, np.finfo(float).tiny)
    own, both, other = ((g * b + u[j] * h**2) / det, h / det, (g[j] * a + u * h**2) / det)
    noise = np.broadcast_to(np.asarray(pool.likelihood.noise_variance), g.shape)[j]
    each = zip(occupancy.s, occupancy.probability, strict=True)
    known = sum(p[j] * s / (noise + s * other) for s, p in each)
    theory = own - both**2 * u[j] / (1.0 + u[j] * other)
    exact = own - both**2 * known
    # Of many examples that are drawn as one, hardly any training set leaves out all.
    absent = 1.0 - occupancy.probability.sum(axis=0)
    weight = pool.share * np.maximum(absent, np.finfo(float).eps)
    return float(exact @ weight / (theory @ weight)) - 1.0


def _nearest(G: Array) -> Array:
    """Return the other example that each one's latent value is most correlated with."""
    scale = np.sqrt(np.diagonal(G))
    found = np.empty(len(G), dtype=int)
    for i, j in row_blocks(len(G), _BLOCK):
        correlation = np.abs(G[i:j]) / scale
        correlation[np.arange(j - i), np.arange(i, j)] = -1.0
        found[i:j] = np.argmax(correlation, axis=1)
    return found


def _more(pool: Pool, c: Averages, variance: Array, error: Array) -> Averages:
    """Add to the variance, and to the squared error (R − y)² + V."""
    before = (c.R - pool.y) ** 2 + c.V
    G = np.minimum(c.G + _bounded(variance, c.G), np.maximum(pool.prior.diag, c.G))
    return Averages(G, c.R, np.maximum(c.V + _bounded(error, before), 0.0))


def _bounded(change: Array, value: Array) -> Array:
    """Return a change of at most so much of the value; none where it is not a number."""
    return np.clip(np.where(np.isnan(change), 0.0, change), _DOWN * value, _UP * value)


def _state_and_slope(
    pool: Pool, found: SizeSolution, occupancy: Occupancy
) -> tuple[PairState, PairState]:
    """Return the state, and its slope in ε: −dG/dε is the average product of two errors."""
    c, (u, gamma, w, _) = found.held_out, found.sites
    G = pool.prior.condition(Sites(u, gamma)).covariance()
    first, second, third = curvature_moments(pool, occupancy, c)
    # G_c/G_aa: from the average with an example to that without it.
    back, variance = 1.0 + u * c.G, second - first**2
    state = PairState(G, c.G, variance * back**4)
    held_out = (c.R - pool.y) ** 2 + c.V
    errors = add_outer(matmul(G * -w, G), -1.0, found.pool.R - pool.y)
    # dκ/dε = κ² e_c, as −dG_c/dε is the held-out error e_c; du/dε = w.
    spread = 2.0 * (third - first * second) * held_out
    tau = spread * back**4 + 4.0 * variance * back**3 * (w * c.G - u * held_out)
    return state, PairState(errors, -held_out, tau)


def _gains_and_slopes(state: PairState, slope: PairState) -> tuple[Array, Array]:
    """Return ΔG and by how much pairs change the squared errors, at the pool and held out.

    The average of the two ends of the central difference is ΔG to the same order.
    """
    steep = float(np.mean(slope.cavity))
    # Without held-out errors nothing moves, and any step will do.
    step = -_STEP * float(np.mean(state.cavity)) / (steep or -1.0)
    state = state.moved(slope, step)
    above = _gains(state)
    below = _gains(state.moved(slope, -2.0 * step))
    return 0.5 * (above + below), (below - above) / (2.0 * step)


def _gains(state: PairState) -> Array:
    """Return ΔG at the pool, and at examples that are held out, as two rows.

    Without example a the average is G_ij + c G_ia G_ja, c = (G_c/g − 1)/g, and i and j are others:
    the cube of that sum goes term by term.
    """
    G, cavity, tau = state
    g = np.diagonal(G).copy()
    c = (cavity / g - 1.0) / g
    blocks = [slice(*ends) for ends in row_blocks(len(g), _BLOCK)]
    pool, held_out = np.zeros((2, len(g)))
    for k, times in enumerate((1.0, 3.0, 3.0)):
        M = _without_diagonal(_power(G, 3 - k))
        for a in blocks:
            Z = tau[:, None] * _without_diagonal(_power(G[:, a], k + 1), a.start)
            held_out[a] += times * c[a] ** k * np.einsum("ij,ij->j", Z, matmul(M, Z))
            if k == 0:
                own = 2.0 * g[a] * tau[a] * np.einsum("ij,ij->j", M[:, a], Z)
                pool[a] = held_out[a] + own
    for a in blocks:
        # The last of the four matrices is one everywhere off its diagonal.
        Z = tau[:, None] * _without_diagonal(_power(G[:, a], 4), a.start)
        held_out[a] += c[a] ** 3 * (Z.sum(axis=0) ** 2 - np.einsum("ij,ij->j", Z, Z))
    return np.stack([pool, (cavity / g) ** 2 * held_out])


def _power(A: Array, k: int) -> Array:
    """Return A^k elementwise, by products: NumPy's powers are slow from the cube on."""
    P = A.copy()
    for _ in range(k - 1):
        P *= A
    return P


def _without_diagonal(A: Array, start: int = 0) -> Array:
    """Set A[start + j, j] to zero, in place."""
    columns = np.arange(A.shape[1])
    A[start + columns, columns] = 0.0
    return A
