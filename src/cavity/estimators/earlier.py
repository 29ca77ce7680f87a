"""Pickles of version 0.1, most of whose classes are gone, as estimators of this version."""

import os
import pickle
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cavity.estimators.classifier import GaussianProcessClassifier
from cavity.estimators.online import OnlineGaussianProcessClassifier
from cavity.estimators.online_regressor import OnlineGaussianProcessRegressor
from cavity.estimators.regressor import GaussianProcessRegressor
from cavity.estimators.stored import Stored, restored
from cavity.estimators.validation import is_precomputed
from cavity.likelihoods import Step
from cavity.online import OnlinePosterior
from cavity.storage import StorageError, refusing, short
from cavity.storage.codecs import kernel_to_json

_BATCH = GaussianProcessClassifier, GaussianProcessRegressor
_ONLINE = OnlineGaussianProcessClassifier, OnlineGaussianProcessRegressor
_ESTIMATORS = {one.__name__: one for one in (*_BATCH, *_ONLINE)}
_PARTS = OnlinePosterior._fields
_KEPT = ("cavity.likelihoods.", "cavity.inference.")
"""Rooms whose objects users give as parameters."""


def load_pickle(path: str | os.PathLike[str]) -> Any:
    """Open a pickle, also one that version 0.1 has written.

    Fitted models of 0.1, by themselves or as steps of a pipeline, predict what they predicted;
    nothing is fitted again. Streams learn on. Leave-one-out and learning curves of a classifier
    or regressor need another ``fit``. A pickle runs code: open only those that you have written.

    Parameters
    ----------
    path : str or path-like
        What ``pickle.dump`` has written.

    Examples
    --------
    >>> import pickle, tempfile
    >>> from pathlib import Path
    >>> from cavity import GaussianProcessClassifier
    >>> from cavity.estimators import load_pickle
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.pickle"
    ...     _ = path.write_bytes(pickle.dumps(GaussianProcessClassifier()))
    ...     load_pickle(path)
    GaussianProcessClassifier()
    """
    whole = Path(path).read_bytes()
    if b"_cavity_version" in whole:
        return pickle.loads(whole)
    with Path(path).open("rb") as file, refusing(path):
        try:
            return _Opener(file).load()
        except (pickle.UnpicklingError, EOFError) as error:
            raise StorageError(f"no pickle, or a damaged one ({short(error)})") from error


class _Relic:
    """What is left of an object whose class is gone: the parts it was made of, and attributes."""

    parts: tuple[Any, ...]

    def __new__(cls, *parts: Any) -> "_Relic":
        found = super().__new__(cls)
        found.parts = parts
        return found

    def __setstate__(self, state: Any) -> None:
        for attributes in state if isinstance(state, tuple) else (state,):
            vars(self).update(attributes or {})


class _Opener(pickle.Unpickler):
    """Reads estimators of version 0.1 into those of this one, and the rest of it as relics."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the class of this name, or what takes its place."""
        if not module.startswith("cavity."):
            return super().find_class(module, name)
        if name in _ESTIMATORS:
            kind = _ESTIMATORS[name]
            return type(name, (kind,), {"__setstate__": lambda self, s: _arrive(self, kind, s)})
        if name == "Step":
            return type(name, (), {"__new__": lambda cls: Step()})
        if module.startswith(_KEPT) and hasattr(found := import_module(module), name):
            # Parts of a fit are tuples, and have other fields now.
            kind = getattr(found, name)
            return _Relic if issubclass(kind, tuple) else kind
        return _Relic


def _arrive(estimator: Any, kind: type, state: Mapping[str, Any]) -> None:
    """Make what has been unpickled an estimator of this version."""
    estimator.__class__ = kind
    old = {name: value for name, value in state.items() if not name.startswith("_")}
    processes = state.get("_latents") or ([state["_latent"]] if "_latent" in state else [])
    # Parameters that version 0.1 did not have.
    vars(estimator).update(vars(kind()) | old)
    if "_memory" in state:
        # Its `tol` is what `novelty` is now.
        estimator.novelty, estimator.tol = old["tol"], None
        estimator.remember(*_of_stream(*state["_memory"].parts))
    elif processes:
        header, arrays = _of_fit(processes, state)
        restored(estimator, header, arrays, old.get("classes_"))
        vars(estimator).update(old)


def _of_fit(processes: list[Any], state: Mapping[str, Any]) -> Stored:
    """Return what a file holds of a fitted classifier or regressor."""
    if is_precomputed(state["kernel"]):
        raise StorageError("a model with kernel='precomputed' of version 0.1: fit it again")
    about: list[Any] = []
    arrays: dict[str, Any] = {}
    for k, process in enumerate(processes):
        found = {"X": process.evidence.X}
        for j, posterior in enumerate(fit.posterior for fit in process.fits):
            tau, nu = posterior.sites.parts
            found |= {f"tau_{j}": tau, f"nu_{j}": nu, f"alpha_{j}": posterior.alpha}
        arrays |= {f"{k}_{name}": np.asarray(array) for name, array in found.items()}
        reports = [fit.report.parts for fit in process.fits]
        evidence = [float(fit.log_evidence) for fit in process.fits]
        own = {"kernel": kernel_to_json(process.rule.kernel), "dense": True, "coverage": None}
        about.append(own | {"log_evidence": evidence, "reports": reports})
    noise = np.atleast_1d(getattr(processes[0].evidence.likelihood, "noise_variance", 0.0))
    units = {"origin": state.get("_mean", 0.0), "scale": state.get("_scale", 1.0)}
    units |= {"noise": np.min(noise), "most_noise": np.max(noise)}
    arrays |= {name: np.asarray(value, dtype=np.float64) for name, value in units.items()}
    return {"fit": {"n_features": state["n_features_in_"], "processes": about}}, arrays


def _of_stream(streams: Any, waiting: Any, *counts: Any) -> Stored:
    """Return what a file holds of a stream."""
    header: list[Any] = []
    arrays: dict[str, Any] = {}
    for k, stream in enumerate(streams):
        found = dict(zip(_PARTS, stream.state.parts, strict=True))
        arrays |= {f"{k}.{name}": found.pop(name) for name in _PARTS[:4]}
        header.append(found | {"kernel": kernel_to_json(stream.kernel)})
    if waiting is not None:
        X, y, weight = waiting.parts
        weight = np.ones(len(y)) if weight is None else weight
        arrays |= {"waiting.X": X, "waiting.y": y, "waiting.weight": weight}
    return {"streams": header, "counts": counts}, arrays
