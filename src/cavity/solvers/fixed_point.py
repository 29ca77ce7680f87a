"""The one loop: from a start to a fixed point, with damping, and a report on how it ended.

The caller defines how good a point is and where the next full step would lead; the loop decides
how much of that step to take and when to stop.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

from cavity.arrays import Array, add_to_diagonal, matmul, namespace

_SMALLEST_STEP = 1e-4
_GROWTH = 1.4


class Iterate(Protocol):
    """What the loop needs to know about a point."""

    @property
    def residual(self) -> float:
        """How far the point is from solving the equations; dimensionless."""

    @property
    def merit(self) -> float:
        """Score that a step may not lower (beyond rounding)."""

    def target(self) -> Array:
        """Where a full step would lead; needed only once the point is accepted."""


S = TypeVar("S", bound=Iterate)


@dataclass(frozen=True)
class Solution(Generic[S]):
    """Where an iteration stopped: the last accepted point, and what its evaluation returned."""

    x: Array
    state: S
    converged: bool
    n_iter: int
    residual: float

    def __str__(self) -> str:
        how = "converged" if self.converged else "stopped without converging"
        return f"{how} after {self.n_iter} iterations, residual {self.residual:.1e}"


def solve(
    evaluate: Callable[[Array], S],
    x: Array,
    *,
    tol: float,
    max_iter: int,
    memory: int = 0,
    patience: int | None = None,
) -> Solution[S]:
    """Iterate towards the point where ``target(x) = x``.

    Each step goes the whole way to the target while the merit does not fall, and half as far
    after a fall; after a step that is taken the next one may be longer, up to the whole way.
    With a memory, whole steps are extrapolated from the last few (Anderson acceleration).

    Parameters
    ----------
    evaluate : callable
        Maps a point to its `Iterate`.
    x : array
        Where to start.
    tol : float
        The residual at which to stop.
    max_iter : int
        Maximum number of evaluations.
    memory : int, default 0
        Number of earlier steps to extrapolate from.
    patience : int, optional
        Stop after this many steps without a smaller residual or a better merit.
    """
    state = evaluate(x)
    step, n_iter, history = 1.0, 1, _History(memory)
    best, idle = state, 0
    while state.residual > tol and n_iter < max_iter and step > _SMALLEST_STEP:
        if patience is not None and idle > patience:
            break
        plain = state.target() - x
        change = history.extrapolate(x, plain, step)
        trial, n_iter = evaluate(x + change), n_iter + 1
        while not _no_worse(trial, state) and n_iter < max_iter and step > _SMALLEST_STEP:
            # Discard the extrapolation: fall back on the plain direction.
            step *= 0.5
            change = step * plain
            history.forget()
            trial, n_iter = evaluate(x + change), n_iter + 1
        if not _no_worse(trial, state):
            break
        x, state, step = x + change, trial, min(1.0, _GROWTH * step)
        best, idle = (state, 0) if _gains(state, best) else (best, idle + 1)
    return Solution(x, state, state.residual <= tol, n_iter, state.residual)


def contraction(moved: float, followed: float) -> float:
    """Estimate the factor by which one round brings points closer together, doubled to be safe.

    The image of a point is closer to the fixed point by this factor than the point itself.
    ``moved`` is the distance between two points, ``followed`` that between their images.
    """
    return min(1.0, 2.0 * followed / moved) if moved else 1.0


class _History:
    """The last points and plain steps, and the step that they suggest together."""

    def __init__(self, memory: int) -> None:
        self._points: deque[tuple[Array, Array]] = deque(maxlen=memory + 1)

    def forget(self) -> None:
        """Start afresh."""
        self._points.clear()

    def extrapolate(self, x: Array, plain: Array, step: float) -> Array:
        """Return the step to where the linear combination of the last plain steps is smallest."""
        self._points.append((x, plain))
        if len(self._points) < 2:
            return step * plain
        xp = namespace(x)
        pairs = list(pairwise(self._points))
        dx = xp.stack([b[0] - a[0] for a, b in pairs])
        df = xp.stack([b[1] - a[1] for a, b in pairs])
        gram = matmul(df, df.T)
        # Points on a line make the normal equations singular; a tiny ridge helps.
        ridge = 1e-12 * float(xp.linalg.trace(gram)) + float(xp.finfo(x.dtype).smallest_normal)
        weights = xp.linalg.solve(add_to_diagonal(gram, ridge), matmul(df, plain))
        return step * plain - matmul((dx + step * df).T, weights)


def _gains(state: Iterate, best: Iterate) -> bool:
    """Whether there is progress beyond rounding."""
    better = best.merit + 1e-6 * (1.0 + abs(best.merit))
    return state.residual < best.residual or state.merit > better


def _no_worse(trial: Iterate, state: Iterate) -> bool:
    """Whether a step may be taken; NaN is always worse.

    Close to the solution a merit changes less than it is rounded, and the residual decides.
    """
    rounding = 1e-9 if trial.residual < state.residual else 1e-12
    return trial.merit >= state.merit - rounding * (1.0 + abs(state.merit))
