"""Integrals of likelihoods over hostile Gaussians, and what each of them costs."""

from collections import Counter

import numpy as np

from cavity.likelihoods import (
    Gamma,
    Logit,
    NegativeBinomial,
    Poisson,
    Probit,
    StudentT,
    numerical,
    quadrature,
    quantiles,
)
from cavity.likelihoods.quadrant import by_quadrature
from cavity.sites import Marginals

__all__ = ["JOBS", "work"]


class _Watched:
    """A likelihood whose calls are counted."""

    def __init__(self, lik, counts):
        self._lik, self._counts = lik, counts

    def __getattr__(self, name):
        found = getattr(self._lik, name)
        if not callable(found):
            return found

        def call(*args):
            self._counts["asked"] += 1
            return found(*args)

        return call


def _cavities(y, reach=6.0):
    """Return each target under cavities of all widths, about it and far from it."""
    grids = np.meshgrid(y, np.linspace(-reach, reach, 7), 10.0 ** np.linspace(-3.0, 5.0, 9))
    y, m, v = (grid.ravel() for grid in grids)
    return y, Marginals(m, v)


_SIGNS, _COUNTS, _AMOUNTS = [-1.0, 1.0], [0.0, 3.0, 400.0], [1e-3, 1.0, 50.0]
_LIKELIHOODS = {
    "probit": (Probit(), _SIGNS),
    "logit": (Logit(), _SIGNS),
    "poisson": (Poisson(), _COUNTS),
    "negative binomial": (NegativeBinomial(2.0), _COUNTS),
    "gamma": (Gamma(3.0), _AMOUNTS),
}


def _tilted(lik, y, counts):
    numerical.tilted(_Watched(lik, counts), *_cavities(y))


def _expected(lik, y, counts):
    numerical.expected(_Watched(lik, counts), *_cavities(y))


def _quantiles(lik, counts):
    q = _cavities([0.0])[1]
    narrow = Marginals(*(part[q.variance < 10.0] for part in q))
    quantiles(_Watched(lik, counts), narrow, [0.01, 0.5, 0.99])


def _student(counts):
    for nu in (1.5, 4.0, 30.0):
        StudentT(nu, 1.0).tilted(*_cavities([0.0, 3.0, 40.0]))


def _quadrant(counts):
    rng = np.random.default_rng(0)
    by_quadrature(6.0 * rng.standard_normal((200, 2)), np.tanh(3.0 * rng.standard_normal(200)))


def _one_by_one(counts):
    """One example at a time, as in streams: there the number of calls is what takes the time."""
    y, c = _cavities(_COUNTS)
    for k in range(0, len(y), 9):
        numerical.tilted(
            _Watched(Poisson(), counts), y[k : k + 1], Marginals(*(part[k : k + 1] for part in c))
        )


JOBS = {
    **{f"tilted {k}": lambda c, k=k: _tilted(*_LIKELIHOODS[k], c) for k in _LIKELIHOODS},
    **{f"expected {k}": lambda c, k=k: _expected(*_LIKELIHOODS[k], c) for k in _LIKELIHOODS},
    "quantiles poisson": lambda c: _quantiles(Poisson(), c),
    "quantiles gamma": lambda c: _quantiles(Gamma(3.0), c),
    "quantiles student": lambda c: _quantiles(StudentT(4.0, 1.0), c),
    "student": _student,
    "quadrant": _quadrant,
    "one by one": _one_by_one,
}


def work(job):
    """Return what a job costs: panels, in all and at a time, calls, and questions."""
    counts, some_panels = Counter(), quadrature._some_panels

    def counted(integrands, left, width):
        counts["calls"] += 1
        counts["panels"] += left.size
        counts["together"] = max(counts["together"], left.size)
        return some_panels(integrands, left, width)

    quadrature._some_panels = counted
    try:
        JOBS[job](counts)
    finally:
        quadrature._some_panels = some_panels
    return dict(counts)
