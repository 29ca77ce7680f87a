"""Estimators of streams as files, and back."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.estimators.streams import (
    Stream,
    StreamRows,
    is_usable,
    streams_from_file,
    streams_to_file,
    waiting_from_file,
)
from cavity.storage import StorageError, codecs, short, stored_number

_CODERS = {
    "kernel": (codecs.kernel_to_json, codecs.kernel_from_json),
    "likelihood": (codecs.likelihood_to_json, codecs.likelihood_from_json),
}
_LABELS = ("classes_", "feature_names_in_")
_PLAIN = (bool, int, float, str, type(None))
_MOST = {"n_restarts_optimizer": 1_000, "sweeps": 1_000}
"""What would take very long with a few rows already."""


class Memory(NamedTuple):
    """What an online estimator keeps of its stream."""

    streams: tuple[Stream, ...] = ()
    waiting: StreamRows | None = None
    """Rows of the warm-up, not learned yet."""
    n_seen: int = 0
    loss: float = 0.0
    weight: float = 0.0


def checkpoint(estimator: Any, memory: Memory) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a file holds of an online estimator: a header for JSON, and arrays."""
    streams, arrays = streams_to_file(memory.streams)
    if memory.waiting is not None:
        arrays |= {f"waiting.{name}": part for name, part in memory.waiting._asdict().items()}
    labels = {name: getattr(estimator, name) for name in _LABELS if hasattr(estimator, name)}
    header = {
        "parameters": _parameters_to_json(estimator.get_params(deep=False)),
        "n_features": estimator.n_features_in_,
        "labels": {name: codecs.labels_to_json(found) for name, found in labels.items()},
        "streams": streams,
        "counts": [memory.n_seen, memory.loss, memory.weight],
    }
    return header, arrays


def _parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, value in parameters.items():
        if name in _CODERS:
            value = _CODERS[name][0](value)
        elif isinstance(value, np.generic):
            value = value.item()
        elif not isinstance(value, _PLAIN):
            raise StorageError(f"the parameter {name}={value!r} cannot be stored")
        found[name] = value
    _check_sizes(found)
    return found


def _check_sizes(parameters: Mapping[str, Any]) -> None:
    """Refuse numbers of repetitions that a file may not ask for."""
    for name, most in _MOST.items():
        if name in parameters and stored_number(parameters[name], int) > most:
            raise StorageError(
                f"{name}={short(parameters[name])} is more than a file may ask for: use at most "
                f"{most:,}"
            )


def parameters_from_json(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return an online estimator's parameters."""
    parameters = {
        name: _CODERS[name][1](value) if name in _CODERS else value for name, value in found.items()
    }
    if "tol" in parameters and "novelty" not in parameters:
        # Earlier versions wrote it under this name.
        parameters["novelty"] = parameters.pop("tol")
    _check_sizes(parameters)
    kernel = parameters["kernel"]
    if kernel is not None and not is_usable(kernel):
        raise StorageError(f"its kernel is not one of vectors: {short(kernel)}")
    return parameters


def labels_from_header(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of inputs and, if there are any, their names and the classes."""
    columns, stored = stored_number(header["n_features"], int), header["labels"]
    decoders = {"classes_": codecs.classes_from_json, "feature_names_in_": codecs.labels_from_json}
    found = {name: read(stored[name]) for name, read in decoders.items() if name in stored}
    if len(found.get("feature_names_in_", range(columns))) != columns:
        raise StorageError("its names do not fit its inputs")
    return {"n_features_in_": columns, **found}


def memory_from_file(
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    fresh: Stream,
    count: int,
    check: Callable[[Array], None],
) -> Memory:
    """Return the memory that `checkpoint` has described.

    ``fresh`` is a stream with nothing learned, ``count`` how many there have to be, and ``check``
    refuses targets that cannot be.
    """
    streams = streams_from_file(header["streams"], dict(arrays), fresh)
    waiting = waiting_from_file(dict(arrays), fresh.posterior.Z.shape[1], count)
    if len(streams) != (0 if waiting is not None else count):
        raise StorageError("it does not have one stream for each latent function")
    if waiting is not None:
        check(waiting.y)
    counts = zip(header["counts"], (int, float, float), strict=True)
    n_seen, loss, weight = (stored_number(found, kind) for found, kind in counts)
    if min(n_seen, weight) < 0:
        raise StorageError("its counts are negative")
    return Memory(streams, waiting, n_seen, loss, weight)
