"""The one loop: it converges, damps, stops and says how it ended."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from cavity.solvers.fixed_point import solve


@dataclass
class Point:
    """A point of the iteration x ← g(x), scored by its distance from g(x)."""

    x: np.ndarray
    image: np.ndarray

    @property
    def residual(self):
        return float(np.max(np.abs(self.image - self.x)))

    @property
    def merit(self):
        return -self.residual

    def target(self):
        return self.image


def evaluator(g):
    return lambda x: Point(x, g(x))


def test_finds_the_fixed_point():
    """cos x = x is met at the root that bisection finds."""
    found = solve(evaluator(np.cos), np.array([1.0]), tol=1e-12, max_iter=200)
    low, high = 0.0, 1.0
    while high - low > 1e-15:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if math.cos(middle) > middle else (low, middle)
    assert found.converged
    # The residual is the error times 1 + sin x.
    np.testing.assert_allclose(found.x, [low], atol=1e-12)


@pytest.mark.parametrize("slope", [-1.5, -2.5, -3.0, -4.0, -20.0])
@pytest.mark.parametrize("memory", [0, 3])
def test_damps_what_oscillates(slope, memory):
    """A map steeper than −1 diverges undamped; shorter steps are found and converge."""
    found = solve(
        evaluator(lambda x: 1.0 + slope * (x - 1.0)),
        np.array([5.0]),
        tol=1e-10,
        max_iter=200,
        memory=memory,
    )
    assert found.converged
    np.testing.assert_allclose(found.x, [1.0], atol=1e-10)


@pytest.mark.parametrize("n", [2, 5])
def test_memory_accelerates(n):
    """With a memory of n + 1 steps a slow linear map of n dimensions takes few evaluations."""
    rng = np.random.default_rng(n)
    A, b = np.diag(np.linspace(0.9, 0.99, n)), rng.normal(size=n)
    truth = np.linalg.solve(np.eye(n) - A, b)
    plain, fast = (
        solve(evaluator(lambda x: A @ x + b), np.zeros(n), tol=1e-9, max_iter=5000, memory=memory)
        for memory in (0, n + 1)
    )
    assert plain.converged
    assert fast.converged
    assert fast.n_iter < 0.1 * plain.n_iter
    # The residual is at least a hundredth of the error.
    np.testing.assert_allclose(fast.x, truth, atol=2e-7)


def test_starts_at_the_solution():
    """A start that solves the equations costs one evaluation."""
    found = solve(evaluator(lambda x: 0.5 * x), np.zeros(3), tol=1e-12, max_iter=50)
    assert found.converged
    assert found.n_iter == 1


@pytest.mark.parametrize("max_iter", [1, 2, 5])
def test_stops_at_the_budget(max_iter):
    """No more evaluations than allowed are made, and the end says so."""
    calls = []

    def evaluate(x):
        calls.append(x)
        return Point(x, 0.9 * x)

    found = solve(evaluate, np.ones(2), tol=1e-12, max_iter=max_iter)
    assert len(calls) == found.n_iter == max_iter
    assert not found.converged
    assert "without converging" in str(found)


def test_never_returns_a_worse_point():
    """Where every step is worse, the start comes back, unconverged and after few tries."""
    found = solve(evaluator(lambda x: x + np.exp(x**2)), np.array([0.1]), tol=1e-6, max_iter=500)
    assert not found.converged
    assert found.n_iter < 50
    assert found.residual <= math.exp(0.01) + 1e-12


def test_walks_around_nan():
    """A step into NaN is taken back and shortened until the function is defined."""

    def g(x):
        with np.errstate(invalid="ignore"):
            return x - 2.8 * x * np.log(x)

    found = solve(evaluator(g), np.array([3.0]), tol=1e-10, max_iter=200)
    assert found.converged
    np.testing.assert_allclose(found.x, [1.0], atol=1e-10)


def test_state_belongs_to_the_point():
    """What is returned was evaluated at the point returned."""
    found = solve(evaluator(lambda x: 2.0 - 2.0 * x), np.array([3.0]), tol=1e-8, max_iter=3)
    np.testing.assert_array_equal(found.state.x, found.x)
    assert found.residual == found.state.residual


def test_target_is_asked_only_at_accepted_points():
    """The cost of a full step is paid once per accepted point, never at a trial."""
    asked = []

    class Costly(Point):
        def target(self):
            asked.append(float(self.x[0]))
            return self.image

    def evaluate(x):
        return Costly(x, 3.5 - 2.5 * x)

    found = solve(evaluate, np.array([5.0]), tol=1e-10, max_iter=200)
    assert found.converged
    assert len(set(asked)) < found.n_iter - 1
    assert float(found.x[0]) not in asked


def test_patience_gives_up_on_rounding():
    """Where neither residual nor merit gets better, a patient loop stops and says so."""

    class Stuck(Point):
        residual, merit = 1e-3, 0.0

    found = solve(lambda x: Stuck(x, x + 1e-3), np.array([1.0]), tol=1e-8, max_iter=100, patience=5)
    assert not found.converged
    assert found.n_iter == 7
