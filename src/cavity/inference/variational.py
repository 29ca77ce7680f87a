"""Variational Gaussian: the Gaussian closest to the posterior in KL(q‖p)."""

from typing import ClassVar

from cavity.arrays import Array
from cavity.inference.base import register
from cavity.inference.bound import Bound
from cavity.likelihoods import Likelihood
from cavity.sites import Marginals, Moments


@register
class Variational(Bound):
    """The Gaussian of highest evidence bound, found through its sites (Opper & Archambeau 2009)."""

    name: ClassVar[str] = "variational"
    needs: ClassVar[str] = "expected"

    def averages(self, likelihood: Likelihood, y: Array, q: Marginals) -> Moments:
        """Return E log p and its derivatives."""
        return likelihood.expected(y, q)
