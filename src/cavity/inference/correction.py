"""The second-order correction of EP's evidence: the error bar that comes for free."""

from cavity.arrays import Array, matmul, namespace
from cavity.inference.base import Fit, Method
from cavity.inference.ep import EP
from cavity.sites import cavity

__all__ = ["is_plain_ep", "second_order_correction"]


def is_plain_ep(method: Method) -> bool:
    """Whether the correction is one of this method's evidence."""
    return isinstance(method, EP) and method.power == 1.0


def second_order_correction(fit: Fit) -> float:
    """Return what to add to EP's log evidence (Opper, Paquet & Winther 2013).

    EP replaces each tilted marginal by a Gaussian; the first term it drops pairs the cumulants of
    two marginals, ½ Σ_{i≠j} Σ_{l=3,4} c_li c_lj/l! (Σ_ij/(Σ_ii Σ_jj))^l. Its size tells how far
    the evidence can be trusted; added, it cuts the error several-fold.

    Parameters
    ----------
    fit : Fit
        A fit by EP (with power one).
    """
    likelihood, _, y, copies = fit.solved
    local = fit.posterior.local
    c3, c4 = likelihood.cumulants(y, cavity(local, copies))
    ratio = _ratio(fit)
    third, fourth = _pairs(ratio**3, c3, copies), _pairs(ratio**4, c4, copies)
    return float(0.5 * (third / 6.0 + fourth / 24.0))


def _ratio(fit: Fit) -> Array:
    variance = fit.posterior.local.q.variance
    return fit.posterior.covariance() / (variance[:, None] * variance[None, :])


def _pairs(weight: Array, cumulant: Array, copies: Array) -> Array:
    """Return Σ_{a≠b} c_a c_b weight_ab over all copies a, b of all examples."""
    xp = namespace(cumulant)
    total = copies * cumulant
    itself = xp.sum(copies * cumulant**2 * xp.linalg.diagonal(weight))
    return xp.sum(total * matmul(weight, total)) - itself
