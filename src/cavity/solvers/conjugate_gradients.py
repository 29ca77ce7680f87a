"""Linear systems by products alone."""

from collections.abc import Callable

from cavity.arrays import Array, namespace


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
        Maximum number of products.
    precondition : callable, optional
        Maps v to M v, with M symmetric positive definite and close to A⁻¹.

    Returns
    -------
    x : array of shape (n,)
    converged : bool
    """
    x, r, p, last = namespace(b).zeros_like(b), b, 0.0, 1.0
    for _ in range(max_iter):
        if _small(weight * r, atol):
            return x, True
        z = r if precondition is None else precondition(r)
        rho = r @ z
        p = z + (rho / last) * p
        A_p = product(p)
        step = rho / (p @ A_p)
        x, r, last = x + step * p, r - step * A_p, rho
    return x, _small(weight * r, atol)


def _small(v: Array, atol: float) -> bool:
    return float(v @ v) <= atol**2
