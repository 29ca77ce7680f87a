"""What has to hold for a kernel before a Gaussian process can trust it."""

from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from cavity.arrays import Array
from cavity.kernels import Rule, rule

__all__ = ["check_kernel"]


def check_kernel(
    kernel: Any, X: Array, *, rtol: float = 1e-10, gradient_rtol: float = 1e-10
) -> None:
    """Check a kernel object, and the rule by which it is computed, on some inputs.

    The matrices are symmetric and positive semidefinite; the rule agrees with the kernel's own
    ``__call__``, ``diag`` and ``eval_gradient``; the gradient is that of the matrix, entry by entry
    in the order of ``theta``; nothing that is handed in is modified.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel to check, a user's own or scikit-learn's.
    X : numpy.ndarray of shape (n, d), or list of n objects
        A few inputs.
    rtol : float
        Tolerance between rule and kernel, relative to the largest covariance.
    gradient_rtol : float
        The same for gradients, relative to the sum of the absolute values of their terms; larger
        for kernels whose own gradient is a difference quotient.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.testing import check_kernel
    >>> class Squared(RBF):
    ...     def __call__(self, X, Y=None, eval_gradient=False):
    ...         if not eval_gradient:
    ...             return super().__call__(X, Y) ** 2
    ...         K, gradient = super().__call__(X, eval_gradient=True)
    ...         return K**2, 2.0 * K[:, :, np.newaxis] * gradient
    >>> check_kernel(Squared(0.7), np.linspace(-1.0, 1.0, 12).reshape(6, 2))
    """
    r = rule(kernel)
    _check_matrices(r, X, rtol)
    _check_noise(r, X)
    _check_plumbing(r)
    _check_gradient(r, X, gradient_rtol)
    _check_differences(r, X)


def _check_matrices(r: Rule, X: Array, rtol: float) -> None:
    K, truth = r.matrix(X), r.kernel(X)
    tolerance = rtol * np.abs(truth).max()
    assert_allclose(K, truth, rtol=0.0, atol=tolerance, err_msg="matrix(X)")
    assert_allclose(K, K.T, rtol=0.0, atol=tolerance, err_msg="matrix(X) is not symmetric")
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -len(X) * tolerance, "matrix(X) is not positive semidefinite"
    assert_allclose(r.diag(X), np.diag(K), rtol=0.0, atol=tolerance, err_msg="diag(X)")
    Z = X[::2]
    assert_allclose(
        r.matrix(X, Z), r.kernel(X, Z), rtol=0.0, atol=tolerance, err_msg="matrix(X, Z)"
    )


def _check_noise(r: Rule, X: Array) -> None:
    noise = r.diag(X) - np.diag(r.matrix(X, X))
    # Two formulas for the same number may differ by rounding, here that of their largest term.
    differ = bool(np.any(np.abs(noise) > 1e-10 * np.abs(r.diag(X)).max()))
    assert r.noisy(X) == differ, "noisy(X) does not tell whether there is noise on the diagonal"


def _check_plumbing(r: Rule) -> None:
    theta = r.theta + 0.1 * np.arange(1, 1 + len(r.theta))
    other = r.with_theta(theta)
    assert_allclose(other.theta, theta, rtol=1e-12, atol=1e-12, err_msg="with_theta")
    assert_array_equal(r.theta, r.kernel.theta, err_msg="theta")
    assert type(other) is type(r), "with_theta changed the rule"
    assert r.bounds.shape == (len(theta), 2), "bounds are not one pair per entry of theta"
    assert len(set(r.names)) == len(theta), "names are not one per entry of theta"


def _weights(X: Array) -> Array:
    n = len(X)
    A = np.random.default_rng(0).standard_normal((n, n))
    return A + A.T


def _check_gradient(r: Rule, X: Array, rtol: float) -> None:
    if not len(r.theta):
        assert r.vjp(X, _weights(X)).shape == (0,), "vjp of a kernel without free hyperparameters"
        return
    G, K = _weights(X), r.matrix(X)
    G_before, K_before = G.copy(), K.copy()
    terms = G[:, :, None] * r.kernel(X, eval_gradient=True)[1]
    error = np.abs(r.vjp(X, G) - terms.sum(axis=(0, 1)))
    assert np.all(error <= rtol * np.abs(terms).sum(axis=(0, 1))), f"vjp is off by {error}"
    fused = np.abs(r.vjp(X, G, K) - r.vjp(X, G))
    assert np.all(fused <= rtol * np.abs(terms).sum(axis=(0, 1))), f"vjp with K is off by {fused}"
    assert_array_equal(G, G_before, err_msg="vjp modified G")
    assert_array_equal(K, K_before, err_msg="vjp modified K")


def _check_differences(r: Rule, X: Array) -> None:
    G = _weights(X)
    gradient, size = r.vjp(X, G), np.abs(G * r.matrix(X)).sum()
    for k, name in enumerate(r.names):
        terms = G * _difference_quotient(r, X, k)
        # Differences of fourth order err by about 1e-10 of the function and its derivatives.
        tolerance = 1e-6 * np.abs(terms).sum() + 1e-9 * size
        message = f"vjp is not the derivative of matrix(X) in {name}"
        assert_allclose(gradient[k], terms.sum(), rtol=0.0, atol=tolerance, err_msg=message)


def _difference_quotient(r: Rule, X: Array, k: int, h: float = 2e-3) -> Array:
    step = h * np.eye(len(r.theta))[k]

    def spread(s: float) -> Array:
        above, below = r.with_theta(r.theta + s * step), r.with_theta(r.theta - s * step)
        return above.matrix(X) - below.matrix(X)

    return (8.0 * spread(1.0) - spread(2.0)) / (12.0 * h)
