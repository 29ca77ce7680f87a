"""What a file says of an estimator's parts: each checked before anything is computed from it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cavity.arrays import Array
from cavity.estimators.process import Coverage, FittedProcess
from cavity.estimators.sizes import LARGEST
from cavity.inference import Report
from cavity.likelihoods import Likelihood, Shifted, Trend
from cavity.storage import stored_array, stored_number, stored_text


def scaling(
    arrays: Mapping[str, Array], processes: list[FittedProcess], classes: Array | None
) -> dict[str, Array]:
    """Return how targets were scaled, one number or one for each target."""
    targets = {len(process.fits) for process in processes}
    found = {name: arrays[name] for name in ("origin", "scale", "noise")}
    found["most_noise"] = arrays.get("most_noise", found["noise"])
    shapes = [(), *((k,) for k in targets)]
    if targets == {0} or (classes is not None and targets != {1}):
        raise ValueError("its functions do not fit its targets")
    if not all(a.dtype == np.float64 and a.shape in shapes for a in found.values()):
        raise ValueError("its scaling does not fit its targets")
    found["noise"] = np.unique([found["noise"], found.pop("most_noise")]).squeeze()
    _check_scaling(**found)
    return {name: array[()] for name, array in found.items()}


def _check_scaling(origin: Array, scale: Array, noise: Array) -> None:
    """Refuse numbers that targets of a size that is accepted do not have."""
    if not (all(np.isfinite(a).all() for a in (origin, scale, noise)) and np.all(scale > 0.0)):
        raise ValueError("its scaling is not of positive, finite numbers")
    if max(np.max(np.abs(origin)), np.max(scale)) > LARGEST or np.any(noise < 0.0):
        raise ValueError("its scaling is too large, or its noise negative")
    # In the user's units; a product of plain floats does not complain.
    if not np.isfinite(float(np.max(noise)) * float(np.max(scale)) ** 2):
        raise ValueError("its noise is too large")


class ProcessArrays(NamedTuple):
    """The arrays of one process."""

    all: Mapping[str, Array]
    k: int

    def count(self, name: str) -> int:
        """Return the length of an array."""
        return len(self.all[f"{self.k}_{name}"])

    def has(self, name: str) -> bool:
        """Whether there is such an array."""
        return f"{self.k}_{name}" in self.all

    def get(self, name: str, *shape: int, least: float = -np.inf) -> Array:
        """Return an array once it has this shape and is finite, with no number below the least."""
        return stored_array(self.all, f"{self.k}_{name}", *shape, least=least)


def report_of(found: Sequence[Any]) -> Report:
    """Return how an inference ended."""
    converged, n_iter, residual, message = found
    if not isinstance(converged, bool):
        raise ValueError("its report does not say whether it converged")
    return Report(converged, stored_number(n_iter, int), float(residual), stored_text(message))


def coverage_of(left_over: Any, gain: Any) -> Coverage:
    """Return how well inducing points stand for a table."""
    known = None if gain is None else stored_number(gain, float)
    return Coverage(stored_number(left_over, float), known)


def with_trend(model: Likelihood, arrays: ProcessArrays, n_features: int) -> Likelihood:
    """Return the likelihood of rows with a trend, if there is one."""
    if not arrays.has("trend_beta"):
        return model
    centre, spread = (arrays.get(f"trend_{name}", n_features) for name in ("centre", "spread"))
    beta = arrays.get("trend_beta", 1 + n_features)
    unit, bound = (float(arrays.get(f"trend_{name}")) for name in ("unit", "bound"))
    if not (np.all(spread > 0.0) and unit > 0.0):
        raise ValueError("its trend has units that are not positive")
    trend = Trend(centre, spread, unit, beta, bound)
    return Shifted(model, 0.0, trend, np.empty((0, 1 + n_features)))
