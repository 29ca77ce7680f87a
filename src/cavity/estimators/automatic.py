"""kernel="auto": candidate kernels, compared by their integrated evidence."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel

from cavity.arrays import Array
from cavity.estimators.columns import RowTable
from cavity.evidence import Evidence, Hierarchy, Progress, Tuned, spread_out, tied
from cavity.kernels import Linear, rule

CLASS_AMPLITUDE, TARGET_AMPLITUDE = 4.0, 1.0
"""Typical variances of a latent function of classes, and of a target of variance one."""
_WIDE = (1e-6, 1e6)
_NOISE = 0.2


@dataclass(frozen=True)
class KernelRow:
    """One kernel that was tried."""

    kernel: str
    log_evidence: float
    """With the hyperparameters integrated out; the sum over binary problems."""
    spread: float
    """Of the log length scales among the inputs; 0 if all inputs share one scale."""
    n_evaluations: int
    chosen: bool


class KernelComparison(RowTable[KernelRow]):
    """The kernels that were tried, the best first; prints as a table."""

    header = tuple(field.name for field in fields(KernelRow))

    def cells(self, row: KernelRow) -> list[Any]:
        """Return a row as it is printed."""
        return [f"{v:.2f}" if isinstance(v, float) else v for v in astuple(row)]


def spreads_of(X: Array) -> Array:
    """Return each column's standard deviation; a constant column gets its size, or one."""
    spread, size = X.std(axis=0), np.abs(X).max(axis=0)
    constant = spread <= 1e-12 * size
    return np.where(constant, np.where(size > 0.0, size, 1.0), np.where(constant, 1.0, spread))


def candidates(X: Array, noise: bool) -> dict[str, Kernel]:
    """Return kernels by name, each with a constant and, for real targets, with white noise.

    A latent constant of variance one is a uniform prior of the share of a class, if the likelihood
    is the probit.
    """
    d, spread = X.shape[1], spreads_of(X)
    scale = 2.0 * np.sqrt(d) * spread
    wide = (scale.min() * 1e-6, scale.max() * 1e9)
    constant = ConstantKernel(1.0, "fixed")
    linear = _scaled(Linear(np.sqrt(d) * spread, X.mean(axis=0)))
    smooth = {
        "rbf": _scaled(RBF(_plain(scale), wide)),
        "matern52": _scaled(Matern(_plain(scale), wide, nu=2.5)),
    }
    found = {"constant": constant, "linear": linear + constant}
    found |= {name: kernel + constant for name, kernel in smooth.items()}
    found |= {f"{name} + linear": kernel + linear + constant for name, kernel in smooth.items()}
    white = WhiteKernel(_NOISE, _WIDE)
    return {name: k + white for name, k in found.items()} if noise else found


def _scaled(kernel: Kernel) -> Kernel:
    return ConstantKernel(1.0, _WIDE) * kernel


def _plain(scale: Array) -> Any:
    return scale if len(scale) > 1 else float(scale[0])


@dataclass(frozen=True)
class Candidate:
    """A kernel, tuned for each binary problem (or for the targets of a regressor)."""

    name: str
    evidences: Sequence[Evidence]
    hierarchies: Sequence[Hierarchy]
    tuned: Sequence[Tuned]

    @property
    def log_evidence(self) -> float:
        """With the hyperparameters integrated out."""
        return sum(found.log_evidence for found in self.tuned)

    def row(self, chosen: bool) -> KernelRow:
        """Return a line of the comparison."""
        spread = float(np.mean([found.spread for found in self.tuned]))
        count = sum(found.n_evaluations for found in self.tuned)
        return KernelRow(self.name, self.log_evidence, spread, count, chosen)


def choose(
    kernels: dict[str, Kernel],
    evidences_of: Callable[[Any], Sequence[Evidence]],
    spreads: Array,
    amplitude: float,
    progress: Sequence[Progress | None],
) -> tuple[list[Tuned], KernelComparison]:
    """Return the tuned hyperparameters of the best kernel, and what was tried.

    First with tied length scales; then the best of those with several are set free.

    Parameters
    ----------
    kernels : dict from str to Kernel
    evidences_of : callable
        From a kernel rule to the evidence of each problem.
    spreads : array of shape (d,)
        Standard deviation of each input.
    amplitude : float
        Typical variance of the latent function.
    progress : sequence of Progress or None
        One for each problem.
    """
    found = []
    for name, kernel in kernels.items():
        evidences = evidences_of(rule(kernel))
        hierarchies = [Hierarchy.of(e, spreads, amplitude) for e in evidences]
        tuned = list(map(tied, evidences, hierarchies, progress))
        found.append(Candidate(name, evidences, hierarchies, tuned))
    ranked = sorted(found, key=lambda c: -c.log_evidence)
    for old in _followed(ranked):
        new = list(map(spread_out, old.tuned, old.hierarchies, progress))
        ranked[ranked.index(old)] = Candidate(old.name, old.evidences, old.hierarchies, new)
    ranked.sort(key=lambda c: -c.log_evidence)
    rows = tuple(c.row(c is ranked[0]) for c in ranked)
    return list(ranked[0].tuned), KernelComparison(rows)


def _followed(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return those whose length scales are to differ: the best, with and without a linear part.

    Tied length scales tell which of the two shapes is better, but not whether the linear part will
    still be needed.
    """
    several = [c for c in ranked if c.hierarchies[0].has_spread]
    return [c for c in several if c.name.split()[0] == several[0].name.split()[0]]
