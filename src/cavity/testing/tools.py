"""Tools that the checks share: targets to check on, and derivatives by differences."""

from collections.abc import Callable

import numpy as np

from cavity.arrays import Array
from cavity.arrays.differences import slope

__all__ = ["slope", "targets"]

_DRAWS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "signs": lambda rng, n: rng.choice([-1.0, 1.0], size=n),
    "codes": lambda rng, n: rng.integers(0, 3, size=n).astype(float),
    "counts": lambda rng, n: rng.poisson(2.0, size=n).astype(float),
    "positive": lambda rng, n: rng.gamma(2.0, size=n),
    "reals": lambda rng, n: rng.standard_normal(n),
}


def targets(support: str, n: int, rng: np.random.Generator) -> Array:
    """Draw n targets of the kind that a likelihood's ``support`` names.

    Examples
    --------
    >>> import numpy as np
    >>> from cavity.likelihoods import Gaussian, Probit
    >>> from cavity.testing import targets
    >>> targets(Probit().support, 4, np.random.default_rng(0))
    array([ 1.,  1.,  1., -1.])
    """
    if support not in _DRAWS:
        raise ValueError(f"support must be one of {', '.join(map(repr, _DRAWS))}, got {support!r}.")
    return _DRAWS[support](rng, n)
