"""A tuned kernel in words, and the relevance of each input."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import CompoundKernel, Kernel

from cavity.arrays import Array
from cavity.kernels import length_scales


def kernel_text(kernel: Kernel, classes: Sequence[Any]) -> str:
    """Return the kernel as text; with several classes, the kernel of each.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> kernel_text(CompoundKernel([RBF(1.0), RBF(2.0)]), ["a", "b"])
    'a: RBF(length_scale=1); b: RBF(length_scale=2)'
    """
    if not isinstance(kernel, CompoundKernel):
        return str(kernel)
    pairs = zip(classes, kernel.kernels, strict=True)
    return "; ".join(f"{name}: {part}" for name, part in pairs)


def relevance_of(kernel: Kernel, names: list[str]) -> list[dict[str, Any]] | None:
    """Return each input's inverse length scale relative to the largest one.

    With several classes each has its own, ``per_class``, and ``relevance`` is their mean. The
    result is None if the kernel has one length scale for all inputs.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> [line["relevance"] for line in relevance_of(1.0 * RBF([1.0, 4.0]), ["a", "b"])]
    [1.0, 0.25]
    """
    parts = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    scales = [scale for part in parts for scale in _length_scales(part, len(names))]
    if len(scales) < len(parts):
        return None
    inverse = np.array([scale.min() / scale for scale in scales])
    return [
        {"feature": name, "relevance": float(column.mean()), "per_class": column.tolist()}
        for name, column in zip(names, inverse.T, strict=True)
    ]


def _length_scales(kernel: Kernel, d: int) -> list[Array]:
    """Return the first length scales with one for each of several inputs, if there are any."""
    parameters = kernel.get_params()
    found = compress(parameters.values(), length_scales(list(parameters)))
    return [np.asarray(scale) for scale in found if np.shape(scale) == (d,) and d > 1][:1]
