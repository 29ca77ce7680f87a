"""Likelihoods by name. A new one is one file here and one import line below."""

from cavity.likelihoods.base import REGISTRY, Likelihood
from cavity.likelihoods.censored import Censored
from cavity.likelihoods.gamma import Gamma
from cavity.likelihoods.gaussian import Gaussian
from cavity.likelihoods.logit import Logit
from cavity.likelihoods.negative_binomial import NegativeBinomial
from cavity.likelihoods.noisy_probit import NoisyProbit
from cavity.likelihoods.ordinal import Ordinal
from cavity.likelihoods.poisson import Poisson
from cavity.likelihoods.powered import Powered
from cavity.likelihoods.probit import Probit, Step
from cavity.likelihoods.quantiles import quantiles
from cavity.likelihoods.shifted import Shifted, Trend
from cavity.likelihoods.student_t import StudentT
from cavity.likelihoods.surprise import cumulative, surprise

__all__ = [
    "REGISTRY",
    "Censored",
    "Gamma",
    "Gaussian",
    "Likelihood",
    "Logit",
    "NegativeBinomial",
    "NoisyProbit",
    "Ordinal",
    "Poisson",
    "Powered",
    "Probit",
    "Shifted",
    "Step",
    "StudentT",
    "Trend",
    "cumulative",
    "likelihood",
    "quantiles",
    "surprise",
]


def likelihood(name: str | Likelihood) -> Likelihood:
    """Return a likelihood by its name, or the one given.

    Parameters
    ----------
    name : str or Likelihood
        One of the names in ``REGISTRY``, or an object to pass through.

    Returns
    -------
    Likelihood
    """
    if isinstance(name, Likelihood):
        return name
    if not isinstance(name, str) or name not in REGISTRY:
        names = ", ".join(repr(known) for known in sorted(REGISTRY))
        raise ValueError(f"likelihood must be one of {names} or a Likelihood object, got {name!r}.")
    return REGISTRY[name]()
