"""What several test files share."""

from cavity.inference import METHODS
from cavity.likelihoods import Probit

CLASSIFYING = [name for name, cls in METHODS.items() if cls.serves(Probit())]
"""The inference methods that a classifier may use."""
