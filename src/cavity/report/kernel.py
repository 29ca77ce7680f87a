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

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF, CompoundKernel
    >>> from cavity.report.kernel import kernel_text
    >>> kernel_text(CompoundKernel([RBF(1.0), RBF(2.0), RBF(3.0)]), ["a", "b", "c"])
    'a: RBF(length_scale=1); b: RBF(length_scale=2); c: RBF(length_scale=3)'
    """
    if not isinstance(kernel, CompoundKernel):
        return str(kernel)
    pairs = zip(classes, kernel.kernels, strict=True)
    return "; ".join(f"{name}: {part}" for name, part in pairs)


def relevance_of(kernel: Kernel, names: list[str]) -> list[dict[str, Any]] | None:
    """Return each input's inverse length scale relative to the largest one.

    With several classes each has its own, ``per_class``, and ``relevance`` is their mean. The
    result is None if the kernel has one length scale for all inputs.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from cavity.report.kernel import relevance_of
    >>> [line["relevance"] for line in relevance_of(1.0 * RBF([1.0, 4.0]), ["a", "b"])]
    [1.0, 0.25]
    """
    parts = kernel.kernels if isinstance(kernel, CompoundKernel) else [kernel]
    scales = [_length_scales(part, len(names)) for part in parts]
    if any(scale is None for scale in scales):
        return None
    inverse = np.array([scale.min() / scale for scale in scales if scale is not None])
    return [
        {"feature": name, "relevance": float(column.mean()), "per_class": column.tolist()}
        for name, column in zip(names, inverse.T, strict=True)
    ]


def _length_scales(kernel: Kernel, d: int) -> Array | None:
    parameters = kernel.get_params()
    found = compress(parameters.values(), length_scales(list(parameters)))
    return next((np.asarray(scale) for scale in found if np.shape(scale) == (d,) and d > 1), None)
