"""scikit-learn's own estimator checks, for every inference, against what its own classes pass."""

from functools import cache

import pytest
import sklearn.gaussian_process as reference
from common import CLASSIFYING
from sklearn.utils.estimator_checks import check_estimator

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from cavity.inference import METHODS

# The checks' tiny tables drive hyperparameters to their bounds; scikit-learn's classes say so too.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ORDER_MATTERS = {
    "check_sample_weight_equivalence_on_dense_data": "the check shuffles, and one sweep depends "
    "on the order of the examples by definition"
}

METHODS_OF = {GaussianProcessClassifier: CLASSIFYING, GaussianProcessRegressor: list(METHODS)}
# Tuning takes most of the time. The other methods pass the same checks untuned, and tuned in the
# slow tests.
TUNED = {
    GaussianProcessClassifier: {"ep", "laplace", "naive"},
    GaussianProcessRegressor: {"exact", "laplace"},
}


def variants(cls, name):
    """Return the estimator with this method, and untuned if that is slow."""
    if name in TUNED[cls]:
        return [cls(inference=name)]
    tuned = pytest.param(cls(inference=name), marks=pytest.mark.slow)
    return [tuned, cls(inference=name, optimizer=None)]


ESTIMATORS = [
    *(made for cls, names in METHODS_OF.items() for name in names for made in variants(cls, name)),
    GaussianProcessClassifier(n_inducing=5),
    GaussianProcessRegressor(n_inducing=60),
]


@cache
def outcome_of_reference(name):
    results = check_estimator(getattr(reference, name)(), on_skip=None, on_fail=None)
    return by_status(results)


def by_status(results):
    found = {"passed": set(), "skipped": set(), "failed": set(), "xfail": set()}
    for result in results:
        found[result["status"]].add(result["check_name"])
    return found


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_passes_all_checks(estimator):
    """No check fails, and none is skipped or excused that scikit-learn's own class passes."""
    name = type(estimator).__name__
    # With Gaussian noise one sweep is exact inference, in whatever order.
    ordered = name == "GaussianProcessClassifier" and estimator.inference == "sequential"
    results = check_estimator(
        estimator,
        on_skip=None,
        on_fail=None,
        expected_failed_checks=ORDER_MATTERS if ordered else None,
    )
    failures = {r["check_name"]: str(r["exception"])[:300] for r in results if is_failure(r)}
    assert not failures
    ours, theirs = by_status(results), outcome_of_reference(name)
    assert theirs["passed"] <= ours["passed"]
    assert ours["skipped"] <= theirs["skipped"]


def is_failure(result):
    return result["status"] == "failed"
