"""Linear systems by products alone."""

from collections.abc import Callable

from cavity.arrays import Array, namespace

__all__ = ["conjugate_gradients"]


def conjugate_gradients(
    product: Callable[[Array], Array], b: Array, *, rtol: float, max_iter: int
) -> Array:
    """Solve A x = b for a symmetric positive definite A that is known by its products.

    Parameters
    ----------
    product : callable
        Maps v to A v.
    b : array of shape (n,)
    rtol : float
        Stop when the residual's norm is this share of b's.
    max_iter : int
        The most products to form.
    """
    xp = namespace(b)
    x, r, p = xp.zeros_like(b), b, b
    square = xp.sum(r * r)
    stop = rtol**2 * float(square)
    for _ in range(max_iter):
        if float(square) <= stop:
            break
        A_p = product(p)
        step = square / xp.sum(p * A_p)
        x = x + step * p
        r = r - step * A_p
        last, square = square, xp.sum(r * r)
        p = r + (square / last) * p
    return x
