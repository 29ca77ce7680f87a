"""One latent function learned from a stream: a kernel, a likelihood and a posterior."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from cavity import online
from cavity.arrays import Array, one_thread
from cavity.estimators.sizes import check_presentations, check_weights
from cavity.estimators.validation import check_offset, check_variances, require_numbers
from cavity.former import gone
from cavity.inference import MOST_COPIES, SINGLY
from cavity.kernels import Rule, rule
from cavity.likelihoods import Likelihood, Shifted, likelihood
from cavity.online import OnlinePosterior, Options
from cavity.sites import Marginals
from cavity.storage import StorageError, check_memory, short, stored_array, stored_number
from cavity.storage.codecs import (
    kernel_from_json,
    kernel_to_json,
    likelihood_from_json,
    likelihood_to_json,
)

__getattr__ = gone(__name__)
_PARTS = OnlinePosterior._fields[:4]
_NUMBERS = {"log_evidence": float, "seen": int, "floor": float, "size": int, "changes": int}


class StreamRows(NamedTuple):
    """Rows of a stream: inputs, coded targets, how often each counts, what is added to its f."""

    X: Array
    y: Array
    weight: Array
    offset: Array


def take_rows(X: Array, y: Array, sample_weight: Any, offset: Any) -> StreamRows:
    """Return the rows that have weight."""
    weight, added = check_weights(sample_weight, len(y)), check_offset(offset, len(y))
    check_presentations(weight)
    rows = StreamRows(X, y, weight, np.zeros(len(y)) if added is None else added)
    return StreamRows(*(part[weight > 0.0] for part in rows))


def check_functions(offset: Array | None, count: int) -> None:
    """Refuse offsets where there are several latent functions."""
    if count > 1 and offset is not None and np.any(offset):
        raise ValueError(f"offset needs one latent function; {count} classes have one each.")


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
        parts = np.split(np.arange(len(rows.y)), np.flatnonzero(rows.weight > SINGLY) + 1)
        stream, found = self, []
        with one_thread():
            for part in parts:
                stream, log_prob = stream.learn_part(StreamRows(*(values[part] for values in rows)))
                found.append(log_prob)
        return stream, np.concatenate(found)

    def learn_part(self, rows: StreamRows) -> tuple["Stream", Array]:
        """Learn rows of which only the last may count more than `SINGLY`."""
        of_rows = Shifted.rows(self.likelihood, rows.X, rows.offset)
        index, likelihood, share, times = _turns(of_rows, rows.weight)
        about = self.rule, likelihood, self.options
        posterior, found = online.learn(*about, self.posterior, rows.X[index], rows.y[index])
        log_prob, last, more = np.zeros(len(rows.y)), slice(-1, None), np.sum(times - 1.0)
        # Backwards, so that a row presented several times keeps its first presentation's value.
        log_prob[np.arange(len(rows.y))[index][::-1]] = (found / share)[::-1]
        if more:
            own = self.rule, of_rows.subset(last), self.options
            posterior = online.repeat(*own, posterior, rows.X[last], rows.y[last], more)
        return replace(self, posterior=posterior), log_prob

    def sweep(self, rows: StreamRows, sweeps: int) -> "Stream":
        """Learn a table by EP, at the present basis points."""
        of_rows = Shifted.rows(self.likelihood, rows.X, rows.offset)
        index, likelihood, _, times = _turns(of_rows, rows.weight)
        turns = rows.X[index], rows.y[index], times
        posterior, _ = online.sweep(self.rule, likelihood, self.posterior, *turns, sweeps)
        return replace(self, posterior=posterior)

    def recondition(self, kernel: Any) -> "Stream":
        """Replace the prior by that of another kernel."""
        posterior = online.recondition(rule(kernel), self.posterior, self.options.novelty)
        return replace(self, kernel=kernel, posterior=posterior)

    def predict(self, X: Array, offset: Array | None = None) -> Marginals:
        """Return mean and variance at new inputs, the kernel's noise and offsets included."""
        check_variances(self.rule, X)
        q = online.predict(self.rule, self.posterior, X)
        require_numbers(*q)
        return q if offset is None else q._replace(mean=q.mean + offset)


def _turns(likelihood: Likelihood, weight: Array) -> tuple[Any, Likelihood, Array | float, Array]:
    """Return which row is presented when, through which likelihood, with what power, how often.

    The likelihood may differ from row to row.
    A row of weight 2.5 is presented twice and then once through p(y|f)^½. One of more than `SINGLY`
    is presented so often, each time counting for several.
    """
    if np.all(weight == 1.0):
        return slice(None), likelihood, 1.0, weight
    times = np.maximum(weight / SINGLY, 1.0)
    weight = np.minimum(weight, SINGLY)
    count = np.ceil(weight).astype(int)
    index: Any = np.repeat(np.arange(len(weight)), count)
    share = np.ones(len(index))
    share[np.cumsum(count) - 1] = weight - (count - 1)
    presented = likelihood.subset(index)
    if np.any(share < 1.0):
        _check_shares(likelihood)
        presented = presented.power(share)
    return index, presented, share, times[index]


def _check_shares(likelihood: Likelihood) -> None:
    """Refuse a part of a row of a likelihood whose powers have no tilted moments."""
    if not likelihood.concave:
        raise ValueError(
            f"{likelihood.bare!r} is not log-concave: a stream can learn its rows once or several "
            "times, but no part of one. Use whole sample weights."
        )


def streams_to_file(streams: Sequence[Stream]) -> tuple[list[Any], dict[str, Array]]:
    """Return the streams as entries for a file's header, and as arrays."""
    header = [
        {
            "kernel": kernel_to_json(s.kernel),
            "likelihood": likelihood_to_json(s.likelihood),
            **{k: getattr(s.posterior, k) for k in _NUMBERS},
        }
        for s in streams
    ]
    arrays = {f"{i}.{k}": getattr(s.posterior, k) for i, s in enumerate(streams) for k in _PARTS}
    return header, arrays


def streams_from_file(header: Any, arrays: dict[str, Array], fresh: Stream) -> tuple[Stream, ...]:
    """Return the streams that `streams_to_file` has described, given one with nothing learned."""
    streams, columns = [], fresh.posterior.Z.shape[1]
    for i, found in enumerate(header):
        b = len(arrays[f"{i}.mean"])
        shapes = zip(_PARTS, [(b, columns), (b, b), (b,), (b, b)], strict=True)
        parts = {part: stored_array(arrays, f"{i}.{part}", *shape) for part, shape in shapes}
        _check_factors(parts)
        numbers = {name: stored_number(found[name], kind) for name, kind in _NUMBERS.items()}
        if numbers["size"] < 1 or min(numbers[k] for k in ("seen", "changes", "floor")) < 0:
            raise StorageError("a stored stream has impossible counts")
        kernel, posterior = kernel_from_json(found["kernel"]), OnlinePosterior(**parts, **numbers)
        if not is_usable(kernel):
            raise StorageError(f"a stored stream has no kernel of vectors: {short(kernel)}")
        own = _stored_likelihood(found, fresh.likelihood)
        streams.append(replace(fresh, kernel=kernel, likelihood=own, posterior=posterior))
    return tuple(streams)


def _stored_likelihood(found: Any, given: Likelihood) -> Likelihood:
    """Return a stream's likelihood; in files of earlier versions, the one that was given."""
    if "likelihood" not in found:
        return given
    own: Likelihood = likelihood(likelihood_from_json(found["likelihood"]))
    if type(own) is not type(given) or own.expects != given.expects:
        raise StorageError(f"a stored stream has another likelihood than {short(given)}")
    return own


def is_usable(kernel: Any) -> bool:
    """Whether a stream can learn with this kernel: one matrix, of vectors."""
    plain = isinstance(kernel, Kernel) and not isinstance(kernel, CompoundKernel)
    return plain and bool(kernel.requires_vector_input)


def waiting_from_file(arrays: dict[str, Array], columns: int, count: int) -> StreamRows | None:
    """Return the rows of a warm-up that so many functions have not learned yet, if any."""
    if "waiting.X" not in arrays:
        return None
    n = len(arrays["waiting.X"])
    # Tuning takes a covariance of all of them.
    check_memory([n] * count)
    rows = StreamRows(
        stored_array(arrays, "waiting.X", n, columns),
        stored_array(arrays, "waiting.y", n, dtypes="if"),
        stored_array(arrays, "waiting.weight", n),
        # Files of earlier versions have none.
        stored_array({"waiting.offset": np.zeros(n), **arrays}, "waiting.offset", n),
    )
    if not np.all((rows.weight > 0.0) & (rows.weight <= MOST_COPIES)):
        raise StorageError("a stored weight is not positive, or too large")
    return rows


def _check_factors(parts: dict[str, Array]) -> None:
    """Refuse matrices that are no Cholesky factor and no covariance."""
    L, cov = parts["L"], parts["cov"]
    triangular = np.all(np.diagonal(L) > 0.0) and not np.any(np.triu(L, 1))
    # Rounding in both, many times over. Of small numbers the differences cannot overflow.
    small = np.all(np.abs(cov) <= 1.001)
    if not (triangular and small and np.allclose(cov, cov.T, rtol=0.0, atol=1e-6)):
        raise StorageError("a stored stream's matrices are no posterior")
