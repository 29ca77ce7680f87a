"""How predictions change with the inputs: gradients of a posterior's mean and variance.

The mean is k(x, Z) a and the variance k(x, x) less a quadratic form of k(x, Z), with Z the rows or
the inducing points. Their gradients are contractions that kernel rules do without a tensor.
"""

from typing import Any

from cavity.arrays import Array, lower_product, namespace


def mean_gradient(posterior: Any, X: Array) -> Array:
    """Return the gradient of the posterior mean at new inputs, of their shape."""
    prior = posterior.prior
    if prior.dense:
        a = posterior.alpha
    else:
        # The mean is p w with p = k(x, Z) W'.
        a = lower_product(prior.W, posterior.values.w, transpose=True)
    G = namespace(X).zeros_like(X[:, :1]) + a[None, :]
    return prior.rule.vjp_inputs(X, prior.points, G)


def variance_gradient(posterior: Any, X: Array, cross: Array) -> Array:
    """Return the gradient of the posterior variance; ``cross`` is what predictions are made of."""
    prior, xp = posterior.prior, namespace(X)
    if prior.dense:
        # k(x, x) − k*' R k*, R = S B⁻¹ S.
        s = xp.sqrt(posterior.sites.tau)[:, None]
        half = -s * posterior.solve(s * cross.T)
    else:
        # k(x, x) − |p|² + p' A⁻¹ p.
        half = lower_product(prior.W, posterior.values.solve(cross.T) - cross.T, transpose=True)
    own = prior.rule.vjp_diag_inputs(X, xp.ones_like(X[:, 0]))
    return own + prior.rule.vjp_inputs(X, prior.points, 2.0 * half.T)
