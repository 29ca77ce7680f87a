"""Conjugate gradients solve by products alone."""

import numpy as np
import pytest

from cavity.arrays import namespace
from cavity.solvers.conjugate_gradients import conjugate_gradients


def system(n, condition, seed=0):
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A = (Q * np.geomspace(1.0, condition, n)) @ Q.T
    return A, rng.normal(size=n)


def solve(product, b, *, rtol, max_iter=500, precondition=None):
    """Solve to a share of the right side's norm, every equation counted alike."""
    xp = namespace(b)
    return conjugate_gradients(
        product,
        b,
        weight=xp.ones_like(b),
        atol=rtol * float(xp.sqrt(xp.sum(b * b))),
        max_iter=max_iter,
        precondition=precondition,
    )


@pytest.mark.parametrize("condition", [1.0, 1e2, 1e4])
def test_solves(condition):
    """The answer is that of a direct solve."""
    A, b = system(30, condition)
    x, converged = solve(lambda v: A @ v, b, rtol=1e-13)
    assert converged
    # The error is at most the residual times the condition number.
    np.testing.assert_allclose(x, np.linalg.solve(A, b), rtol=1e-12 * condition, atol=1e-12)


@pytest.mark.parametrize("rtol", [1e-1, 1e-3, 1e-6])
def test_reaches_the_residual_asked_for(rtol):
    """It stops at the first residual below the tolerance, not long after it."""
    A, b = system(40, 1e3)
    x, converged = solve(lambda v: A @ v, b, rtol=rtol)
    assert converged
    residual = np.linalg.norm(b - A @ x) / np.linalg.norm(b)
    assert 1e-3 * rtol < residual <= rtol * (1.0 + 1e-6)


def test_weights_count_the_equations():
    """The weighted residual is what is made small; equations without weight may stay open."""
    A, b = np.diag([1.0, 10.0, 300.0]), np.ones(3)
    for weight in (np.array([1.0, 0.0, 0.0]), np.array([1.0, 1e-3, 1e3])):
        x, converged = conjugate_gradients(
            lambda v: A @ v, b, weight=weight, atol=1e-8, max_iter=10
        )
        assert converged
        # The residual that is updated and the one that is recomputed differ by rounding.
        assert np.linalg.norm(weight * (b - A @ x)) <= 1e-8 + 1e-12


def test_stops_at_the_budget():
    """No more products are formed than allowed, and the end says so."""
    A, b = system(40, 1e6)
    calls = []

    def product(v):
        calls.append(1)
        return A @ v

    x, converged = solve(product, b, rtol=1e-14, max_iter=7)
    assert len(calls) == 7
    assert not converged
    # Conjugate gradients lower ½ xᵀAx − bᵀx, the residual only in the end.
    assert 0.5 * x @ A @ x - b @ x < 0.0


def test_zero_right_side():
    """Nothing to solve costs nothing and divides by nothing."""

    def product(v):
        raise AssertionError("a product was formed")

    x, converged = solve(product, np.zeros(3), rtol=1e-6)
    assert converged
    np.testing.assert_array_equal(x, np.zeros(3))


def test_few_distinct_eigenvalues_need_few_products():
    """With k distinct eigenvalues k products are enough."""
    d = np.repeat([1.0, 5.0, 100.0], 10)
    b = np.random.default_rng(0).normal(size=30)
    x, converged = solve(lambda v: d * v, b, rtol=1e-12, max_iter=3)
    assert converged
    np.testing.assert_allclose(x, b / d, rtol=1e-10)


@pytest.mark.parametrize(("shift", "products"), [(0.0, 1), (0.1, 12)])
def test_a_good_preconditioner_saves_products(shift, products):
    """The inverse itself needs one product, the inverse of a neighbour few; the answer stays."""
    A, b = system(40, 1e6)
    M = np.linalg.inv(A + shift * np.diag(np.linspace(0.0, 1.0, 40)))
    x, converged = solve(
        lambda v: A @ v, b, rtol=1e-8, max_iter=products, precondition=lambda v: M @ v
    )
    assert converged
    # The residual asked for, seen through the smallest eigenvalue, which is one.
    assert np.linalg.norm(x - np.linalg.solve(A, b)) <= 1e-7 * np.linalg.norm(b)


@pytest.mark.parametrize("library", ["array_api_strict", "array_api_compat.torch"])
def test_other_array_libraries(library):
    """The same iterates come from any array library."""
    pytest.importorskip("torch" if "torch" in library else library)
    xp = pytest.importorskip(library)
    A, b = system(10, 50.0)
    A_xp = xp.asarray(A)
    x, _ = solve(lambda v: A_xp @ v, xp.asarray(b), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(x), np.linalg.solve(A, b), rtol=1e-9)
