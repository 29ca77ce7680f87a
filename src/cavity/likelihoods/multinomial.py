"""The multinomial probit: the class is the one whose latent value plus unit noise is largest.

With u the noise of the class y itself, p(y|f) = E Π_{j≠y} Φ(f_y − f_j + u). Under f ~ N(m, V) this
is the probability that C − 1 correlated Gaussians are all positive. An expectation propagation of
its own, with one probit site for each other class, gives that.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from cavity.arrays import Array
from cavity.likelihoods.probit import Probit
from cavity.likelihoods.quadrant import log_quadrant
from cavity.sites import ClassMarginals, Marginals, Sites, contrasts, log_integral, match

_TOL, _LOOSE, _SWEEPS = 1e-11, 1e-5, 200
_EPS = float(np.finfo(float).eps)
_PROBIT = Probit()
_TINY = 1e-300
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(24)
_WEIGHTS = _WEIGHTS / np.sum(_WEIGHTS)


class Orthant(NamedTuple):
    """The probability that g + noise > 0 in all entries, and what that says about g."""

    log_z: Array
    mean: Array
    """Of g, given that."""
    covariance: Array
    sites: Sites


def class_log_proba(q: ClassMarginals, *, exact: bool = True) -> Array:
    """Return log class probabilities of shape (n, C) under Gaussians over the latent values.

    Exact for two and three classes. With more, each is found by expectation propagation before
    they are made to sum to one.

    Parameters
    ----------
    q : ClassMarginals
    exact : bool, default True
        If not, three classes are treated like more: off by about .001, and quick for all values.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods.multinomial import class_log_proba
    >>> from cavity.sites import ClassMarginals
    >>> q = ClassMarginals(np.array([[0.0, 1.0, -40.0]]), np.eye(3)[None])
    >>> class_log_proba(q).round(3).tolist()
    [[-1.176, -0.369, -280.409]]
    """
    n, C = q.mean.shape
    each = [class_log_z(np.full(n, c), q, exact=exact) for c in range(C)]
    log_p = np.stack(each, axis=1)
    top = log_p.max(axis=1, keepdims=True)
    return np.asarray(log_p - top - np.log(np.sum(np.exp(log_p - top), axis=1, keepdims=True)))


def independent_log_proba(f: Array, variance: Array) -> Array:
    """Return log class probabilities (n, C) if the values are f ± √variance, independently.

    They are averages of Π_j Φ((f_c − f_j)/sd + x) over a standard normal x, to about 1e-7; a
    quick way for very many rows. The log of a probability below 1e-300 is cut off.

    Parameters
    ----------
    f : array of shape (n, C)
    variance : array of shape (n,)
    """
    z = f / np.sqrt(1.0 + variance)[:, None]
    total = np.zeros_like(z)
    for x, weight in zip(_NODES, _WEIGHTS, strict=True):
        for c in range(z.shape[1]):
            others = np.delete(z, c, axis=1)
            total[:, c] += weight * np.prod(ndtr(z[:, c : c + 1] - others + x), axis=1)
    p = np.maximum(total, _TINY)
    return np.asarray(np.log(p / np.sum(p, axis=1, keepdims=True)))


def class_log_z(codes: Array, q: ClassMarginals, *, exact: bool = True) -> Array:
    """Return log E p(y|f) for each example; exact for up to three classes, if asked for."""
    g = differences(contrasts(codes, q.mean.shape[1]), q)
    size = g.mean.shape[1]
    if size == 1:
        c = Marginals(g.mean[:, 0], g.covariance[:, 0, 0])
        return _PROBIT.tilted(1.0, c).log_z
    if size == 2 and exact:
        return log_quadrant(g.mean, g.covariance)
    return orthant(g.mean, g.covariance, tol=_TOL if exact else _LOOSE).log_z


def differences(A: Array, q: ClassMarginals) -> ClassMarginals:
    """Return the Gaussians of A f + u with unit noise u, the same for all differences."""
    mean = (A @ q.mean[:, :, None])[:, :, 0]
    return ClassMarginals(mean, _positive(A @ q.covariance @ A.swapaxes(1, 2) + 1.0))


def _positive(G: Array) -> Array:
    """Return covariances (n, k, k), mended where rounding has left negative variances.

    Covariances of classes that nearly cancel in their differences do that under a huge prior.
    """
    try:
        np.linalg.cholesky(G)
    except np.linalg.LinAlgError:
        w, V = np.linalg.eigh(G)
        w = np.maximum(w, _EPS * np.max(w, axis=1, keepdims=True, initial=1.0))
        return (V * w[:, None, :]) @ V.swapaxes(1, 2)
    return G


def orthant(
    h: Array, G: Array, start: Sites | None = None, tol: float = _TOL, sweeps: int = _SWEEPS
) -> Orthant:
    """Return log P(g + ε > 0) for g ~ N(h, G) and standard normal ε, and the moments of g then.

    One site after the other is matched, in all examples at once, until no more changes.

    Parameters
    ----------
    h : array of shape (n, k)
    G : array of shape (n, k, k)
    start : Sites, optional
        Where to begin, for example with the sites of a similar problem.
    tol : float, default 1e-11
        Change of a site, in units of its marginal, at which it counts as matched.
    sweeps : int, default 200
        Largest number of sweeps.
    """
    tau, nu = map(np.array, start or Sites(0.0 * h, 0.0 * h))
    log_z, mean, covariance = np.zeros(len(h)), np.array(h), np.array(G)
    if start is not None:
        log_z, mean, covariance, _ = _solved(h, G, start)
    active = np.arange(len(h))
    # Under a huge prior the updates below may round a variance to less than nothing.
    floor = _EPS * np.maximum(np.diagonal(G, axis1=1, axis2=2), 1.0)
    for _ in range(sweeps):
        if not len(active):
            break
        sites = Sites(tau[active], nu[active])
        sites, change = _sweep(sites, mean[active], covariance[active], floor[active])
        now = _solved(h[active], G[active], sites)
        tau[active], nu[active] = sites
        log_z[active], mean[active], covariance[active] = now.log_z, now.mean, now.covariance
        active = active[change > tol]
    return Orthant(log_z, mean, covariance, Sites(tau, nu))


def _sweep(sites: Sites, mean: Array, S: Array, floor: Array) -> tuple[Sites, Array]:
    """Match every site once, with rank-one updates in between; return the largest changes."""
    tau, nu = sites
    largest = np.zeros(len(tau))
    for k in range(tau.shape[1]):
        own, row = np.maximum(S[:, k, k], floor[:, k]), S[:, k, :].copy()
        c = _cavity(tau[:, k], nu[:, k], mean[:, k], own)
        new = match(c, _PROBIT.tilted(1.0, c))
        d_tau, d_nu = new.tau - tau[:, k], new.nu - nu[:, k]
        changed = np.abs(d_tau) * own, np.abs(d_nu) * np.sqrt(own)
        largest = np.maximum(largest, np.maximum(*changed) / (1.0 + np.abs(mean[:, k])))
        grown = np.maximum(1.0 + d_tau * own, _EPS)
        mean = mean + ((d_nu - d_tau * mean[:, k]) / grown)[:, None] * row
        S = S - (d_tau / grown)[:, None, None] * row[:, :, None] * row[:, None, :]
        tau[:, k], nu[:, k] = new
    return Sites(tau, nu), largest


def _cavity(tau: Array, nu: Array, mean: Array, variance: Array) -> Marginals:
    rest = np.maximum(1.0 - tau * variance, _EPS)
    return Marginals((mean - variance * nu) / rest, variance / rest)


def _solved(h: Array, G: Array, sites: Sites) -> Orthant:
    """Return the posterior of g under the sites, and the evidence if they are matched."""
    tau, nu = sites
    s, eye = np.sqrt(tau), np.eye(h.shape[1])
    sG = s[:, :, None] * G
    B = eye + sG * s[:, None, :]
    S = G - sG.swapaxes(1, 2) @ np.linalg.solve(B, sG)
    pull = nu - tau * h
    move = (S @ pull[:, :, None])[:, :, 0]
    mean = h + move
    variance = np.maximum(np.diagonal(S, axis1=1, axis2=2), _EPS)
    c = _cavity(tau, nu, mean, variance)
    each = _PROBIT.tilted(1.0, c).log_z - log_integral(c, sites)
    joint = nu * h - 0.5 * tau * h * h + 0.5 * pull * move
    log_z = np.sum(each + joint, axis=1) - 0.5 * np.linalg.slogdet(B)[1]
    return Orthant(log_z, mean, S, sites)
