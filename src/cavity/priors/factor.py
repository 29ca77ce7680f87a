"""The Cholesky factor of a posterior, and what follows from it."""

from functools import cached_property

from cavity.arrays import (
    Array,
    column_square_sums,
    invert_lower,
    lower_product,
    namespace,
    solve_lower,
)


def half_log_det(L: Array) -> Array:
    """Return Σ log L_ii."""
    xp = namespace(L)
    return xp.sum(xp.log(xp.linalg.diagonal(L)))


class Factor:
    """chol(B), turned in place into its inverse when that is first needed."""

    def __init__(self, L: Array) -> None:
        self._L = L
        self._inverted = False

    @cached_property
    def half_log_det(self) -> Array:
        """Σ log L_ii = ½ log det B."""
        return half_log_det(self._L) * (-1.0 if self._inverted else 1.0)

    @property
    def inverse(self) -> Array:
        """L⁻¹; not to be modified."""
        if not self._inverted:
            self._L, self._inverted = invert_lower(self._L), True
        return self._L

    @cached_property
    def inverse_diagonal(self) -> Array:
        """[B⁻¹]_ii: the squared norms of the columns of L⁻¹."""
        return column_square_sums(self.inverse)

    def half_solve(self, V: Array, *, transpose: bool = False) -> Array:
        """Return L⁻¹ V, or L⁻ᵀ V."""
        if self._inverted:
            return lower_product(self._L, V, transpose=transpose)
        return solve_lower(self._L, V, transpose=transpose)
