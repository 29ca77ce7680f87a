"""What both online estimators do: collect a warm-up, tune, learn, save and resume."""

import os
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel
from sklearn.utils.validation import check_is_fitted

from cavity import storage
from cavity.arrays import Array
from cavity.estimators.checkpoints import (
    Memory,
    checkpoint,
    labels_from_header,
    memory_from_file,
    parameters_from_json,
)
from cavity.estimators.coding import log_losses
from cavity.estimators.progress import whole_fit
from cavity.estimators.streams import (
    Stream,
    StreamRows,
    check_functions,
    is_usable,
    take_rows,
)
from cavity.estimators.validation import kernel_rule
from cavity.estimators.versions import VersionedEstimator
from cavity.likelihoods import Likelihood
from cavity.online import OnlinePosterior, Options

Function = tuple[Any, Likelihood]
"""The kernel and the likelihood of a latent function."""


class OnlineEstimator(VersionedEstimator):
    """An estimator of a stream; it keeps a `Memory`, which is replaced as a whole."""

    _memory: Memory

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

    @abstractmethod
    def _lacking(self, y: Array) -> str:
        """Return, in words, why a function's targets cannot tune its kernel; or nothing."""

    @abstractmethod
    def _tuned_on(self, X: Array, y: Array, **given: Array) -> Function:
        """Return the kernel and likelihood that a fit to a function's targets finds."""

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
        fresh = self._fresh(self._untuned())
        return self._learned(memory._replace(streams=fresh), memory.waiting)

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
    def likelihood_(self) -> Any:
        """The likelihood, tuned if there was a warm-up; a list if there are several functions."""
        return _one_or_list([stream.likelihood for stream in self._current.streams])

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

    @property
    def _search(self) -> dict[str, Any]:
        """How to tune."""
        names = ("optimizer", "n_restarts_optimizer", "random_state")
        return {name: getattr(self, name) for name in names}

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

    def _fresh(self, functions: Sequence[Function]) -> tuple[Stream, ...]:
        novelty = self.novelty if self.tol is None else self.tol
        options = Options(int(self.budget), float(novelty), float(self.forget))
        empty = OnlinePosterior.empty(self.n_features_in_)
        return tuple(Stream(kernel, model, options, empty) for kernel, model in functions)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Discard what was learned before, and learn a table in the order of its rows.

        ``X`` has shape (n_samples, n_features), and ``y`` has class labels of any type, or targets.
        ``sample_weight`` is how often each row counts: a row with weight 2 is presented twice, a
        row with weight 0 is left out. ``offset`` is added to each row's latent value.
        """
        self._check_parameters()
        with self._alone():
            rows = take_rows(*self._validated(X, y, reset=True), sample_weight, offset)
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
        check_functions(rows.offset, self._count())
        fresh = Memory(self._fresh(self._tuned(rows)), n_seen=len(rows.y))
        memory = self._learned(fresh, rows)
        if self.sweeps == 1:
            return memory
        pairs = zip(memory.streams, self._targets(rows.y), strict=True)
        again = [stream.sweep(rows._replace(y=y), self.sweeps) for stream, y in pairs]
        return memory._replace(streams=tuple(again))

    def _learn_more(self, rows: StreamRows) -> Self:
        check_functions(rows.offset, self._count())
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

    def _untuned(self) -> list[Function]:
        return [(self._kernel(), self._model())] * self._count()

    def _tuned(self, rows: StreamRows) -> list[Function]:
        """Return kernels and likelihoods tuned on the first rows; or another function's."""
        if not self.warmup:
            return self._untuned()
        rows = StreamRows(*(part[: self.warmup] for part in rows))
        given = {} if np.all(rows.weight == 1.0) else {"sample_weight": rows.weight}
        if np.any(rows.offset):
            given["offset"] = rows.offset
        targets = self._targets(rows.y)
        tuned = [None if self._lacking(y) else self._tuned_on(rows.X, y, **given) for y in targets]
        some = next((function for function in tuned if function is not None), None)
        if some is None:
            warnings.warn(
                f"The warm-up of {len(rows.y)} rows has {self._lacking(targets[0])}, so the kernel "
                "is used as given. Use a longer warm-up to tune it.",
                UserWarning,
                stacklevel=4,
            )
            return self._untuned()
        return [some if function is None else function for function in tuned]

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
        storage.write(path, type(self).__name__, *checkpoint(self, self._memory))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load an estimator from a file that `save` wrote; no code in the file is run."""
        header, arrays = storage.read(path, cls.__name__)
        with storage.refusing(path):
            self = cls(**parameters_from_json(header["parameters"]))
            self._validate_params()
            for name, value in labels_from_header(header).items():
                setattr(self, name, value)
            self.remember(header, arrays)
        return self

    def remember(self, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        """Take over what a file says has been learned."""
        [fresh] = self._fresh([(self.kernel, self._model())])
        about = fresh, self._count(), self._check_coded
        self._memory = memory_from_file(header, arrays, *about)


def _one_or_list(found: list[Any]) -> Any:
    return found[0] if len(found) == 1 else found
