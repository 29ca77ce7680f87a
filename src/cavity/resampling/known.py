"""Learning curves of regression where the distribution of the inputs is known.

The kernel's eigenvalues λ_k under that distribution decide everything: with
g(t) = Σ_k λ_k/(1 + λ_k t/σ²) the average posterior variance ε after n examples is at least g(n).
Inputs here are uniform on a ring of length one, with kernels wrapped around it.
"""

from typing import Any

import numpy as np
from scipy.optimize import brentq

from cavity.arrays import Array


def _remaining(eigenvalues: Array, noise: float, t: float) -> float:
    """Return g(t), the variance left where every eigenfunction has been seen t times."""
    return float(np.sum(eigenvalues / (1.0 + eigenvalues * (t / noise))))


def _check(eigenvalues: Any, noise: float, n: Any) -> tuple[Array, Array]:
    spectrum, sizes = np.asarray(eigenvalues, dtype=float), np.asarray(n, dtype=float)
    if spectrum.ndim != 1 or not np.all(np.isfinite(spectrum) & (spectrum >= 0.0)):
        raise ValueError(
            f"eigenvalues must be a vector of numbers of at least zero; got {eigenvalues!r}."
        )
    if not (np.isfinite(noise) and noise > 0.0):
        raise ValueError(f"noise, a variance, must be positive and finite; got {noise!r}.")
    if not np.all(np.isfinite(sizes) & (sizes >= 0.0)):
        raise ValueError(f"n must be at least zero and finite; got {n!r}.")
    return spectrum, sizes


def opper_vivarelli_bound(eigenvalues: Any, noise: float, n: Any) -> Any:
    """Return a lower bound g(n) of the average posterior variance (Opper and Vivarelli 1999).

    Parameters
    ----------
    eigenvalues : array-like of shape (k,)
        Of the kernel under the distribution of the inputs.
    noise : float
        Variance σ² of the noise on the targets.
    n : float or array-like
        Number of training examples; the answer has its shape.

    Examples
    --------
    >>> from cavity.resampling import opper_vivarelli_bound, periodic_squared_exponential
    >>> bound = opper_vivarelli_bound(periodic_squared_exponential(0.1), 0.1, [10, 50])
    >>> [round(float(value), 4) for value in bound]
    [0.0771, 0.0194]
    """
    spectrum, sizes = _check(eigenvalues, noise, n)
    found = np.vectorize(lambda m: _remaining(spectrum, noise, m), otypes=[float])(sizes)
    return float(found) if sizes.ndim == 0 else found


def sollich_curve(eigenvalues: Any, noise: float, n: Any) -> Any:
    """Return the average posterior variance by the self-consistent theory (Sollich 1999).

    It solves ε = g(n σ²/(σ² + ε)): what has not been learned yet acts as noise. The variational
    theory of `cavity.learning_curve` reduces to it for stationary kernels and uniform inputs.

    Parameters
    ----------
    eigenvalues, noise, n
        As in `opper_vivarelli_bound`.

    Examples
    --------
    >>> from cavity.resampling import periodic_squared_exponential, sollich_curve
    >>> round(sollich_curve(periodic_squared_exponential(0.1), 0.1, 50), 4)
    0.0233
    """
    spectrum, sizes = _check(eigenvalues, noise, n)

    def root(m: float) -> float:
        # The right-hand side rises with ε, from above it at zero to below it at the prior's.
        def excess(epsilon: float) -> float:
            return _remaining(spectrum, noise, m * noise / (noise + epsilon)) - epsilon

        prior = _remaining(spectrum, noise, 0.0)
        return prior if m == 0.0 or prior == 0.0 else float(brentq(excess, 0.0, prior, xtol=1e-14))

    found = np.vectorize(root, otypes=[float])(sizes)
    return float(found) if sizes.ndim == 0 else found


def periodic_ornstein_uhlenbeck(length_scale: float, cutoff: int = 20_000) -> Array:
    """Return the eigenvalues 2l/(1 + (2πql)²) of exp(−|x − x'|/l), wrapped around the ring.

    Parameters
    ----------
    length_scale : float
        In units of the ring.
    cutoff : int, default 20000
        Largest frequency q; what is left out is about 1/(π² l cutoff) of the variance.
    """
    q = _frequencies(length_scale, cutoff)
    return 2.0 * length_scale / (1.0 + (2.0 * np.pi * q * length_scale) ** 2)


def periodic_squared_exponential(length_scale: float, cutoff: int = 1000) -> Array:
    """Return the eigenvalues l √(2π) exp(−2π²q²l²) of exp(−(x − x')²/2l²), wrapped likewise.

    Parameters
    ----------
    length_scale : float
        In units of the ring.
    cutoff : int, default 1000
        Largest frequency q.
    """
    q = _frequencies(length_scale, cutoff)
    return length_scale * np.sqrt(2.0 * np.pi) * np.exp(-2.0 * (np.pi * q * length_scale) ** 2)


def _frequencies(length_scale: float, cutoff: int) -> Array:
    if not (np.isfinite(length_scale) and length_scale > 0.0):
        raise ValueError(f"length_scale must be positive and finite; got {length_scale!r}.")
    if cutoff < 0:
        raise ValueError(f"cutoff must be at least zero; got {cutoff!r}.")
    return np.arange(-cutoff, cutoff + 1.0)
