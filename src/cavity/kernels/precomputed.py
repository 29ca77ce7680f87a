"""A covariance that the caller has computed: the inputs are the matrix."""

from dataclasses import dataclass

import numpy as np

from cavity.arrays import Array, namespace
from cavity.kernels.base import Rule

_NO_INPUTS = (
    "kernel='precomputed' has no gradients in the inputs, which it does not know: use a kernel "
    "object."
)


@dataclass(frozen=True)
class Precomputed(Rule):
    """The rule for kernel="precomputed": the inputs are rows of K(X, X_train)."""

    kernel: None = None

    @property
    def theta(self) -> Array:
        """No hyperparameters."""
        return np.empty(0)

    @property
    def bounds(self) -> Array:
        """No bounds."""
        return np.empty((0, 2))

    @property
    def names(self) -> list[str]:
        """No names."""
        return []

    def with_theta(self, theta: Array) -> "Precomputed":
        """Return the rule itself."""
        return self

    def matrix(self, X: Array, Z: Array | None = None) -> Array:
        """Return the first argument itself, not a copy."""
        return X

    def vjp_inputs(self, X: Array, Z: Array, G: Array) -> Array:
        """Refuse: a matrix does not say how it depends on inputs."""
        raise ValueError(_NO_INPUTS)

    def vjp_diag_inputs(self, X: Array, g: Array) -> Array:
        """Refuse as well."""
        raise ValueError(_NO_INPUTS)

    def diag(self, X: Array) -> Array:
        """Return the diagonal of a training matrix."""
        n, m = X.shape
        if n != m:
            raise ValueError(
                f"expected a square precomputed matrix, got shape {(n, m)}; the prior variances of "
                "test points do not follow from their covariances with the training points: pass "
                "them separately"
            )
        return namespace(X).linalg.diagonal(X)
