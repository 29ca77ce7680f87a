"""From held-out scores at several sizes to the curve that forecasts continue."""

import numpy as np

from cavity.arrays import Array
from cavity.model_selection.forecast import ErrorTrend, forecast_sizes, smaller_sizes

_LEAST = 3
"""Fewest rows of a table whose curve has a shape: that of all but one, and its end."""


def trend_sizes(share: Array) -> tuple[Array, int]:
    """Return the sizes of a held-out curve, and the index where the fit of its shape begins.

    Without replacement no example can be drawn more than once, which limits the sizes.
    """
    most = int(1.0 / np.max(share) + 1e-9)
    if most < _LEAST:
        raise ValueError(
            f"A forecast needs at least {_LEAST} rows (or weights less uneven); training sets have "
            f"at most {most} here: gather more rows first."
        )
    fitted = forecast_sizes(most)
    smaller = smaller_sizes(fitted[0])
    return np.unique(np.concatenate([smaller, fitted, [most]])), len(smaller)


def trend_of(
    sizes: Array, means: Array, spread: float, begin: int, measure: str, *, is_class: bool
) -> ErrorTrend:
    """Return the curve of a held-out score that ends at the leave-one-out.

    Parameters
    ----------
    sizes, means : arrays of shape (k,)
    spread : float
        Standard error of the last mean.
    begin : int
        Index of the first size that the continuation is fitted to.
    measure : {"error", "log_loss"}
    is_class : bool
    """
    rate = is_class and measure == "error"
    ceiling = 1.0 if rate else np.inf
    positive = is_class or measure == "error"
    return ErrorTrend(sizes, means, spread, positive, ceiling, begin, beyond=1)
