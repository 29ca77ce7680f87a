"""Every array library gives the answer of plain NumPy."""

import mpmath
import numpy as np
import pytest

from cavity import arrays
from cavity.arrays import NotPositiveDefiniteError, accelerators, special, to_numpy
from cavity.arrays.lapack import mirror_lower

N = 7
# Well-conditioned matrices of size 7: a few dozen roundings of numbers of order one.
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


def numpy_c(x):
    return np.array(x, order="C")


def numpy_f(x):
    return np.array(x, order="F")


def strict(x):
    return pytest.importorskip("array_api_strict").asarray(np.array(x))


def torch(x):
    # Looked up here: the tests run without PyTorch, too.
    return pytest.importorskip("torch").asarray(np.array(x))


@pytest.fixture(params=[numpy_c, numpy_f, strict, torch])
def make(request):
    """Make an array of one of the libraries from NumPy's."""
    return request.param


@pytest.fixture
def A():
    """A symmetric positive definite matrix."""
    M = np.random.default_rng(0).normal(size=(N, N))
    return M @ M.T + N * np.eye(N)


@pytest.fixture
def L(A):
    """A lower triangle with zeros above it."""
    return np.linalg.cholesky(A)


@pytest.fixture
def v():
    """A vector."""
    return np.random.default_rng(1).normal(size=N)


def same(got, truth):
    np.testing.assert_allclose(to_numpy(got), truth, **CLOSE)


def test_cholesky(make, A, L):
    """The factor is lower triangular, with zeros above, and reproduces the matrix."""
    same(arrays.cholesky(make(A)), L)


def test_cholesky_refuses(make, A):
    """A matrix that is not positive definite is an error of one kind on every library."""
    A[2, 2] = -1.0
    with pytest.raises(NotPositiveDefiniteError):
        arrays.cholesky(make(A))


def test_error_is_a_linalg_error():
    """Whoever catches NumPy's error catches ours."""
    assert issubclass(NotPositiveDefiniteError, np.linalg.LinAlgError)


def test_invert_lower(make, L):
    """The inverse of a lower triangle is one, zeros above included."""
    same(arrays.invert_lower(make(L)), np.linalg.inv(L))


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_invert_lower_of_any_size(make, n):
    """Halved or not, the inverse times L is the identity, and L's memory is used."""
    L = np.tril(np.random.default_rng(6).normal(size=(n, n))) / n + np.eye(n)
    np.testing.assert_allclose(to_numpy(arrays.invert_lower(make(L))) @ L, np.eye(n), atol=1e-12)


def triangle(n):
    """A well-conditioned lower triangle."""
    return np.tril(np.random.default_rng(n).normal(size=(n, n))) + n * np.eye(n)


def minus_product(C, B, A):
    return -(C @ (B @ A))


@pytest.mark.parametrize("n", [1, 4, 5, 23, 64])
def test_inverse_by_halves(n):
    """The inverse is the inverse, in the memory of the factor."""
    L = triangle(n)
    work = L.copy()
    found = accelerators.invert_halves(work, np.linalg.inv, minus_product, small=4)
    assert found is work
    # Well conditioned: a few roundings.
    np.testing.assert_allclose(found @ L, np.eye(n), atol=1e-13)


@pytest.mark.parametrize("n", [1, 4, 5, 23, 64])
def test_gram_by_halves(n):
    """Lᵀ L comes whole, in the memory of L."""
    L = triangle(n)
    work = L.copy()
    found = accelerators.lower_gram(work, small=4)
    assert found is work
    np.testing.assert_allclose(found, L.T @ L, rtol=1e-13, atol=1e-12)


def test_torch_views_write_through():
    """PyTorch blocks larger than the smallest are inverted and multiplied in place, too."""
    torch = pytest.importorskip("torch")
    L = triangle(50)
    for work in (torch.tensor(L), torch.tensor(L.T.copy()).T):
        found = accelerators.invert_halves(work, torch.linalg.inv, minus_product, small=8)
        np.testing.assert_allclose(found.numpy() @ L, np.eye(50), atol=1e-13)
    found = accelerators.lower_gram(torch.tensor(L), small=8).numpy()
    np.testing.assert_allclose(found, L.T @ L, rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("n", [1, N, 300])
def test_lower_gram(make, n):
    """Lᵀ L comes whole, both triangles, also where it is filled in blocks."""
    L = np.tril(np.random.default_rng(2).normal(size=(n, n)))
    np.testing.assert_allclose(
        to_numpy(arrays.lower_gram(make(L))), L.T @ L, rtol=1e-11, atol=1e-11
    )


@pytest.mark.parametrize("n", [1, N, 300])
def test_mirror_lower(n):
    """The triangle above the diagonal becomes that below."""
    A = np.random.default_rng(10).normal(size=(n, n))
    truth = np.tril(A) + np.tril(A, -1).T
    np.testing.assert_array_equal(mirror_lower(A), truth)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_solve_lower(make, L, transpose, columns):
    """A triangular system is solved for vectors and matrices; the right side stays as it is."""
    shape = N if columns is None else (N, columns)
    b = np.random.default_rng(3).normal(size=shape)
    factor, rhs = make(L), make(b)
    got = arrays.solve_lower(factor, rhs, transpose=transpose)
    same(got, np.linalg.solve(L.T if transpose else L, b))
    np.testing.assert_array_equal(to_numpy(rhs), b)
    np.testing.assert_array_equal(to_numpy(factor), L)


def test_solve_lower_ignores_the_other_triangle(L, v):
    """What stands above the diagonal is not read."""
    dirty = L + np.triu(np.full((N, N), 7.0), 1)
    for order in "CF":
        same(arrays.solve_lower(np.array(dirty, order=order), v), np.linalg.solve(L, v))


@pytest.mark.parametrize("scalar", [True, False])
def test_add_to_diagonal(make, A, v, scalar):
    """A number or a vector is added to the diagonal."""
    d = 0.5 if scalar else v
    got = arrays.add_to_diagonal(make(A), 0.5 if scalar else make(v))
    same(got, A + np.diag(np.full(N, 0.5) if scalar else d))


@pytest.mark.parametrize("n", [1, N, 150])
def test_congruence_plus_identity(make, n):
    """I + S K S is whole; K stays as it is."""
    rng = np.random.default_rng(5)
    A, s = rng.normal(size=(n, n)), rng.uniform(size=n)
    A = A @ A.T
    K = make(A)
    got = to_numpy(arrays.congruence_plus_identity(K, make(s)))
    np.testing.assert_allclose(got, np.eye(n) + s[:, None] * A * s, **CLOSE)
    np.testing.assert_array_equal(to_numpy(K), A)


def test_symmetric_product(make, A, v):
    """A symmetric matrix times a vector; both stay as they are."""
    K, x = make(A), make(v)
    same(arrays.symmetric_product(K, x), A @ v)
    np.testing.assert_array_equal(to_numpy(K), A)
    np.testing.assert_array_equal(to_numpy(x), v)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_lower_product(make, L, transpose, columns):
    """A lower triangle, or its transpose, times a vector or matrix; both stay as they are."""
    b = np.random.default_rng(6).normal(size=N if columns is None else (N, columns))
    factor, x = make(L), make(b)
    same(arrays.lower_product(factor, x, transpose=transpose), (L.T if transpose else L) @ b)
    np.testing.assert_array_equal(to_numpy(factor), L)
    np.testing.assert_array_equal(to_numpy(x), b)


def test_inner_product(make, A):
    """Two symmetric matrices, in the same order of memory or not, give a plain number."""
    B = np.linalg.inv(A)
    for second in (make(B), make(B).T):
        got = arrays.inner_product(make(A), second)
        assert isinstance(got, float)
        same(got, N)


def test_column_square_sums(make):
    """Squared norms of columns, of a matrix that is not square either."""
    M = np.random.default_rng(4).normal(size=(4, 6))
    same(arrays.column_square_sums(make(M)), np.sum(M**2, axis=0))


def test_add_outer(make, A, v):
    """A rank-one update of a symmetric matrix, with either sign."""
    for c in (0.7, -0.3):
        same(arrays.add_outer(make(A), c, make(v)), A + c * np.outer(v, v))


def test_copy_is_independent(make, A):
    """Consuming a copy leaves the original alone."""
    original = make(A)
    arrays.cholesky(arrays.copy(original))
    np.testing.assert_array_equal(to_numpy(original), A)


def test_put(make, v):
    """Entries are replaced in a copy; none may be an empty choice."""
    x = make(v)
    index = make(np.array([1, 4]))
    truth = v.copy()
    truth[[1, 4]] = [10.0, 20.0]
    same(arrays.put(x, index, make(np.array([10.0, 20.0]))), truth)
    same(arrays.put(x, make(np.zeros(0, dtype=int)), make(np.zeros(0))), v)
    np.testing.assert_array_equal(to_numpy(x), v)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_is_reused(A, v, order):
    """NumPy arrays that are consumed hand their memory on, in either order."""
    M = np.array(A, order=order)
    L = arrays.cholesky(M)
    assert np.shares_memory(L, M)
    inverse = arrays.invert_lower(L)
    assert np.shares_memory(inverse, M)
    G = arrays.lower_gram(inverse)
    assert np.shares_memory(G, M)
    same(G, np.linalg.inv(A))
    assert np.shares_memory(arrays.add_to_diagonal(G, v), M)


def test_rank_one_update_in_place(A, v):
    """A C-ordered symmetric matrix is updated where it stands."""
    M = np.array(A)
    assert np.shares_memory(arrays.add_outer(M, 0.5, v), M)


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_give_right_answers(A, order):
    """A matrix that is a slice of a larger one is factored correctly, if not in place."""
    larger = np.zeros((2 * N, 2 * N), order=order)
    larger[::2, ::2] = A
    same(arrays.cholesky(larger[::2, ::2]), np.linalg.cholesky(A))
    larger[:N, :N] = A
    same(arrays.cholesky(larger[:N, :N]), np.linalg.cholesky(A))


@pytest.mark.parametrize("order", ["C", "F"])
def test_single_precision(A, order):
    """Single precision stays single and is as accurate as it can be."""
    M = np.array(A, dtype=np.float32, order=order)
    L = arrays.cholesky(M)
    assert L.dtype == np.float32
    np.testing.assert_allclose(L @ L.T, A, rtol=1e-5, atol=1e-4)
    inverse = arrays.invert_lower(L)
    assert inverse.dtype == np.float32


def test_namespace_and_kind(make, v):
    """Values take the library, type and device of the array they are to live with."""
    x = make(v)
    y = arrays.same_kind([1.0, 2.0], x)
    assert type(y) is type(x)
    assert y.dtype == x.dtype
    assert arrays.namespace(x, y) is arrays.namespace(x)
    assert arrays.same_kind(np.arange(3), x).dtype == x.dtype


def test_to_numpy_detaches():
    """A tensor that carries a gradient comes out as plain numbers."""
    t = pytest.importorskip("torch").ones(3, requires_grad=True)
    np.testing.assert_array_equal(to_numpy(2.0 * t), np.full(3, 2.0))


EXACT = {
    "log_ndtr": lambda z: mpmath.log(mpmath.erfc(-z / mpmath.sqrt(2)) / 2),
    "ndtr": lambda z: mpmath.erfc(-z / mpmath.sqrt(2)) / 2,
    "erfcx": lambda z: mpmath.exp(z**2) * mpmath.erfc(z),
}


@pytest.mark.parametrize("name", EXACT)
def test_special_functions(make, name):
    """Φ, log Φ and the scaled erfc hold their digits from tail to tail."""
    z = np.array([-30.0, -8.0, -1.5, -0.1, 0.0, 0.3, 2.0, 6.0, 20.0])
    z = z[3:] if name == "erfcx" else z
    got = to_numpy(getattr(special, name)(make(z)))
    with mpmath.workdps(120):
        truth = np.array([float(EXACT[name](mpmath.mpf(float(x)))) for x in z])
    # Φ(−30) is 5e-198: relative accuracy there costs the digits of the exponent, 30²/2 eps.
    np.testing.assert_allclose(got, truth, rtol=1e-12)


@pytest.mark.parametrize("name", EXACT)
def test_special_functions_of_a_number(name):
    """A plain number may be asked for, too."""
    with mpmath.workdps(30):
        truth = float(EXACT[name](mpmath.mpf("0.75")))
    assert float(getattr(special, name)(0.75)) == pytest.approx(truth, rel=1e-14)


def test_gram(make):
    """Wᵀ W is right where a factorisation reads it."""
    W = np.random.default_rng(7).normal(size=(9, 4))
    same(np.tril(to_numpy(arrays.gram(make(W)))), np.tril(W.T @ W))


def test_scale_both(make, A):
    """Rows and columns are scaled."""
    a, b = np.random.default_rng(8).normal(size=(2, len(A)))
    same(arrays.scale_both(make(A), make(a), make(b)), a[:, None] * A * b)


def test_pivots():
    """Rows that repeat others do not matter; the factor is that of those that do."""
    Z = np.random.default_rng(9).normal(size=(5, 5))
    Z = np.vstack([Z, Z[:3]])
    A = Z @ Z.T
    L, rows = arrays.pivots(A, 1e-8)
    assert len(rows) == 5
    same(np.tril(L) @ np.tril(L).T, A[np.ix_(rows, rows)])
    assert arrays.pivots(np.zeros((3, 3)), 0.0)[1].size == 0


@pytest.mark.parametrize("columns", [None, 1, 4])
@pytest.mark.parametrize("kind", ["C", "F", "view"])
def test_matmul(make, kind, columns):
    """Products of a matrix with a matrix or vector in any order of memory."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((12, 14))
    A = A[::2, ::2] if kind == "view" else np.asarray(A[:6, :7], order=kind)
    B = rng.standard_normal(7) if columns is None else rng.standard_normal((columns, 7)).T
    for right in (B, np.ascontiguousarray(B)):
        got = arrays.matmul(make(A), make(right))
        # Sums of seven products of order one.
        np.testing.assert_allclose(to_numpy(got), A @ B, atol=1e-13)


def test_matmul_of_other_types():
    """Whole numbers and single precision go NumPy's own way."""
    A = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(arrays.matmul(A, A.T), A @ A.T)
    assert arrays.matmul(A.astype(np.float32), A.T.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("order", ["C", "F"])
def test_gram_matrix_of_a_triangle_in_products(order):
    """symmetric_product multiplies by what lower_gram returns, whatever the order of L."""
    rng = np.random.default_rng(6)
    L = np.asarray(np.tril(rng.standard_normal((90, 90))), order=order)
    v, truth = rng.standard_normal(90), L.T @ L
    whole = arrays.lower_gram(L)
    np.testing.assert_allclose(arrays.symmetric_product(whole, v), truth @ v, atol=1e-10)
