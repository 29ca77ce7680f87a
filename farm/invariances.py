"""Changes of a problem that must not change its answer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from farm.draw import Spec, kernel_of, permutation_of, with_noise

__all__ = ["CHANGES", "Case", "changed"]

_MOST_COPIES = 4.0


class Case(NamedTuple):
    """A table with new rows, and the kernel that goes with it."""

    kernel: Any
    X: Any
    y: Any
    weight: Any
    X_new: Any

    def with_noise(self, spec: Spec) -> "Case":
        """Return the case with noise in the kernel, under which whole weights repeat rows."""
        weight = None if self.weight is None else np.minimum(self.weight, _MOST_COPIES)
        return self._replace(kernel=with_noise(spec, self.kernel), weight=weight)


def _kernel(spec: Spec, noisy: bool, columns: Any = None) -> Any:
    kernel = kernel_of(spec, columns=columns)
    return with_noise(spec, kernel) if noisy else kernel


def rows(spec: Spec, case: Case, noisy: bool) -> Case:
    """Put the rows into another order."""
    order = permutation_of(spec, len(case.y), 0)
    weight = None if case.weight is None else case.weight[order]
    return case._replace(X=case.X[order], y=case.y[order], weight=weight)


def columns(spec: Spec, case: Case, noisy: bool) -> Case:
    """Put the columns into another order, their length scales with them."""
    order = permutation_of(spec, spec["d"], 1)
    if np.all(order == np.arange(spec["d"])):
        return case
    kernel = _kernel(spec, noisy, order)
    return case._replace(kernel=kernel, X=case.X[:, order], X_new=case.X_new[:, order])


def units(spec: Spec, case: Case, noisy: bool) -> Case:
    """Measure inputs and length scales in another unit."""
    up = 3.0 if spec["unit"] < 0.0 else -3.0
    kernel = _kernel(spec | {"unit": spec["unit"] + up}, noisy)
    return case._replace(kernel=kernel, X=case.X * 10.0**up, X_new=case.X_new * 10.0**up)


def copies(spec: Spec, case: Case, noisy: bool) -> Case:
    """Write rows of whole weights as often as they count."""
    if case.weight is None or np.any(case.weight != np.round(case.weight)):
        return case
    if case.weight.sum() > 6 * len(case.y):
        return case
    index = np.repeat(np.arange(len(case.y)), case.weight.astype(int))
    return case._replace(X=case.X[index], y=case.y[index], weight=None)


def absent(spec: Spec, case: Case, noisy: bool) -> Case:
    """Add a row that weighs nothing."""
    weight = np.ones(len(case.y)) if case.weight is None else case.weight
    return case._replace(
        X=np.vstack([case.X, case.X_new[:1]]),
        y=np.append(case.y, case.y[:1]),
        weight=np.append(weight, 0.0),
    )


CHANGES: dict[str, Callable[[Spec, Case, bool], Case]] = {
    "order of rows": rows,
    "order of columns": columns,
    "unit of inputs": units,
    "copies for weights": copies,
    "a row without weight": absent,
}
"""Named changes; each takes the problem, its case and whether its kernel has noise.

One that has nothing to change returns the case itself.
"""


def changed(spec: Spec, case: Case, noisy: bool, names: list[str]) -> tuple[str, Case]:
    """Return the first of these changes that changes something; new rows always do."""
    made = ((name, CHANGES[name](spec, case, noisy)) for name in [*names, "a row without weight"])
    return next((name, other) for name, other in made if other is not case)
