"""A prior outside the package: rows that have nothing to do with each other."""

from typing import Any, NamedTuple

from cavity.arrays import namespace
from cavity.priors import PRIORS
from cavity.sites import Local, Marginals, Sites, cavity


class Seen(NamedTuple):
    """Some rows: their inputs, and k(x, x)."""

    X: Any
    k: Any


class ToyIndependent(NamedTuple):
    """f_i ~ N(0, k(x_i, x_i)), independent from row to row."""

    rule: Any
    dense = False

    def features(self, rows):
        return Seen(rows.X, self.rule.diag(rows.X))

    def sums(self, seen, sites):
        xp = namespace(seen.k)
        return 0.5 * float(xp.sum(xp.log1p(sites.tau * seen.k)))

    def condition(self, sums=None):
        return ToyIndependentPosterior(self, sums or 0.0)


class ToyIndependentPosterior(NamedTuple):
    """Nothing to remember but the log determinant: each row has its own site."""

    prior: ToyIndependent
    half_log_det: float

    def local(self, seen, sites):
        tau, nu = sites = sites or Sites(0.0 * seen.k, 0.0 * seen.k)
        e = 1.0 + tau * seen.k
        return Local(Marginals(seen.k * nu / e, seen.k / e), sites, nu / e, 1.0 / e, seen.k)

    def left_out(self, seen, sites, weight):
        return cavity(self.local(seen, sites), weight)

    def under(self, sums):
        return self

    def at(self, X, variance=None):
        k = self.prior.rule.diag(X) if variance is None else variance
        return Marginals(0.0 * k, k)

    def contract(self, seen, sites, slope, other=None):
        own = self.local(seen, sites)
        g = 0.5 * own.alpha**2 - 0.5 * slope.precision * own.sites.tau * own.rest
        if slope.source is not None:
            g = g + own.alpha * slope.source * own.rest
        if slope.diagonal is not None:
            g = g + slope.diagonal
        return self.prior.rule.vjp_diag(seen.X, g)

    def gradient(self, shares):
        return shares


PRIORS["toy_independent"] = lambda rule, X: ToyIndependent(rule)
