"""One latent function learned from a stream: a kernel, a likelihood and what is remembered."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from cavity import online
from cavity.arrays import Array, one_thread
from cavity.kernels import Rule, rule
from cavity.likelihoods import Likelihood
from cavity.online import Options, State
from cavity.sites import Marginals
from cavity.storage import StorageError
from cavity.storage.codecs import kernel_from_json, kernel_to_json

_PREDICTED = 2048
"""New inputs asked about at a time."""
_PARTS = ("Z", "L", "mean", "cov")
_NUMBERS = ("log_evidence", "seen", "floor", "size", "changes")


class Rows(NamedTuple):
    """Rows of a stream: inputs, coded targets, and how often each counts (None: once)."""

    X: Array
    y: Array
    weight: Array | None

    def first(self, count: int) -> "Rows":
        """Return the first rows."""
        weight = None if self.weight is None else self.weight[:count]
        return Rows(self.X[:count], self.y[:count], weight)

    def then(self, after: "Rows") -> "Rows":
        """Return these rows and others after them."""
        weight = np.concatenate([self.weights, after.weights])
        return Rows(np.concatenate([self.X, after.X]), np.concatenate([self.y, after.y]), weight)

    @property
    def weights(self) -> Array:
        """How often each row counts, as numbers."""
        return np.ones(len(self.y)) if self.weight is None else self.weight


def take_rows(X: Array, y: Array, sample_weight: Any) -> Rows:
    """Return the rows that have weight."""
    if sample_weight is None:
        return Rows(X, y, None)
    weight = _check_sample_weight(
        sample_weight, np.empty((len(y), 1)), ensure_non_negative=True, dtype=np.float64
    )
    used = weight > 0.0
    return Rows(X[used], y[used], weight[used])


@dataclass(frozen=True)
class KernelCovariance:
    """A kernel as the stream sees it: covariances without noise, and the noise by itself."""

    rule: Rule

    def matrix(self, X: Array, Z: Array) -> Array:
        """Return the covariances between two sets of inputs."""
        return self.rule.matrix(X, Z)

    def variance(self, X: Array) -> tuple[Array, Array]:
        """Return prior variances without noise, and the noise."""
        noise = np.maximum(self.rule.noise(X), 0.0)
        return self.rule.diag(X) - noise, noise


@dataclass(frozen=True)
class Stream:
    """A latent function and what has been learned of it; learning returns a new one.

    Parameters
    ----------
    kernel : kernel object
    likelihood : Likelihood
    options : Options
    state : State
    """

    kernel: Any
    likelihood: Likelihood
    options: Options
    state: State

    @property
    def covariance(self) -> KernelCovariance:
        """The kernel as the stream sees it."""
        return KernelCovariance(rule(self.kernel))

    def learn(self, rows: Rows) -> tuple["Stream", Array]:
        """Learn rows one after the other; return their log probabilities before that as well."""
        self._check_variances(rows.X)
        index, likelihood, share = _turns(self.likelihood, rows.weight, len(rows.y))
        with one_thread():
            learned = online.learn(
                self.covariance, likelihood, self.options, self.state, rows.X[index], rows.y[index]
            )
        log_prob = np.zeros(len(rows.y))
        # Backwards, so that the first presentation of a row has the last word.
        log_prob[_numbers(index, rows)[::-1]] = (learned.log_prob / share)[::-1]
        return replace(self, state=learned.state), log_prob

    def sweep(self, rows: Rows, sweeps: int) -> "Stream":
        """Go over a table again, at the basis points that are there."""
        index, likelihood, _ = _turns(self.likelihood, rows.weight, len(rows.y))
        found = online.sweep(
            self.covariance, likelihood, self.state, rows.X[index], rows.y[index], sweeps
        )
        return replace(self, state=found.state)

    def recondition(self, kernel: Any) -> "Stream":
        """Put what has been learned behind the prior of another kernel."""
        new = KernelCovariance(rule(kernel))
        state = online.recondition(self.covariance, new, self.state, self.options.tol)
        return replace(self, kernel=kernel, state=state)

    def predict(self, X: Array) -> Marginals:
        """Return mean and variance at new inputs, the kernel's noise included."""
        mean, variance = np.empty((2, len(X)))
        for block in _blocks(len(X)):
            mean[block], variance[block] = online.predict(self.covariance, self.state, X[block])
        return Marginals(mean, variance)

    def log_proba(self, X: Array) -> tuple[Array, Array]:
        """Return log P(−1) and log P(+1) at new inputs."""
        q = self.predict(X)
        one = np.ones_like(q.mean)
        return self.likelihood.tilted(-one, q).log_z, self.likelihood.tilted(one, q).log_z

    def _check_variances(self, X: Array) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            variance = rule(self.kernel).diag(X)
        if not np.all(np.isfinite(variance)):
            bad = int(np.flatnonzero(~np.isfinite(variance))[0])
            raise ValueError(
                f"the kernel's variance is not finite at row {bad}: its inputs are too large for "
                f"{self.kernel}; scale the inputs"
            )


def _blocks(n: int) -> Iterator[slice]:
    return (slice(i, i + _PREDICTED) for i in range(0, n, _PREDICTED))


def _turns(
    likelihood: Likelihood, weight: Array | None, n: int
) -> tuple[Any, Likelihood, Array | float]:
    """Return which row is presented when, through which likelihood, and with what power.

    A row of weight 2.5 is presented twice and then once through p(y|f)^½.
    """
    if weight is None or np.all(weight == 1.0):
        return slice(0, n), likelihood, 1.0
    whole = np.floor(weight)
    count = np.ceil(weight).astype(int)
    index = np.repeat(np.arange(n), count)
    share = np.ones(len(index))
    last = np.cumsum(count) - 1
    partly = weight > whole
    share[last[partly]] = (weight - whole)[partly]
    return index, likelihood.power(share) if np.any(partly) else likelihood, share


def _numbers(index: Any, rows: Rows) -> Array:
    return np.arange(len(rows.y))[index]


def streams_to_file(streams: Sequence[Stream]) -> tuple[list[Any], dict[str, Array]]:
    """Return what a file's header and its arrays say of streams."""
    header = [
        {"kernel": kernel_to_json(s.kernel), **{k: getattr(s.state, k) for k in _NUMBERS}}
        for s in streams
    ]
    arrays = {
        f"{i}.{part}": getattr(s.state, part) for i, s in enumerate(streams) for part in _PARTS
    }
    return header, arrays


def streams_from_file(
    header: Any, arrays: dict[str, Array], likelihood: Likelihood, options: Options, columns: int
) -> list[Stream]:
    """Return the streams that `streams_to_file` has described."""
    streams = []
    for i, found in enumerate(header):
        parts = {part: arrays[f"{i}.{part}"] for part in _PARTS}
        _check_parts(parts, columns)
        state = State(
            **parts,
            log_evidence=float(found["log_evidence"]),
            seen=int(found["seen"]),
            floor=float(found["floor"]),
            size=int(found["size"]),
            changes=int(found["changes"]),
        )
        if state.size < 1 or state.seen < 0 or state.changes < 0:
            raise StorageError("a stored stream has impossible counts")
        streams.append(Stream(kernel_from_json(found["kernel"]), likelihood, options, state))
    return streams


def _check_parts(parts: dict[str, Array], columns: int) -> None:
    b = len(parts["mean"])
    shapes = {"Z": (b, columns), "L": (b, b), "mean": (b,), "cov": (b, b)}
    for name, shape in shapes.items():
        array = parts[name]
        if array.shape != shape or array.dtype != np.float64 or not np.all(np.isfinite(array)):
            raise StorageError(f"a stored stream's {name!r} is not a finite array of shape {shape}")
