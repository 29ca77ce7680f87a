"""Tables that are visited in blocks: when an estimator needs them, and how they are checked."""

from copy import copy
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from cavity.arrays import Array
from cavity.estimators.problems import noise_variances
from cavity.estimators.validation import (
    RowMap,
    check_offset,
    check_rows,
    is_auto,
    is_precomputed,
    is_table,
    validate_inputs,
)
from cavity.inference import Method
from cavity.kernels import Rule
from cavity.rows import MemoryBlocks, RowBlocks
from cavity.sites import Rows

_DENSE, _DENSE_CHOSEN = 3000, 1500
"""With n_inducing="auto", tables up to this many rows are fitted without inducing points; fewer
if the kernel is chosen, or its prior learned, in several fits. That takes about half a minute."""
_BLOCK = 4096
"""Rows of a block in memory."""


def in_blocks(estimator: Any, X: Any) -> bool:
    """Whether the estimator's parameters ask for inducing points on this table."""
    if is_table(X) or estimator.inducing_points is not None:
        return True
    if estimator.n_inducing != "auto":
        return estimator.n_inducing is not None
    several = is_auto(estimator.kernel) or estimator.hyperprior == "hierarchical"
    size = X.shape[0] if hasattr(X, "shape") else len(X)
    return bool(size > (_DENSE_CHOSEN if several else _DENSE))


class Opened(NamedTuple):
    """A table in blocks, and how its rows relate to the user's."""

    blocks: RowBlocks
    rows: RowMap | None
    """None: as they are."""
    unweighted: tuple[Any, None, Array | None]
    """Inputs of the user's rows without weight, and their offsets."""
    inputs: Array | None = None
    """Of the rows, if they are in memory."""
    offset: Array | None = None
    """Of the rows, if they have any."""
    given: tuple[Array, Array | None] | None = None
    """All targets and offsets of the user's, if they are in memory."""


def opened(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any,
    rule: Rule,
    method: Method,
    alpha: Any = None,
) -> Opened:
    """Return a table, or arrays, in blocks; numbers have an ``alpha``, labels have none."""
    _check_method(method)
    if is_table(X):
        _check_plain(estimator, offset)
        declared = _declared(estimator, X, y, sample_weight)
        return Opened(declared, None, (np.empty((0, estimator.n_features_in_)), None, None))
    real = alpha is not None
    X, y = validate_inputs(estimator, X, y, multi_output=real, y_numeric=real)
    if real:
        labels = np.column_stack([y, noise_variances(alpha, len(y))])
    else:
        check_classification_targets(y)
        labels = np.unique(y, return_inverse=True)[1]
    X, offset = _vectors(estimator, X), check_offset(offset, len(y))
    labels = labels if offset is None else np.column_stack([labels, offset])
    rows = check_rows(sample_weight, X, labels, rule, merge=True)
    found = Rows(y[rows.index], rows.weight, X[rows.index])
    absent, own = rows.position < 0, None if offset is None else offset[rows.index]
    unweighted = X[absent], None, None if offset is None else offset[absent]
    given = np.asarray(y, dtype=np.float64) if real else y, offset
    return Opened(MemoryBlocks(found, _BLOCK), rows, unweighted, found.X, own, given)


def _check_plain(estimator: Any, offset: Any) -> None:
    """Refuse what belongs to single rows where these are not in memory."""
    if offset is not None or estimator.mean is not None:
        raise ValueError(
            "offset and mean='linear' need arrays: the rows of a table in blocks are not held in "
            "memory. Pass X and y as arrays (n_inducing may still be set)."
        )


def _vectors(estimator: Any, X: Any) -> Array:
    """Return inputs as float64; some kernels, such as a constant, take anything."""
    numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "biuf"
    if not numbers or is_precomputed(estimator.kernel):
        raise ValueError(
            "Inducing points need inputs that are vectors and a kernel object: leave n_inducing at "
            "None for kernel='precomputed' and for lists of objects."
        )
    estimator.n_features_in_ = X.shape[1]
    return np.asarray(X, dtype=np.float64)


def _declared(estimator: Any, table: Any, y: Any, sample_weight: Any) -> RowBlocks:
    """Return a table of `cavity.rows` with its targets, and tell the estimator its columns."""
    if sample_weight is not None:
        raise ValueError("A table in blocks brings its own weights: leave sample_weight out.")
    names = getattr(table, "feature_names", None)
    estimator.n_features_in_ = int(table.n_features)
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    found: RowBlocks = table if y is None else table.with_targets(y)
    return found


def _check_method(method: Method) -> None:
    """Refuse methods that need the covariance of all rows as a matrix."""
    if method.dense_only:
        raise ValueError(
            f"inference={method.name!r} needs the covariances of all rows, which inducing points "
            "do not give: use 'ep', 'laplace', 'variational' or 'naive' (for real targets also "
            "'exact'), or n_inducing=None."
        )


def over_blocks(estimator: Any, table: Any, method: str, **options: Any) -> Any:
    """Return what a method of an estimator predicts for all rows of a table, block by block."""
    if options.get("return_cov"):
        raise ValueError(
            "The covariances among all rows of a table are too many: pass some rows as an array."
        )
    if options.pop("offset", None) is not None:
        raise ValueError("offset needs arrays: pass some rows as an array.")
    ours, theirs = getattr(estimator, "feature_names_in_", None), table.feature_names
    if ours is not None and theirs is not None and list(ours) != list(theirs):
        raise ValueError(
            f"The table's columns {list(theirs)} are not those of the fit, {list(ours)}: open it "
            "with features=[...] in that order."
        )
    # Blocks are arrays: without names, their names need not be checked again.
    plain = copy(estimator)
    plain.__dict__.pop("feature_names_in_", None)
    predict = partial(getattr(plain, method), **options)
    parts = [predict(X) for X in table.collect(_inputs, None, "")]
    if isinstance(parts[0], tuple):
        return tuple(map(np.concatenate, zip(*parts, strict=True)))
    return np.concatenate(parts)


def _inputs(rows: Rows, kept: Any, shared: Any) -> Array:
    return rows.X
