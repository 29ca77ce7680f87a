"""Problems as plain values: what is drawn, and the tables and kernels that it stands for."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as k

__all__ = [
    "CHOICES",
    "Spec",
    "draw",
    "inputs_of",
    "kernel_of",
    "labels_of",
    "rng_of",
    "targets_of",
    "weights_of",
    "with_noise",
]

Spec = dict[str, Any]
"""A problem: numbers and names only, so that it can be printed, kept and made smaller."""

CHOICES: dict[str, tuple[str, ...]] = {
    "inputs": (
        "normal",
        "repeated",
        "grid",
        "constant column",
        "one place",
        "far",
        "outlier",
        "collinear",
        "mixed units",
        "clusters",
    ),
    "labels": ("separable", "noisy", "random", "lonely"),
    "targets": ("smooth", "constant", "outlier", "steps", "noise"),
    "weights": ("none", "whole", "fractions", "zeros", "heavy"),
    "kernel": (
        "rbf",
        "ard",
        "matern12",
        "matern32",
        "matern52",
        "rational",
        "linear",
        "sum",
        "product",
        "power",
        "constant",
    ),
}
"""What a problem can be made of; the first of each is the simplest."""
_LOGS = {"amplitude": (-3.0, 5.0), "scale": (-2.0, 2.5), "unit": (-8.0, 8.0), "noise": (-5.0, 0.5)}
"""Powers of ten: of the prior's variance, of length scales, of the inputs' unit, of noise."""


def draw(kind: str, seed: int, number: int, largest: int) -> Spec:
    """Return the problem of this kind and number."""
    rng = np.random.default_rng([seed, number])
    spec: Spec = {"kind": kind, "seed": int(rng.integers(2**31))}
    spec |= {"n": int(rng.integers(4, largest + 1)), "d": int(rng.integers(1, 5))}
    spec |= {name: str(rng.choice(of)) for name, of in CHOICES.items()}
    logs = {name: round(float(rng.uniform(*ends)), 2) for name, ends in _LOGS.items()}
    if rng.random() < 0.5:
        # Half of all problems are of the usual size: not all trouble is in the extremes.
        logs |= {"amplitude": logs["amplitude"] / 5.0, "scale": logs["scale"] / 3.0, "unit": 0.0}
    return spec | logs


def rng_of(spec: Spec, purpose: int) -> np.random.Generator:
    """Return the random numbers of one part of a problem."""
    return np.random.default_rng([spec["seed"], purpose])


_INPUTS: dict[str, Callable[[Any, Any], Any]] = {
    "normal": lambda X, rng: X,
    "repeated": lambda X, rng: X[rng.integers(0, 1 + len(X) // 2, size=len(X))],
    "grid": lambda X, rng: np.round(X),
    "constant column": lambda X, rng: np.column_stack([X[:, :-1], np.ones(len(X))]),
    "one place": lambda X, rng: np.ones_like(X),
    "far": lambda X, rng: X + 1e5,
    "outlier": lambda X, rng: np.vstack([1e6 * X[:1], X[1:]]),
    "collinear": lambda X, rng: np.column_stack([X[:, :-1], X[:, 0]]),
    "mixed units": lambda X, rng: X * 10.0 ** np.linspace(-4.0, 4.0, X.shape[1]),
    "clusters": lambda X, rng: 1e-6 * X + rng.integers(0, 3, size=(len(X), 1)),
}
"""What becomes of independent normal inputs."""


def inputs_of(spec: Spec, n: int | None = None, purpose: int = 0) -> Any:
    """Return inputs; other purposes give other rows of the same population."""
    rng = rng_of(spec, purpose)
    X = rng.standard_normal((n or spec["n"], spec["d"]))
    return _INPUTS[spec["inputs"]](X, rng) * 10.0 ** spec["unit"]


def _signal(spec: Spec, X: Any) -> Any:
    """Return a smooth function of the inputs, of order one."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return np.sin(1.5 * Z[:, 0]) + 0.5 * Z[:, -1]


def labels_of(spec: Spec, X: Any, classes: int = 2) -> Any:
    """Return class labels 0, 1, …; every class occurs, if only once."""
    rng, f = rng_of(spec, 1), _signal(spec, X)
    cuts = np.quantile(f, np.arange(1, classes) / classes)
    y = np.searchsorted(cuts, f, side="right")
    if spec["labels"] == "noisy":
        y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, classes, len(y)), y)
    elif spec["labels"] == "random":
        y = rng.integers(0, classes, len(y))
    elif spec["labels"] == "lonely":
        y = np.zeros(len(y), dtype=int)
    y[rng.permutation(len(y))[:classes]] = np.arange(classes)
    return y


def targets_of(spec: Spec, X: Any) -> Any:
    """Return real targets."""
    rng, f = rng_of(spec, 2), _signal(spec, X)
    how = spec["targets"]
    y = f + 0.3 * rng.standard_normal(len(f))
    if how == "constant":
        y = np.full(len(f), 3.0)
    elif how == "outlier":
        y[-1] = 1e3
    elif how == "steps":
        y = np.round(f)
    elif how == "noise":
        y = rng.standard_normal(len(f))
    return y


def weights_of(spec: Spec, n: int) -> Any:
    """Return weights, or None; a row in three keeps a weight, or there would be no table."""
    rng, how = rng_of(spec, 3), spec["weights"]
    if how == "none":
        return None
    values = {
        "whole": [1.0, 2.0, 3.0],
        "fractions": [0.1, 0.5, 1.0, 1.7],
        "zeros": [0.0, 1.0],
        "heavy": [1.0, 1.0, 500.0],
    }[how]
    weight = rng.choice(values, size=n)
    weight[:: 3 if how != "zeros" else 1] += 1.0 if how == "zeros" and not weight.any() else 0.0
    return weight


def kernel_of(spec: Spec, *, fixed: bool = False, columns: Any = None) -> k.Kernel:
    """Return the kernel; length scales are in the inputs' unit."""
    size = 10.0 ** (spec["scale"] + spec["unit"])
    each = size * np.geomspace(0.5, 2.0, spec["d"])
    each = each if columns is None else each[columns]
    wide: Any = "fixed" if fixed else (1e-5 * size, 1e5 * size)
    made = {
        "rbf": lambda: k.RBF(size, wide),
        "ard": lambda: k.RBF(each, wide),
        "matern12": lambda: k.Matern(size, wide, nu=0.5),
        "matern32": lambda: k.Matern(each, wide, nu=1.5),
        "matern52": lambda: k.Matern(size, wide, nu=2.5),
        "rational": lambda: k.RationalQuadratic(size, 0.7, length_scale_bounds=wide),
        "linear": lambda: k.DotProduct(size, wide) * k.ConstantKernel(size**-2.0, "fixed"),
        "sum": lambda: k.RBF(size, wide) + 0.5 * k.Matern(each, wide, nu=1.5),
        "product": lambda: k.RBF(each, wide) * k.Matern(3.0 * size, wide, nu=2.5),
        "power": lambda: k.Exponentiation(k.RBF(size, wide), 2.0),
        "constant": lambda: k.ConstantKernel(0.7) + k.RBF(size, wide),
    }[spec["kernel"]]()
    amplitude = 10.0 ** spec["amplitude"]
    bounds: Any = "fixed" if fixed else (1e-4 * amplitude, 1e4 * amplitude)
    return k.ConstantKernel(amplitude, bounds) * made


def with_noise(spec: Spec, kernel: k.Kernel) -> k.Kernel:
    """Return the kernel with noise, for what needs a matrix that can be inverted."""
    noise = 10.0 ** (spec["amplitude"] + max(spec["noise"], -4.0))
    return kernel + k.WhiteKernel(noise, (1e-4 * noise, 1e4 * noise))


def permutation_of(spec: Spec, n: int, purpose: int) -> Any:
    """Return a random order."""
    return rng_of(spec, 100 + purpose).permutation(n)


def simplest(spec: Spec) -> dict[str, Any]:
    """Return, for each value that can be made simpler, the simplest."""
    found: dict[str, Any] = {name: of[0] for name, of in CHOICES.items() if name in spec}
    found |= {name: 0.0 if name != "noise" else -1.0 for name in _LOGS if name in spec}
    return {name: value for name, value in found.items() if spec[name] != value}


def is_number(value: Any) -> bool:
    """Whether a number can be used."""
    return value is not None and math.isfinite(value)
