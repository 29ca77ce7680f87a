"""Triangular matrices by matrix products."""

import numpy as np
import pytest

from cavity.arrays.blocked import gram_lower_blocked, invert_lower_blocked


def lower(n):
    rng = np.random.default_rng(n)
    return np.tril(rng.normal(size=(n, n))) + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 4, 5, 23, 64])
def test_inverse(n):
    """The inverse is the inverse, in the memory of the factor."""
    L = lower(n)
    work = L.copy()
    found = invert_lower_blocked(work, np.linalg.inv, small=4)
    assert found is work
    # Well conditioned: a few roundings.
    np.testing.assert_allclose(found @ L, np.eye(n), atol=1e-13)


@pytest.mark.parametrize("n", [1, 4, 5, 23, 64])
def test_gram(n):
    """The lower triangle is that of Lᵀ L."""
    L = lower(n)
    found = gram_lower_blocked(L.copy(), small=4)
    np.testing.assert_allclose(np.tril(found), np.tril(L.T @ L), rtol=1e-13, atol=1e-12)


def test_torch_views_write_through():
    """PyTorch blocks larger than the smallest are inverted and multiplied in place, too."""
    torch = pytest.importorskip("torch")
    L = lower(50)
    for work in (torch.tensor(L), torch.tensor(L.T.copy()).T):
        found = invert_lower_blocked(work, torch.linalg.inv, small=8)
        np.testing.assert_allclose(found.numpy() @ L, np.eye(50), atol=1e-13)
    found = gram_lower_blocked(torch.tensor(L), small=8).numpy()
    np.testing.assert_allclose(np.tril(found), np.tril(L.T @ L), rtol=1e-13, atol=1e-12)
