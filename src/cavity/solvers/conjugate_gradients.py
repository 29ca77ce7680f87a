"""Linear systems by products alone."""

from collections.abc import Callable

from cavity.arrays import Array, namespace

__all__ = ["conjugate_gradients"]


def conjugate_gradients(
    product: Callable[[Array], Array],
    b: Array,
    *,
    weight: Array,
    atol: float,
    max_iter: int,
    precondition: Callable[[Array], Array] | None = None,
) -> tuple[Array, bool]:
    """Solve A x = b for a symmetric positive definite A that is known by its products.

    Parameters
    ----------
    product : callable
        Maps v to A v.
    b : array of shape (n,)
    weight : array of shape (n,)
    atol : float
        Stop when the norm of weight ∘ (b − A x) is at most this.
    max_iter : int
        The most products to form.
    precondition : callable, optional
        Maps v to M v, with M symmetric positive definite and close to A⁻¹.

    Returns
    -------
    x : array of shape (n,)
    converged : bool
    """
    x, r = namespace(b).zeros_like(b), b
    z = r if precondition is None else precondition(r)
    p, rho = z, r @ z
    for _ in range(max_iter):
        if _square(weight * r) <= atol**2:
            return x, True
        A_p = product(p)
        step = rho / (p @ A_p)
        x = x + step * p
        r = r - step * A_p
        z = r if precondition is None else precondition(r)
        last, rho = rho, r @ z
        p = z + (rho / last) * p
    return x, _square(weight * r) <= atol**2


def _square(v: Array) -> float:
    return float(v @ v)
