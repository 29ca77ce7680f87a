"""The second-order correction of EP's evidence, which is also its error bar."""

from cavity.arrays import Array, matmul, namespace
from cavity.inference.problem import Fit
from cavity.sites import cavity


def second_order_correction(fit: Fit) -> float:
    """Return what to add to EP's log evidence (Opper, Paquet & Winther 2013).

    EP replaces each tilted marginal by a Gaussian; the first term it drops pairs the cumulants of
    two marginals, ½ Σ_{i≠j} Σ_{l=3,4} c_li c_lj/l! (Σ_ij/(Σ_ii Σ_jj))^l. Its size
    shows how accurate the evidence is; adding it cuts the error several-fold.

    Parameters
    ----------
    fit : Fit
        A fit by EP (with power one).
    """
    likelihood, rows = fit.method.prepare(fit.problem.likelihood, fit.problem.rows)
    posterior, index, copies = fit.posterior.separate()
    y, weight = rows.y[index], rows.weight[index] / copies
    local = posterior.local()
    c3, c4 = likelihood.cumulants(y, cavity(local, weight))
    variance = local.q.variance
    ratio = posterior.covariance() / (variance[:, None] * variance[None, :])
    third, fourth = _pairs(ratio**3, c3, weight), _pairs(ratio**4, c4, weight)
    return float(0.5 * (third / 6.0 + fourth / 24.0))


def _pairs(ratio: Array, cumulant: Array, weight: Array) -> Array:
    """Return Σ_{a≠b} c_a c_b ratio_ab over all copies a, b of all examples."""
    xp = namespace(cumulant)
    total = weight * cumulant
    itself = xp.sum(weight * cumulant**2 * xp.linalg.diagonal(ratio))
    return xp.sum(total * matmul(ratio, total)) - itself
