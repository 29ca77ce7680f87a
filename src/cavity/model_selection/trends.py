"""From held-out scores at several sizes to the curve that forecasts continue."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cavity.arrays import Array
from cavity.model_selection.curve import LearningCurve
from cavity.model_selection.forecast import ErrorTrend, forecast_sizes, smaller_sizes

_LEAST = 3
"""Fewest rows of a table whose curve has a shape, and sizes to fit one to if some are left out."""
_UNSOLVED = "This rests on averages that did not converge: raise max_iter of learning_curve()."
# By which share a squared error on all rows may rise: for pure noise under a kernel that was not
# tuned it does by .006 at most, and where refits disagree by .09 or more.
_RISE = 0.05
# A squared error of this share of the variance is rounding.
_ROUNDING = 1e-12


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


def solved_trend(source: Any) -> tuple[Array, list[Any], int]:
    """Return the sizes of a held-out curve, their solutions, and where the fit of its shape begins.

    Sizes that are not solved are left out, if enough remain to be fitted to and the last is solved.
    """
    law = "bootstrap" if source.theory == "variational" else "subsample"
    sizes, begin = trend_sizes(source.inputs.share)
    solutions, good = _solved(source, sizes, law)
    enough = min(_LEAST, len(sizes) - 1 - begin)
    if not good[-1] or np.sum(good[begin:-1]) < enough:
        warnings.warn(_UNSOLVED, ConvergenceWarning, stacklevel=2)
        good[:] = True
    kept = np.flatnonzero(good)
    return sizes[kept], [solutions[k] for k in kept], int(np.sum(kept < begin))


def bootstrapped(source: Any, sizes: Array) -> list[Any]:
    """Return the solutions for bootstrap samples of each size, and warn if some are not solved."""
    solutions, good = _solved(source, sizes, "bootstrap")
    if not np.all(good):
        warnings.warn(_UNSOLVED, ConvergenceWarning, stacklevel=2)
    return solutions


def _solved(source: Any, sizes: Array, law: str) -> tuple[list[Any], Array]:
    """Return the solutions of all latent functions, and whether all are found, for each size."""
    each = (source.solve(pool, sizes, law) for pool in source.inputs.pools)
    solutions = list(zip(*each, strict=True))
    return solutions, np.array([all(s.converged for s in of_size) for of_size in solutions])


def trend_of(
    sizes: Array, means: Array, spread: float, begin: int, measure: str, *, is_class: bool
) -> ErrorTrend:
    """Return the curve of a held-out score that ends at the leave-one-out.

    Its continuation is fitted from the size number ``begin`` on; ``spread`` is the standard error
    of the last mean.
    """
    rate = is_class and measure == "error"
    ceiling = 1.0 if rate else np.inf
    positive = is_class or measure == "error"
    return ErrorTrend(sizes, means, spread, positive, ceiling, begin, beyond=1)


def rises(curve: LearningCurve) -> Array:
    """Return at which sizes a regression errs more on all rows, drawn or not, than with fewer rows.

    The average should fall, unless the kernel is wrong for the targets: and then the theory is
    least exact. Rates of wrong classes may rise a little, by the few rows that they count.
    """
    if curve.task != "regression":
        return np.zeros(len(curve.train_sizes), dtype=bool)
    # What the kernels of a few random parts add is no smooth curve.
    error = curve.pool_error - curve.source.retuning
    rounding = _ROUNDING * curve.posterior_variance
    return np.asarray(error > (1.0 + _RISE) * np.minimum.accumulate(error) + rounding)
