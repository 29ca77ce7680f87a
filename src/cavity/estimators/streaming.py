"""What both online estimators do: collect a warm-up, tune, learn, save and resume."""

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel
from sklearn.utils.validation import check_is_fitted

from cavity import storage
from cavity.arrays import Array
from cavity.estimators.coding import log_losses
from cavity.estimators.progress import whole_fit
from cavity.estimators.streams import (
    Stream,
    StreamRows,
    check_labels,
    is_usable,
    stored_number,
    streams_from_file,
    streams_to_file,
    take_rows,
    waiting_from_file,
)
from cavity.estimators.validation import kernel_rule
from cavity.estimators.versions import VersionedEstimator
from cavity.likelihoods import Likelihood
from cavity.online import OnlinePosterior, Options
from cavity.storage import StorageError, codecs

_CODERS = {
    "kernel": (codecs.kernel_to_json, codecs.kernel_from_json),
    "likelihood": (codecs.likelihood_to_json, codecs.likelihood_from_json),
}
_LABELS = ("classes_", "feature_names_in_")
_PLAIN = (bool, int, float, str, type(None))


class Memory(NamedTuple):
    """What an online estimator keeps of its stream."""

    streams: tuple[Stream, ...] = ()
    waiting: StreamRows | None = None
    """Rows of the warm-up, not learned yet."""
    n_seen: int = 0
    loss: float = 0.0
    weight: float = 0.0


class OnlineEstimator(VersionedEstimator):
    """An estimator of a stream; it keeps a `Memory`, which is replaced as a whole."""

    _memory: Memory
    _dense_class: ClassVar[type[BaseEstimator]]
    """The estimator that tunes the kernel on the warm-up."""
    _own_parameter: ClassVar[str]
    """The parameter, besides those of tuning, that it shares with this one."""

    @abstractmethod
    def _validated(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        """Return checked inputs and targets."""

    @abstractmethod
    def _coded(self, rows: StreamRows) -> StreamRows:
        """Return a table with coded targets, after checking which targets there are."""

    @abstractmethod
    def _check_coded(self, y: Array) -> None:
        """Refuse coded targets that a file cannot rightly hold."""

    @abstractmethod
    def _model(self) -> Likelihood:
        """Return the likelihood."""

    @abstractmethod
    def _targets(self, y: Array) -> list[Array]:
        """Return what each latent function learns of coded targets."""

    def _count(self) -> int:
        """Return the number of latent functions."""
        return len(self._targets(np.empty(0)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_memory")

    @property
    def _current(self) -> Memory:
        """What has been learned; during a warm-up, with the kernel as given."""
        check_is_fitted(self)
        memory = self._memory
        if memory.waiting is None:
            return memory
        return self._learned(memory._replace(streams=self._fresh(self._untuned())), memory.waiting)

    @property
    def n_seen_(self) -> int:
        """Rows seen."""
        check_is_fitted(self)
        return self._memory.n_seen

    @property
    def basis_points_(self) -> Any:
        """The inputs that are kept; a list if there are several functions."""
        return _one_or_list([stream.posterior.Z for stream in self._current.streams])

    @property
    def kernel_(self) -> Any:
        """The kernel, tuned if there was a warm-up; a list if there are several functions."""
        return _one_or_list([stream.kernel for stream in self._current.streams])

    @property
    def log_evidence_(self) -> float:
        """Running log evidence: the sum of each example's log probability given those before it.

        After several sweeps it is EP's; for several classes, the mean over the binary problems.
        """
        return float(np.mean([stream.posterior.log_evidence for stream in self._current.streams]))

    @property
    def prequential_log_loss_(self) -> float:
        """Mean log loss of predictions made just before each row was learned."""
        memory = self._current
        return memory.loss / memory.weight if memory.weight else 0.0

    def _kernel(self) -> Kernel:
        kernel: Kernel = kernel_rule(self.kernel, ConstantKernel() * RBF()).kernel
        if not kernel.requires_vector_input:
            raise ValueError(
                f"{type(self).__name__} learns from rows of numbers; {kernel} is a kernel "
                "for other objects"
            )
        return kernel

    def _check_parameters(self) -> None:
        self._validate_params()
        if self.tol is not None:
            warnings.warn(
                f"The parameter tol is now called novelty: use novelty={self.tol!r}. The old name "
                "will be removed.",
                FutureWarning,
                stacklevel=3,
            )

    def _fresh(self, kernels: Sequence[Kernel]) -> tuple[Stream, ...]:
        novelty = self.novelty if self.tol is None else self.tol
        options = Options(int(self.budget), float(novelty), float(self.forget))
        empty, model = OnlinePosterior.empty(self.n_features_in_), self._model()
        return tuple(Stream(kernel, model, options, empty) for kernel in kernels)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Discard what was learned before, and learn a table in the order of its rows.

        ``X`` has shape (n_samples, n_features), and ``y`` has class labels of any type, or real
        targets. ``sample_weight`` is how often each row counts: a row with weight 2 is presented
        twice, a row with weight 0 is left out.
        """
        self._check_parameters()
        with self._alone():
            rows = take_rows(*self._validated(X, y, reset=True), sample_weight)
            if not len(rows.y):
                raise ValueError("All sample weights are zero: there is nothing to learn from.")
            self._memory = self._fit_memory(self._coded(rows))
        return self

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let one thread after the other learn; what fails or is interrupted changes nothing."""
        # A dict's own method, in which no other thread can interfere.
        with self.__dict__.setdefault("_lock", RLock()), whole_fit(self):
            yield

    def _fit_memory(self, rows: StreamRows) -> Memory:
        if self.sweeps > 1 and self.forget < 1.0:
            raise ValueError(
                "sweeps > 1 gives all rows the same weight, so it cannot be combined with "
                f"forget={self.forget}; use sweeps=1 or forget=1"
            )
        fresh = Memory(self._fresh(self._tuned(rows)), n_seen=len(rows.y))
        memory = self._learned(fresh, rows)
        if self.sweeps == 1:
            return memory
        pairs = zip(memory.streams, self._targets(rows.y), strict=True)
        again = [stream.sweep(rows._replace(y=y), self.sweeps) for stream, y in pairs]
        return memory._replace(streams=tuple(again))

    def _learn_more(self, rows: StreamRows) -> Self:
        memory: Memory = getattr(self, "_memory", Memory())
        seen = memory._replace(n_seen=memory.n_seen + len(rows.y), waiting=None)
        if memory.waiting is not None:
            rows = StreamRows(*map(np.concatenate, zip(memory.waiting, rows, strict=True)))
        if memory.streams:
            self._memory = self._learned(seen, rows)
        elif len(rows.y) < self.warmup:
            self._memory = seen._replace(waiting=rows)
        else:
            fresh = seen._replace(streams=self._fresh(self._tuned(rows)))
            self._memory = self._learned(fresh, rows)
        return self

    def _learned(self, memory: Memory, rows: StreamRows) -> Memory:
        if not len(rows.y):
            return memory
        pairs = zip(memory.streams, self._targets(rows.y), strict=True)
        found = [stream.learn(rows._replace(y=y)) for stream, y in pairs]
        losses = log_losses(rows.y, [log_prob for _, log_prob in found])
        return memory._replace(
            streams=tuple(stream for stream, _ in found),
            loss=memory.loss + float(losses @ rows.weight),
            weight=memory.weight + float(np.sum(rows.weight)),
        )

    def _untuned(self) -> list[Kernel]:
        return [self._kernel()] * self._count()

    def _tuned(self, rows: StreamRows) -> list[Kernel]:
        """Return kernels tuned on the first rows; a class without any uses another's kernel."""
        if not self.warmup:
            return self._untuned()
        rows = StreamRows(*(part[: self.warmup] for part in rows))
        weight = None if np.all(rows.weight == 1.0) else rows.weight
        names = ("optimizer", "n_restarts_optimizer", "random_state", self._own_parameter)
        dense = self._dense_class(self._kernel(), **{name: getattr(self, name) for name in names})
        found = [
            clone(dense).fit(rows.X, y, sample_weight=weight).kernel_
            if len(np.unique(y)) > 1
            else None
            for y in self._targets(rows.y)
        ]
        tuned = next((kernel for kernel in found if kernel is not None), None)
        if tuned is None:
            warnings.warn(
                f"The warm-up of {len(rows.y)} rows has only one class, so the kernel is used as "
                "given. Use a longer warm-up to tune it.",
                UserWarning,
                stacklevel=4,
            )
            return self._untuned()
        return [tuned if kernel is None else kernel for kernel in found]

    def recondition(self, kernel: Any) -> Self:
        """Continue with another kernel, or other hyperparameters, without the data.

        The information in the data about the function at the basis points is kept and combined with
        the new prior, and ``log_evidence_`` becomes that of the new kernel. ``kernel`` may be a
        list of kernels, one for each latent function.
        """
        check_is_fitted(self)
        with self._alone():
            self._recondition(kernel)
        return self

    def _recondition(self, kernel: Any) -> None:
        if self._memory.waiting is not None:
            raise ValueError(
                f"nothing has been learned yet: {self.n_seen_} of the {self.warmup} rows of the "
                "warm-up have been seen; set the parameter `kernel` instead"
            )
        kernels = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel] * self._count()
        if len(kernels) != self._count() or not all(is_usable(k) for k in kernels):
            raise ValueError(
                f"expected a scikit-learn kernel, or a list of {self._count()}; got {kernel!r}"
            )
        pairs = zip(self._memory.streams, kernels, strict=True)
        streams = tuple(stream.recondition(clone(new)) for stream, new in pairs)
        self._memory = self._memory._replace(streams=streams)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything that is needed to resume later, bit for bit, to a file.

        The file is replaced in one step: a crash leaves the old one intact.
        """
        check_is_fitted(self)
        memory = self._memory
        streams, arrays = streams_to_file(memory.streams)
        if memory.waiting is not None:
            arrays |= {f"waiting.{name}": part for name, part in memory.waiting._asdict().items()}
        labels = {name: getattr(self, name) for name in _LABELS if hasattr(self, name)}
        header = {
            "parameters": self._parameters_to_json(),
            "n_features": self.n_features_in_,
            "labels": {name: codecs.labels_to_json(found) for name, found in labels.items()},
            "streams": streams,
            "counts": [memory.n_seen, memory.loss, memory.weight],
        }
        storage.write(path, type(self).__name__, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load an estimator from a file that `save` wrote; no code in the file is run."""
        header, arrays = storage.read(path, cls.__name__)
        try:
            return cls._from_file(header, arrays)
        except StorageError as error:
            raise StorageError(f"{os.fspath(path)}: {error}") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            why = f"its contents are not valid ({storage.short(error)})"
            raise StorageError(f"{os.fspath(path)}: {why}") from error

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
        if "tol" in parameters and "novelty" not in parameters:
            # Earlier versions wrote it under this name.
            parameters["novelty"] = parameters.pop("tol")
        self = cls(**parameters)
        self._validate_params()
        if self.kernel is not None and not is_usable(self.kernel):
            raise StorageError(f"its kernel is not one of vectors: {storage.short(self.kernel)}")
        self.n_features_in_ = stored_number(header["n_features"], int)
        for name in set(_LABELS) & set(header["labels"]):
            setattr(self, name, codecs.labels_from_json(header["labels"][name]))
        classes, names = (getattr(self, name, None) for name in _LABELS)
        check_labels(classes, names, self.n_features_in_)
        streams = streams_from_file(header["streams"], arrays, *self._fresh([self.kernel]))
        waiting = waiting_from_file(arrays, self.n_features_in_)
        if len(streams) != (0 if waiting is not None else self._count()):
            raise StorageError("it does not have one stream for each latent function")
        if waiting is not None:
            self._check_coded(waiting.y)
        counts = zip(header["counts"], (int, float, float), strict=True)
        n_seen, loss, weight = (stored_number(found, kind) for found, kind in counts)
        if min(n_seen, weight) < 0:
            raise StorageError("its counts are negative")
        self._memory = Memory(streams, waiting, n_seen, loss, weight)
        return self


def _one_or_list(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else found
