"""What the subpackages pass to each other: rows, marginals, sites, moments, and how they convert.

A *site* exp(ν f − τ f²/2) is the Gaussian factor that replaces one likelihood term. A *cavity* is
a posterior marginal with one copy of its own site removed. Everything here is elementwise.
"""

from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array, namespace


class Rows(NamedTuple):
    """Some examples; one entry of each array for every row."""

    y: Array
    weight: Array
    """How often a row counts."""
    X: Any = None
    """Inputs; a prior that holds its covariance as a matrix does not need them."""
    place: slice = slice(None)
    """Which rows of the whole table these are."""
    memo: Any = None
    """A `cavity.rows.Memo`, if what a prior makes of these rows may be kept for the next visit."""


class Marginals(NamedTuple):
    """One Gaussian N(mean, variance) per example."""

    mean: Array
    variance: Array


class Gradients(NamedTuple):
    """How mean and variance at each input change with it, both of shape (n, d)."""

    mean: Array
    variance: Array


class ClassMarginals(NamedTuple):
    """One Gaussian per example over the latent values of all classes."""

    mean: Array
    """Of shape (n, C)."""
    covariance: Array
    """Of shape (n, C, C)."""


class Sites(NamedTuple):
    """Natural parameters of one Gaussian site per example, summed over its copies."""

    tau: Array
    nu: Array


class Moments(NamedTuple):
    """log E p(y|f) under a Gaussian and its first two derivatives in the mean.

    For ``expected`` the same three of E log p(y|f).
    """

    log_z: Array
    d1: Array
    d2: Array


class Matched(NamedTuple):
    """Moments and the sites that belong to them."""

    moments: Moments
    sites: Sites


class Local(NamedTuple):
    """What a posterior says about each row by itself.

    ``rest`` is 1 − τ Σ, the share of the marginal's precision that is not the row's own site. It
    is passed on because it cannot be recovered from τ and Σ where the site dominates.
    """

    q: Marginals
    sites: Sites
    alpha: Array
    rest: Array
    prior: Array
    """Prior variances k(x, x)."""
    beyond: Array | float = 0.0
    """Variance on which no site acts."""


class Slope(NamedTuple):
    """How the log evidence changes with the prior covariance, row by row.

    d log Z/dK = ½ αα' − ½ precision R + ½ (vα' + αv') + diag(diagonal) + matrix, with
    R = (K + diag(1/τ))⁻¹ and v = (I + TK)⁻¹ source, the α of the same posterior under other
    sources.
    """

    precision: float = 1.0
    source: Array | None = None
    diagonal: Array | None = None
    matrix: Array | None = None
    """For priors that hold K as a matrix only."""


def other_classes(codes: Array, n_classes: int) -> Array:
    """Return the classes other than each row's own, in order, of shape (n, C − 1)."""
    k = np.arange(n_classes - 1)
    return k + (k >= np.asarray(codes)[:, None])


def contrasts(codes: Array, n_classes: int) -> Array:
    """Return the matrices A_i of shape (n, C − 1, C) with A_i f = f_y − f_j for all j ≠ y."""
    unit = np.eye(n_classes)
    return unit[np.asarray(codes)][:, None, :] - unit[other_classes(codes, n_classes)]


def cavity(local: Local, weight: Array | float = 1.0) -> Marginals:
    """Remove one copy of each example from its marginal.

    1/v = 1/Σ − τ/w and m = v (μ/Σ − ν/w), in the form that does not cancel: v = Σ/(1 − τΣ/w),
    m = μ − v α/w, for weight w.
    """
    rest = (weight - 1.0 + local.rest) / weight
    xp, q = namespace(rest), local.q
    # The largest floats are large enough.
    v = q.variance / xp.maximum(rest, q.variance * float(xp.finfo(rest.dtype).smallest_normal))
    return Marginals(q.mean - v * local.alpha / weight, v)


def match(c: Marginals, moments: Moments, weight: Array | float = 1.0) -> Sites:
    """Sites that give each cavity the mean and variance of its tilted distribution."""
    share = 1.0 + moments.d2 * c.variance
    xp = namespace(share)
    # A smaller share of the cavity's variance is rounding.
    scale = weight / xp.maximum(share, 0.0 * share + float(xp.finfo(share.dtype).eps))
    return Sites(-moments.d2 * scale, (moments.d1 - c.mean * moments.d2) * scale)


def expand(f: Array, d1: Array, d2: Array, weight: Array | float = 1.0) -> Sites:
    """Sites with the slope and curvature (d1, d2) of a log likelihood at f."""
    return Sites(-d2 * weight, (d1 - d2 * f) * weight)


def log_integral(c: Marginals, site: Sites) -> Array:
    """Return log ∫ N(f; m, v) exp(ν f − τ f²/2) df, without dividing by v."""
    (tau, nu), (m, v) = site, c
    grown = 1.0 + tau * v
    quadratic = (nu**2 * v + 2.0 * nu * m - tau * m**2) / grown
    return 0.5 * (quadratic - namespace(v).log(grown))


def moved(sites: Sites, new: Sites, step: float) -> Sites:
    """Return the sites part of the way to new ones."""
    if step == 1.0:
        return new
    return Sites(*(a + step * (b - a) for a, b in zip(sites, new, strict=True)))


def change_of_sites(new: Sites, old: Sites, variance: Array) -> float:
    """Return the largest change, in units of the marginals' own precision."""
    xp = namespace(variance)
    tau, nu = xp.abs(new.tau - old.tau), xp.abs(new.nu - old.nu)
    return float(xp.max(xp.maximum(tau * variance, nu * xp.sqrt(variance))))
