"""Kernels written as text: ``rbf``, ``ard``, ``matern52 + linear``, ``rbf * periodic``."""

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

MOST_RELEVANCES = 30
"""Up to this many inputs, the default kernel has a length scale for each."""

WORDS: dict[str, tuple[Callable[[int], Kernel], str]] = {
    "rbf": (lambda d: RBF(1.0), "smooth functions, one length scale"),
    "ard": (lambda d: RBF(np.ones(d)), "smooth, a length scale for each input"),
    "matern12": (lambda d: Matern(1.0, nu=0.5), "continuous, not smooth"),
    "matern32": (lambda d: Matern(1.0, nu=1.5), "once differentiable"),
    "matern52": (lambda d: Matern(1.0, nu=2.5), "twice differentiable"),
    "ard-matern12": (lambda d: Matern(np.ones(d), nu=0.5), "a length scale for each input"),
    "ard-matern32": (lambda d: Matern(np.ones(d), nu=1.5), "a length scale for each input"),
    "ard-matern52": (lambda d: Matern(np.ones(d), nu=2.5), "a length scale for each input"),
    "rq": (lambda d: RationalQuadratic(), "a mixture of many length scales"),
    "linear": (lambda d: DotProduct(), "linear functions"),
    "quadratic": (lambda d: DotProduct() ** 2, "polynomials of degree two"),
    "periodic": (lambda d: ExpSineSquared(), "periodic functions"),
    "white": (lambda d: WhiteKernel(), "noise, independent for each row"),
}
"""For each word, the kernel on d inputs and a description."""


def parse_kernel(text: str, n_features: int, *, noise: bool = False) -> Any:
    """Return the scikit-learn kernel that a text describes.

    Its words are joined by ``+`` and ``*``, of which ``*`` binds tighter; "auto" is "ard" up to 30
    inputs and "rbf" beyond. Each term except "white" gets its own amplitude. With ``noise``, which
    regression needs, "white" is added unless the text has it.

    >>> parse_kernel("rbf + linear", 3)
    1**2 * RBF(length_scale=1) + 1**2 * DotProduct(sigma_0=1)
    >>> parse_kernel("ard", 2, noise=True)
    1**2 * RBF(length_scale=[1, 1]) + WhiteKernel(noise_level=1)
    """
    if text.strip().lower() == "auto":
        text = "ard" if n_features <= MOST_RELEVANCES else "rbf"
    terms = [[word.strip().lower() for word in term.split("*")] for term in text.split("+")]
    unknown = [word for term in terms for word in term if word not in WORDS]
    if unknown:
        raise ValueError(
            f"'{unknown[0]}' in kernel '{text}' is not a kernel: use auto, or a combination by "
            f"+ and * of {', '.join(WORDS)}."
        )
    if noise and ["white"] not in terms:
        terms.append(["white"])
    return reduce(add, (_term(term, n_features) for term in terms))


def _term(words: list[str], n_features: int) -> Kernel:
    if words == ["white"]:
        return WhiteKernel()
    return reduce(mul, (WORDS[word][0](n_features) for word in words), ConstantKernel(1.0))
