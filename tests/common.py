"""What several test files share."""

import pytest

from cavity.inference import METHODS
from cavity.likelihoods import REGISTRY, Probit

CLASSIFYING = [name for name, cls in METHODS.items() if cls.serves(Probit())]
"""The inference methods that a classifier may use."""


def served(methods):
    """Return each of the methods with the name of every likelihood that it serves.

    The cheap method and the likelihood that is special to none come first: `covering` keeps them.
    """
    names = sorted(methods, key=lambda name: name != "laplace")
    liks = sorted(REGISTRY, key=lambda name: name != "probit")
    return [(m, lik) for m in names for lik in liks if METHODS[m].serves(REGISTRY[lik]())]


def covering(rows, meet=((0, 1), (0, 2), (1, 2))):
    """Mark as slow the rows that bring no two entries together for the first time.

    ``meet`` says which places of a row have to meet: whatever two entries meet there in some row
    also do in one that is always run.
    """
    seen, found = set(), []
    for row in rows:
        new = {(i, j, row[i], row[j]) for i, j in meet} - seen
        found.append(pytest.param(*row, marks=() if new else pytest.mark.slow))
        seen |= new
    return found
