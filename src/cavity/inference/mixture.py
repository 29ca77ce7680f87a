"""Mixture: a variational bound for likelihoods that are mixtures of log-concave ones."""

from typing import ClassVar

from cavity.arrays import Array
from cavity.inference.ascent import ascend
from cavity.inference.base import Driver, register
from cavity.inference.bound import Bound
from cavity.inference.problem import Problem
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals, Moments


@register
class Mixture(Bound):
    """The Gaussian of the highest bound with a hidden variable for each row.

    The variable is the precision of a Student t's noise, or whether a label is wrong. Given q(f)
    its best distribution is known, and given that all sites have precisions of at least zero: each
    step raises the bound, though no density here is log-concave. There may be several maxima.
    """

    name: ClassVar[str] = "mixture"
    needs: ClassVar[str] = "mixture"

    @classmethod
    def serves(cls, likelihood: Likelihood) -> bool:
        """Whether the likelihood is such a mixture; a log-concave one is a mixture of one part."""
        return cls.needs in likelihood.offers or (
            likelihood.concave and "expected" in likelihood.offers
        )

    def averages(self, likelihood: Likelihood, y: Array, q: Marginals) -> Moments:
        """Return the bound of E log p, its slope in the mean, and −τ."""
        several = self.needs in likelihood.offers
        return (likelihood.mixture if several else likelihood.expected)(y, q)

    def driver(self, problem: Problem) -> Driver:
        """Return the driver that only ever raises the bound, if K is a matrix."""
        return ascend if problem.prior.dense else super().driver(problem)
