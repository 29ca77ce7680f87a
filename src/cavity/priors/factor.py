"""The Cholesky factor of B = I + S K S, and the memory it lives in."""

from functools import cached_property

from cavity.arrays import (
    Array,
    cholesky,
    column_square_sums,
    congruence_plus_identity,
    copy,
    invert_lower,
    is_numpy_array,
    lower_gram,
    lower_product,
    namespace,
    solve_lower,
)

__all__ = ["Factor", "Scratch", "half_log_det"]


class Scratch:
    """Matrices that nobody needs any more.

    Fresh memory costs as much as the work of filling it, so that factors pass theirs on. One is
    enough: a new factor is made while the last one is still in use.
    """

    def __init__(self) -> None:
        self._matrix: Array | None = None

    def __getstate__(self) -> dict[str, None]:
        return {"_matrix": None}

    def take(self) -> Array | None:
        """Return a matrix to overwrite, if there is one."""
        matrix, self._matrix = self._matrix, None
        return matrix

    def give(self, matrix: Array) -> None:
        """Hand over a matrix; other libraries than NumPy keep their memory themselves."""
        if is_numpy_array(matrix):
            self._matrix = matrix


class Factor:
    """chol(B), turned into its inverse where that is needed, in the same memory.

    Parameters
    ----------
    K : array of shape (n, n)
    s : array of shape (n,)
        The diagonal √τ of S.
    scratch : Scratch
    """

    def __init__(self, K: Array, s: Array, scratch: Scratch) -> None:
        self.scratch = scratch
        self._L = cholesky(congruence_plus_identity(K, s))
        self._inverted = False

    def __del__(self) -> None:
        if "_L" in self.__dict__:
            self.scratch.give(self._L)

    @cached_property
    def half_log_det(self) -> Array:
        """Σ log L_ii = ½ log det B."""
        sign = -1.0 if self._inverted else 1.0
        return sign * half_log_det(self._L)

    @property
    def inverse(self) -> Array:
        """L⁻¹; not to be modified."""
        if not self._inverted:
            self._L = invert_lower(self._L)
            self._inverted = True
        return self._L

    @cached_property
    def inverse_diagonal(self) -> Array:
        """[B⁻¹]_ii: the squared norms of the columns of L⁻¹."""
        return column_square_sums(self.inverse, lower=True)

    def quadratic(self, V: Array) -> Array:
        """Return vᵀ B⁻¹ v for each column v."""
        return column_square_sums(self.half_solve(V))

    def B_inverse(self, *, whole: bool = True) -> Array:
        """Return B⁻¹ = L⁻ᵀ L⁻¹, a new matrix; or what `symmetric_product` needs of it."""
        return lower_gram(copy(self.inverse), whole=whole)

    def half_solve(self, V: Array, *, transpose: bool = False) -> Array:
        """Return L⁻¹ V, or L⁻ᵀ V."""
        if self._inverted:
            return lower_product(self._L, V, transpose=transpose)
        return solve_lower(self._L, V, transpose=transpose)

    def solve(self, v: Array) -> Array:
        """Return B⁻¹ v."""
        return self.half_solve(self.half_solve(v), transpose=True)


def half_log_det(L: Array) -> Array:
    """Return Σ log L_ii."""
    xp = namespace(L)
    return xp.sum(xp.log(xp.linalg.diagonal(L)))
