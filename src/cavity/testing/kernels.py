"""What has to hold for a kernel before a Gaussian process can use it."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from cavity.arrays import Array
from cavity.arrays.differences import row_gradients
from cavity.kernels import Rule, rule
from cavity.testing.tools import slope


def check_kernel(
    kernel: Any, X: Array, *, rtol: float = 1e-10, gradient_rtol: float = 1e-10
) -> None:
    """Check a kernel object, and the rule by which it is computed, on some inputs.

    The matrices are symmetric and positive semidefinite; the rule agrees with the kernel's own
    ``__call__``, ``diag`` and ``eval_gradient``, for one set of inputs, for two, and for the
    diagonal; the gradient is that of the matrix, entry by entry in the order of ``theta``; noise
    is the excess of the diagonal of ``matrix(X)`` over that of ``matrix(X, X)``; gradients in the
    inputs, if these are vectors, are those of ``matrix(X, Z)`` and of ``diag(X)``, and finite where
    two inputs are equal; no argument is modified.

    Parameters
    ----------
    kernel : sklearn.gaussian_process.kernels.Kernel
        The kernel to check, a user's own or scikit-learn's.
    X : numpy.ndarray of shape (n, d), or list of n objects
        A few inputs.
    rtol : float, default 1e-10
        Tolerance between rule and kernel, relative to the largest covariance.
    gradient_rtol : float, default 1e-10
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
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        _check_inputs(r, X)


def _check_matrices(r: Rule, X: Array, rtol: float) -> None:
    K, truth = r.matrix(X), r.kernel(X)
    tolerance = rtol * np.abs(truth).max()
    assert_allclose(K, truth, rtol=0.0, atol=tolerance, err_msg="matrix(X)")
    assert_allclose(K, K.T, rtol=0.0, atol=tolerance, err_msg="matrix(X) is not symmetric")
    eigenvalues = np.linalg.eigvalsh(K)
    assert eigenvalues[0] >= -len(X) * tolerance, "matrix(X) is not positive semidefinite"
    assert_allclose(r.diag(X), np.diag(K), rtol=0.0, atol=tolerance, err_msg="diag(X)")
    Z = X[::2]
    error = np.abs(r.matrix(X, Z) - r.kernel(X, Z))
    assert np.all(error <= tolerance), f"matrix(X, Z) is off by {error.max()}"


def _check_noise(r: Rule, X: Array) -> None:
    whole, noise = r.diag(X), r.noise(X)
    # Two formulas for the same number may differ by rounding, here that of their largest term.
    tolerance = 1e-10 * np.abs(whole).max()
    truth = whole - np.diag(r.matrix(X, X))
    assert_allclose(noise, truth, rtol=0.0, atol=tolerance, err_msg="noise(X)")
    assert not np.any(noise[np.abs(truth) <= tolerance]), "noise(X) is not zero without noise"


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
    Z, G, g = X[::2], _weights(X), _weights(X)[0]
    one, two = _gradient(r, X), _gradient(r, _joined(X, Z))[: len(X), len(X) :]
    _check_vjp(r, (X, None), G, one, rtol)
    _check_vjp(r, (X, Z), np.tril(G)[:, : len(Z)], two, rtol)
    terms = g[:, None] * np.einsum("iip->ip", one)
    error = np.abs(r.vjp_diag(X, g) - terms.sum(axis=0))
    assert np.all(error <= rtol * np.abs(terms).sum(axis=0)), f"vjp_diag is off by {error}"


def _gradient(r: Rule, X: Array) -> Array:
    """Return the kernel's own gradient, whose shape it may get wrong if nothing is free."""
    p = len(r.theta)
    return r.kernel(X, eval_gradient=True)[1] if p else np.empty((len(X), len(X), 0))


def _joined(X: Array, Z: Array) -> Array:
    return X + Z if isinstance(X, list) else np.concatenate([X, Z])


def _check_vjp(
    r: Rule, inputs: tuple[Array, Array], G: Array, gradient: Array, rtol: float
) -> None:
    K, terms = r.matrix(*inputs), G[:, :, None] * gradient
    G_before, K_before = G.copy(), K.copy()
    tolerance = rtol * np.abs(terms).sum(axis=(0, 1))
    without, given = r.vjp(*inputs, G), r.vjp(*inputs, G, K)
    assert without.shape == given.shape == r.theta.shape, "vjp is not one number per entry of theta"
    error, fused = np.abs(without - terms.sum(axis=(0, 1))), np.abs(given - without)
    assert np.all(error <= tolerance), f"vjp is off by {error}"
    assert np.all(fused <= tolerance), f"vjp with K is off by {fused}"
    assert_array_equal(G, G_before, err_msg="vjp modified G")
    assert_array_equal(K, K_before, err_msg="vjp modified K")


def _check_differences(r: Rule, X: Array) -> None:
    Z, G = X[::2], _weights(X)
    F, g = np.tril(G)[:, ::2], G[0]
    _check_derivative(r, G, r.vjp(X, None, G), lambda other: other.matrix(X), "matrix(X)")
    _check_derivative(r, F, r.vjp(X, Z, F), lambda other: other.matrix(X, Z), "matrix(X, Z)")
    _check_derivative(r, g, r.vjp_diag(X, g), lambda other: other.diag(X), "diag(X)")
    _check_derivative(r, g, r.vjp_noise(X, g), lambda other: other.noise(X), "noise(X)")


def _check_derivative(
    r: Rule, weights: Array, gradient: Array, function: Callable[[Rule], Array], what: str
) -> None:
    size = np.abs(weights * function(r)).sum()
    for k, name in enumerate(r.names):
        along = np.eye(len(r.theta))[k]
        terms = weights * slope(lambda h: function(r.with_theta(r.theta + h * along)), 2e-3)  # noqa: B023
        # Differences of fourth order err by about 1e-10 of the function and its derivatives.
        tolerance = 1e-6 * np.abs(terms).sum() + 1e-9 * size
        message = f"the contraction is not the derivative of {what} in {name}"
        assert_allclose(gradient[k], terms.sum(), rtol=0.0, atol=tolerance, err_msg=message)


def _check_inputs(r: Rule, X: Array) -> None:
    rng, g = np.random.default_rng(1), _weights(X)[0]
    # Away from the inputs, where a kernel may have a kink.
    Z = X[::2] + 0.3 * np.std(X, axis=0) * rng.standard_normal(X[::2].shape)
    G = rng.standard_normal((len(X), len(Z)))

    def between(moved: Array) -> Array:
        return np.einsum("ij,ij->i", G, r.matrix(moved, Z))

    size = np.abs(G * r.matrix(X, Z)).sum(axis=1)
    _check_slopes(r.vjp_inputs(X, Z, G), between, X, size, "matrix(X, Z)")
    own = r.diag(X)
    _check_slopes(r.vjp_diag_inputs(X, g), lambda moved: g * r.diag(moved), X, g * own, "diag(X)")
    assert np.all(np.isfinite(r.vjp_inputs(X, X, np.tril(_weights(X))))), "vjp_inputs at z = x"


def _check_slopes(
    found: Array, function: Callable[[Array], Array], X: Array, size: Array, what: str
) -> None:
    assert found.shape == X.shape, "a gradient in the inputs does not have their shape"
    truth = row_gradients(function, X, 3e-4)
    # Rounding of the values, over the step, and that of the differences.
    tolerance = 1e-6 * np.abs(truth) + 1e-8 * np.abs(size)[:, None] / _spread(X)
    assert np.all(np.abs(found - truth) <= tolerance + 1e-12), (
        f"the contraction is not the derivative of {what} in the inputs: it is off by "
        f"{np.max(np.abs(found - truth))}"
    )


def _spread(X: Array) -> Array:
    found = np.std(X, axis=0)
    return np.where(found > 0.0, found, 1.0)
