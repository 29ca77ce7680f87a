"""BLAS through pointers gives SciPy's numbers, in several threads as in one."""

import numpy as np
import pytest
from scipy.linalg import blas

from cavity.arrays import side_by_side, unlocked

ORDERS = ["C", "F"]


def matrix(order, *shape):
    return np.asarray(np.random.default_rng(0).normal(size=shape), order=order)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shape", [(5, 7), (1, 3), (30, 30), (40, 2)])
@pytest.mark.parametrize("trans", [0, 1])
def test_products_are_those_of_scipy(order, shape, trans):
    """Every routine returns the bits that SciPy's own wrapper returns."""
    A, B = matrix(order, *shape), matrix(order, shape[1], 4)
    left = np.asarray(A.T, order=order) if trans else A
    found = unlocked.gemm(1.5, left, B, trans_a=trans)
    assert np.array_equal(found, blas.dgemm(1.5, left, B, trans_a=trans))
    found = unlocked.gemm(1.0, A, np.asarray(B.T, order=order), trans_b=1)
    assert np.array_equal(found, blas.dgemm(1.0, A, B.T, trans_b=1))
    for lower in (0, 1):
        found = unlocked.syrk(2.0, A, trans=trans, lower=lower)
        assert np.array_equal(found, blas.dsyrk(2.0, A, trans=trans, lower=lower))
        L = np.tril(matrix(order, shape[0], shape[0]))
        found = unlocked.trmm(-1.0, L, A, lower=lower, trans_a=trans)
        assert np.array_equal(found, blas.dtrmm(-1.0, L, A, lower=lower, trans_a=trans))
        found = unlocked.trmm(1.0, L, A.T, side=1, lower=lower, trans_a=trans)
        assert np.array_equal(found, blas.dtrmm(1.0, L, A.T, side=1, lower=lower, trans_a=trans))


def test_arguments_are_not_modified():
    """A product leaves its arguments as they are, unless it may overwrite one."""
    L, B = np.tril(matrix("F", 6, 6)), matrix("F", 6, 3)
    before = B.copy()
    unlocked.trmm(1.0, L, B, lower=1)
    assert np.array_equal(B, before)
    found = unlocked.trmm(1.0, L, B, lower=1, overwrite_b=True)
    assert found is B
    assert not np.array_equal(B, before)


def test_threads_change_nothing():
    """Products of several threads at a time are those of one after the other, in order."""
    jobs = [(np.tril(matrix("F", 60, 60)) + k, matrix("F", 60, 2000)) for k in range(6)]

    def product(L, B):
        return unlocked.syrk(1.0, unlocked.trmm(1.0, L, B, lower=1), lower=1)

    alone = [product(*job) for job in jobs]
    for found, truth in zip(side_by_side(product, jobs), alone, strict=True):
        assert np.array_equal(found, truth)
