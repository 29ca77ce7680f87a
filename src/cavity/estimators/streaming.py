"""What both online estimators do: wait, tune, learn, remember, save and resume."""

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF, CompoundKernel, ConstantKernel, Kernel
from sklearn.utils.validation import check_is_fitted

from cavity import storage
from cavity.arrays import Array
from cavity.estimators.coding import Tasks
from cavity.estimators.streams import Rows, Stream, streams_from_file, streams_to_file
from cavity.estimators.validation import kernel_rule
from cavity.likelihoods import Likelihood
from cavity.online import Options, empty_state
from cavity.storage import StorageError
from cavity.storage.codecs import (
    kernel_from_json,
    kernel_to_json,
    labels_from_json,
    labels_to_json,
    likelihood_from_json,
    likelihood_to_json,
)

_CODERS = {
    "kernel": (kernel_to_json, kernel_from_json),
    "likelihood": (likelihood_to_json, likelihood_from_json),
}
_PLAIN = (bool, int, float, str, type(None))


class Memory(NamedTuple):
    """All that an online estimator has kept of its stream."""

    streams: tuple[Stream, ...] = ()
    waiting: Rows | None = None
    """Rows of the warm-up, not learned yet."""
    n_seen: int = 0
    loss: float = 0.0
    weight: float = 0.0


@dataclass(frozen=True)
class _Tuner:
    """The dense estimator whose evidence tunes the kernel of one latent function."""

    dense: BaseEstimator

    def kernel(self, rows: Rows, y: Array) -> Kernel | None:
        """Return the tuned kernel; None where the targets are all the same class."""
        if len(np.unique(y)) < 2:
            return None
        return clone(self.dense).fit(rows.X, y, sample_weight=rows.weight).kernel_


class OnlineEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator of a stream; it keeps a `Memory`, which is replaced as a whole."""

    _memory: Memory

    @abstractmethod
    def _model(self) -> Likelihood:
        """Return the likelihood."""

    @abstractmethod
    def _tasks(self) -> Tasks:
        """Return what the latent functions learn."""

    @abstractmethod
    def _count(self) -> int:
        """Return the number of latent functions."""

    @abstractmethod
    def _dense(self, kernel: Kernel) -> BaseEstimator:
        """Return the estimator that tunes this kernel on the warm-up."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_memory")

    @property
    def _streams(self) -> tuple[Stream, ...]:
        """What has been learned; of a warm-up that goes on, with the kernel as it is."""
        check_is_fitted(self)
        return self._current.streams

    @property
    def _current(self) -> Memory:
        memory = self._memory
        if memory.waiting is None:
            return memory
        fresh = memory._replace(streams=self._fresh([self._kernel()] * self._count()), waiting=None)
        return self._learned(fresh, memory.waiting)

    @property
    def n_seen_(self) -> int:
        """Rows seen."""
        check_is_fitted(self)
        return self._memory.n_seen

    @property
    def basis_points_(self) -> Any:
        """Inputs that stand for all that were seen; a list if there are several functions."""
        return _one_or_list([stream.state.Z for stream in self._streams])

    @property
    def kernel_(self) -> Any:
        """The kernel that is learned with; a list if there are several functions."""
        return _one_or_list([stream.kernel for stream in self._streams])

    @property
    def log_evidence_(self) -> float:
        """Running log evidence; the mean over the latent functions."""
        return float(np.mean([stream.state.log_evidence for stream in self._streams]))

    @property
    def prequential_log_loss_(self) -> float:
        """Mean log loss of predictions made just before each row was learned."""
        check_is_fitted(self)
        memory = self._current
        return memory.loss / memory.weight if memory.weight else 0.0

    def _kernel(self) -> Kernel:
        kernel: Kernel = kernel_rule(self.kernel, ConstantKernel() * RBF()).kernel
        if not kernel.requires_vector_input:
            raise ValueError(
                f"{type(self).__name__} learns from rows of numbers; {kernel} is a kernel of other "
                "objects"
            )
        return kernel

    def _options(self) -> Options:
        return Options(int(self.budget), float(self.tol), float(self.forget))

    def _fresh(self, kernels: Sequence[Kernel]) -> tuple[Stream, ...]:
        state = empty_state(self.n_features_in_)
        model, options = self._model(), self._options()
        return tuple(Stream(kernel, model, options, state) for kernel in kernels)

    def _fit_memory(self, rows: Rows) -> Memory:
        """Return what is learned from a whole table."""
        if self.sweeps > 1 and self.forget < 1.0:
            raise ValueError(
                "sweeps > 1 weighs all rows alike, whenever they came: it does not go with "
                f"forget={self.forget}; use sweeps=1 or forget=1"
            )
        kernels = self._tuned(rows.first(self.warmup)) if self.warmup else self._untuned()
        memory = self._learned(Memory(self._fresh(kernels), n_seen=len(rows.y)), rows)
        if self.sweeps == 1:
            return memory
        targets = self._tasks().targets(rows.y)
        again = [
            stream.sweep(rows._replace(y=y), self.sweeps - 1)
            for stream, y in zip(memory.streams, targets, strict=True)
        ]
        return memory._replace(streams=tuple(again))

    def _partial_fit_memory(self, memory: Memory, rows: Rows) -> Memory:
        """Return what is known after further rows of the stream."""
        seen = memory._replace(n_seen=memory.n_seen + len(rows.y))
        if memory.streams:
            return self._learned(seen, rows)
        if not self.warmup:
            return self._learned(seen._replace(streams=self._fresh(self._untuned())), rows)
        rows = rows if memory.waiting is None else memory.waiting.then(rows)
        if len(rows.y) < self.warmup:
            return seen._replace(waiting=rows)
        # The window is the first rows, however many came in the last call.
        kernels = self._tuned(rows.first(self.warmup))
        return self._learned(seen._replace(streams=self._fresh(kernels), waiting=None), rows)

    def _learned(self, memory: Memory, rows: Rows) -> Memory:
        if not len(rows.y):
            return memory
        tasks = self._tasks()
        found = [
            stream.learn(rows._replace(y=y))
            for stream, y in zip(memory.streams, tasks.targets(rows.y), strict=True)
        ]
        losses = tasks.losses(rows.y, [log_prob for _, log_prob in found])
        return memory._replace(
            streams=tuple(stream for stream, _ in found),
            loss=memory.loss + float(losses @ rows.weights),
            weight=memory.weight + float(np.sum(rows.weights)),
        )

    def _untuned(self) -> list[Kernel]:
        return [self._kernel()] * self._count()

    def _tuned(self, rows: Rows) -> list[Kernel]:
        """Return kernels tuned on the warm-up; a class that it lacks takes another's."""
        kernel = self._kernel()
        tuner = _Tuner(self._dense(kernel))
        found = [tuner.kernel(rows, y) for y in self._tasks().targets(rows.y)]
        tuned = next((known for known in found if known is not None), None)
        if tuned is None:
            warnings.warn(
                f"The warm-up of {len(rows.y)} rows has one class only: the kernel is used as "
                "given. A longer warm-up would let it be tuned.",
                UserWarning,
                stacklevel=5,
            )
        other = kernel if tuned is None else tuned
        return [other if known is None else known for known in found]

    def recondition(self, kernel: Any) -> Self:
        """Go on with another kernel, or other hyperparameters, without the data.

        The basis points are kept, and so is what the data have said about the function's values
        there; the prior behind it is exchanged, and ``log_evidence_`` becomes that of the new one.

        Parameters
        ----------
        kernel : kernel object, or a sequence of one for each latent function
        """
        check_is_fitted(self)
        if self._memory.waiting is not None:
            raise ValueError(
                f"nothing is learned before the warm-up of {self.warmup} rows is over, and "
                f"{self.n_seen_} have been seen: set the parameter `kernel` instead"
            )
        kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel] * self._count()
        if len(kernels) != self._count() or not all(_usable(k) for k in kernels):
            raise ValueError(
                f"expected a scikit-learn kernel, or a list of {self._count()}; got {kernel!r}"
            )
        streams = [
            stream.recondition(clone(new))
            for stream, new in zip(self._memory.streams, kernels, strict=True)
        ]
        self._memory = self._memory._replace(streams=tuple(streams))
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that is needed to go on as if nothing had happened.

        The file is replaced in one step: a crash leaves the old one whole.

        Parameters
        ----------
        path : str or path
        """
        check_is_fitted(self)
        memory = self._memory
        streams, arrays = streams_to_file(memory.streams)
        if memory.waiting is not None:
            arrays |= {
                "waiting.X": memory.waiting.X,
                "waiting.y": memory.waiting.y,
                "waiting.weight": memory.waiting.weights,
            }
        header = {
            "parameters": self._parameters_to_json(),
            "n_features": self.n_features_in_,
            "labels": {
                name: labels_to_json(getattr(self, name))
                for name in ("classes_", "feature_names_in_")
                if hasattr(self, name)
            },
            "streams": streams,
            "counts": [memory.n_seen, memory.loss, memory.weight],
        }
        storage.write(path, type(self).__name__, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the estimator of a file that `save` has written; no code of it is run.

        Parameters
        ----------
        path : str or path
        """
        header, arrays = storage.read(path, cls.__name__)
        try:
            return cls._from_file(header, arrays)
        except StorageError as error:
            raise StorageError(f"{os.fspath(path)}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise StorageError(f"{os.fspath(path)}: its contents make no sense ({why})") from error

    def _parameters_to_json(self) -> dict[str, Any]:
        found = {}
        for name, value in self.get_params(deep=False).items():
            if name in _CODERS:
                value = _CODERS[name][0](value)
            elif isinstance(value, np.generic):
                value = value.item()
            elif not isinstance(value, _PLAIN):
                raise StorageError(f"the parameter {name}={value!r} cannot be stored")
            found[name] = value
        return found

    @classmethod
    def _from_file(cls, header: dict[str, Any], arrays: dict[str, Array]) -> Self:
        parameters = {
            name: _CODERS[name][1](value) if name in _CODERS else value
            for name, value in header["parameters"].items()
        }
        self = cls(**parameters)
        self._validate_params()
        self.n_features_in_ = int(header["n_features"])
        for name in ("classes_", "feature_names_in_"):
            if name in header["labels"]:
                setattr(self, name, labels_from_json(header["labels"][name]))
        streams = streams_from_file(
            header["streams"], arrays, self._model(), self._options(), self.n_features_in_
        )
        waiting = None
        if "waiting.X" in arrays:
            waiting = Rows(*(arrays[f"waiting.{part}"] for part in ("X", "y", "weight")))
        if len(streams) != (0 if waiting is not None else self._count()):
            raise StorageError("it has not one stream for each latent function")
        n_seen, loss, weight = header["counts"]
        self._memory = Memory(tuple(streams), waiting, int(n_seen), float(loss), float(weight))
        return self


def _usable(kernel: Any) -> bool:
    return (
        isinstance(kernel, Kernel)
        and not isinstance(kernel, CompoundKernel)
        and bool(kernel.requires_vector_input)
    )


def _one_or_list(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else found
