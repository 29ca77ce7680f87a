"""One latent function learned from a stream: a kernel, a likelihood and a posterior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from cavity import online
from cavity.arrays import Array, one_thread
from cavity.kernels import Rule, rule
from cavity.likelihoods import Likelihood
from cavity.online import OnlinePosterior, Options
from cavity.sites import Marginals
from cavity.storage import StorageError
from cavity.storage.codecs import kernel_from_json, kernel_to_json

_PARTS = ("Z", "L", "mean", "cov")
_NUMBERS = {"log_evidence": float, "seen": int, "floor": float, "size": int, "changes": int}


class StreamRows(NamedTuple):
    """Rows of a stream: inputs, coded targets, and how often each counts (None: once)."""

    X: Array
    y: Array
    weight: Array | None

    def first(self, count: int) -> "StreamRows":
        """Return the first rows."""
        weight = None if self.weight is None else self.weight[:count]
        return StreamRows(self.X[:count], self.y[:count], weight)

    def then(self, after: "StreamRows") -> "StreamRows":
        """Return these rows and others after them."""
        pairs = (self.X, after.X), (self.y, after.y), (self.weights, after.weights)
        return StreamRows(*map(np.concatenate, pairs))

    @property
    def weights(self) -> Array:
        """How often each row counts, as numbers."""
        return np.ones(len(self.y)) if self.weight is None else self.weight


def take_rows(X: Array, y: Array, sample_weight: Any) -> StreamRows:
    """Return the rows that have weight."""
    if sample_weight is None:
        return StreamRows(X, y, None)
    weight = _check_sample_weight(
        sample_weight, np.empty((len(y), 1)), ensure_non_negative=True, dtype=np.float64
    )
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
        self._check_variances(rows.X)
        index, likelihood, share = _turns(self.likelihood, rows.weight, len(rows.y))
        with one_thread():
            posterior, found = online.learn(
                self.rule, likelihood, self.options, self.posterior, rows.X[index], rows.y[index]
            )
        log_prob = np.zeros(len(rows.y))
        # Backwards: of a row that is presented several times, the first presentation counts.
        log_prob[np.arange(len(rows.y))[index][::-1]] = (found / share)[::-1]
        return replace(self, posterior=posterior), log_prob

    def sweep(self, rows: StreamRows, sweeps: int) -> "Stream":
        """Learn a table by EP, at the basis points that are there."""
        index, likelihood, _ = _turns(self.likelihood, rows.weight, len(rows.y))
        posterior, _ = online.sweep(
            self.rule, likelihood, self.posterior, rows.X[index], rows.y[index], sweeps
        )
        return replace(self, posterior=posterior)

    def recondition(self, kernel: Any) -> "Stream":
        """Exchange the prior for that of another kernel."""
        posterior = online.recondition(rule(kernel), self.posterior, self.options.novelty)
        return replace(self, kernel=kernel, posterior=posterior)

    def predict(self, X: Array) -> Marginals:
        """Return mean and variance at new inputs, the kernel's noise included."""
        return online.predict(self.rule, self.posterior, X)

    def log_proba(self, X: Array) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) at new inputs."""
        q = self.predict(X)
        one = np.ones_like(q.mean)
        return self.likelihood.tilted(-one, q).log_z, self.likelihood.tilted(one, q).log_z

    def _check_variances(self, X: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            bad = np.flatnonzero(~np.isfinite(self.rule.diag(X)))
        if len(bad):
            raise ValueError(
                f"the kernel's variance is not finite at row {bad[0]}: its inputs are too large "
                f"for {self.kernel}; scale the inputs"
            )


def _turns(
    likelihood: Likelihood, weight: Array | None, n: int
) -> tuple[Any, Likelihood, Array | float]:
    """Return which row is presented when, through which likelihood, and with what power.

    A row of weight 2.5 is presented twice and then once through p(y|f)^½.
    """
    if weight is None or np.all(weight == 1.0):
        return slice(0, n), likelihood, 1.0
    count = np.ceil(weight).astype(int)
    index = np.repeat(np.arange(n), count)
    share = np.ones(len(index))
    share[np.cumsum(count) - 1] = weight - (count - 1)
    return index, likelihood.power(share) if np.any(share < 1.0) else likelihood, share


def streams_to_file(streams: Sequence[Stream]) -> tuple[list[Any], dict[str, Array]]:
    """Return what a file's header and its arrays say of streams."""
    header = [
        {"kernel": kernel_to_json(s.kernel), **{k: getattr(s.posterior, k) for k in _NUMBERS}}
        for s in streams
    ]
    arrays = {f"{i}.{k}": getattr(s.posterior, k) for i, s in enumerate(streams) for k in _PARTS}
    return header, arrays


def streams_from_file(
    header: Any, arrays: dict[str, Array], likelihood: Likelihood, options: Options, columns: int
) -> list[Stream]:
    """Return the streams that `streams_to_file` has described."""
    streams = []
    for i, found in enumerate(header):
        parts = {part: arrays[f"{i}.{part}"] for part in _PARTS}
        _check_parts(parts, columns)
        numbers = {name: kind(found[name]) for name, kind in _NUMBERS.items()}
        if numbers["size"] < 1 or numbers["seen"] < 0 or numbers["changes"] < 0:
            raise StorageError("a stored stream has impossible counts")
        posterior = OnlinePosterior(**parts, **numbers)
        streams.append(Stream(kernel_from_json(found["kernel"]), likelihood, options, posterior))
    return streams


def _check_parts(parts: dict[str, Array], columns: int) -> None:
    b = len(parts["mean"])
    shapes = {"Z": (b, columns), "L": (b, b), "mean": (b,), "cov": (b, b)}
    for name, shape in shapes.items():
        array = parts[name]
        if array.shape != shape or array.dtype != np.float64 or not np.all(np.isfinite(array)):
            raise StorageError(f"a stored stream's {name!r} is not a finite array of shape {shape}")
