"""One latent function learned from a stream: a kernel, a likelihood and a posterior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cavity import online
from cavity.arrays import Array, one_thread
from cavity.estimators.validation import check_variances, check_weights
from cavity.kernels import Rule, rule
from cavity.likelihoods import Likelihood
from cavity.online import OnlinePosterior, Options
from cavity.sites import Marginals
from cavity.storage import StorageError
from cavity.storage.codecs import kernel_from_json, kernel_to_json

_PARTS = OnlinePosterior._fields[:4]
_NUMBERS = {"log_evidence": float, "seen": int, "floor": float, "size": int, "changes": int}


class StreamRows(NamedTuple):
    """Rows of a stream: inputs, coded targets, and how often each counts."""

    X: Array
    y: Array
    weight: Array


def take_rows(X: Array, y: Array, sample_weight: Any) -> StreamRows:
    """Return the rows that have weight."""
    weight = check_weights(sample_weight, len(y))
    used = weight > 0.0
    return StreamRows(X[used], y[used], weight[used])


@dataclass(frozen=True)
class Stream:
    """A latent function and what has been learned of it; learning returns a new one."""

    kernel: Any
    likelihood: Likelihood
    options: Options
    posterior: OnlinePosterior

    @property
    def rule(self) -> Rule:
        """How to compute with the kernel."""
        return rule(self.kernel)

    def learn(self, rows: StreamRows) -> tuple["Stream", Array]:
        """Learn rows one after the other; return their log predictive probabilities as well."""
        check_variances(self.rule, rows.X)
        index, likelihood, share = _turns(self.likelihood, rows.weight)
        with one_thread():
            posterior, found = online.learn(
                self.rule, likelihood, self.options, self.posterior, rows.X[index], rows.y[index]
            )
        log_prob = np.zeros(len(rows.y))
        # Backwards, so that a row presented several times keeps its first presentation's value.
        log_prob[np.arange(len(rows.y))[index][::-1]] = (found / share)[::-1]
        return replace(self, posterior=posterior), log_prob

    def sweep(self, rows: StreamRows, sweeps: int) -> "Stream":
        """Learn a table by EP, at the present basis points."""
        index, likelihood, _ = _turns(self.likelihood, rows.weight)
        posterior, _ = online.sweep(
            self.rule, likelihood, self.posterior, rows.X[index], rows.y[index], sweeps
        )
        return replace(self, posterior=posterior)

    def recondition(self, kernel: Any) -> "Stream":
        """Replace the prior by that of another kernel."""
        posterior = online.recondition(rule(kernel), self.posterior, self.options.novelty)
        return replace(self, kernel=kernel, posterior=posterior)

    def predict(self, X: Array) -> Marginals:
        """Return mean and variance at new inputs, the kernel's noise included."""
        check_variances(self.rule, X)
        return online.predict(self.rule, self.posterior, X)


def _turns(likelihood: Likelihood, weight: Array) -> tuple[Any, Likelihood, Array | float]:
    """Return which row is presented when, through which likelihood, and with what power.

    A row of weight 2.5 is presented twice and then once through p(y|f)^½.
    """
    if np.all(weight == 1.0):
        return slice(None), likelihood, 1.0
    count = np.ceil(weight).astype(int)
    index = np.repeat(np.arange(len(weight)), count)
    share = np.ones(len(index))
    share[np.cumsum(count) - 1] = weight - (count - 1)
    return index, likelihood.power(share) if np.any(share < 1.0) else likelihood, share


def streams_to_file(streams: Sequence[Stream]) -> tuple[list[Any], dict[str, Array]]:
    """Return the streams as entries for a file's header, and as arrays."""
    header = [
        {"kernel": kernel_to_json(s.kernel), **{k: getattr(s.posterior, k) for k in _NUMBERS}}
        for s in streams
    ]
    arrays = {f"{i}.{k}": getattr(s.posterior, k) for i, s in enumerate(streams) for k in _PARTS}
    return header, arrays


def streams_from_file(header: Any, arrays: dict[str, Array], fresh: Stream) -> tuple[Stream, ...]:
    """Return the streams that `streams_to_file` has described, given one with nothing learned."""
    streams, columns = [], fresh.posterior.Z.shape[1]
    for i, found in enumerate(header):
        parts = {part: arrays[f"{i}.{part}"] for part in _PARTS}
        b = len(parts["mean"])
        shapes = (b, columns), (b, b), (b,), (b, b)
        for (name, array), shape in zip(parts.items(), shapes, strict=True):
            if array.shape != shape or array.dtype != np.float64 or not np.all(np.isfinite(array)):
                raise StorageError(
                    f"a stored stream's {name!r} is not a finite array of shape {shape}"
                )
        numbers = {name: kind(found[name]) for name, kind in _NUMBERS.items()}
        if numbers["size"] < 1 or numbers["seen"] < 0 or numbers["changes"] < 0:
            raise StorageError("a stored stream has impossible counts")
        kernel, posterior = kernel_from_json(found["kernel"]), OnlinePosterior(**parts, **numbers)
        streams.append(replace(fresh, kernel=kernel, posterior=posterior))
    return tuple(streams)
