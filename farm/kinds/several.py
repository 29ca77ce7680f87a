"""Three classes and more: binary problems joined, one problem for all, and classes in an order."""

import numpy as np

from cavity import GaussianProcessClassifier
from farm.draw import Spec, inputs_of, kernel_of, labels_of, permutation_of, rng_of, weights_of
from farm.invariances import Case
from farm.kinds import common
from farm.kinds.classes import answers
from farm.ledger import Ledger

_NEW = 5
_WAYS = {
    "one_vs_rest": {"multi_class": "one_vs_rest"},
    "one_vs_one": {"multi_class": "one_vs_one"},
    "multinomial": {"multi_class": "multinomial"},
    "softmax": {"multi_class": "multinomial", "inference": "laplace"},
    "ordinal": {"likelihood": "ordinal"},
}


def check(ledger: Ledger, spec: Spec) -> None:
    """Fit one table in all ways; other names and another order of its rows change nothing."""
    classes = int(rng_of(spec, 5).integers(3, 6))
    X = inputs_of(spec)
    if len(X) < 2 * classes:
        X = inputs_of(spec, 2 * classes)
    y = labels_of(spec, X, classes)
    weight = weights_of(spec, len(y))
    if weight is not None:
        weight[np.unique(y, return_index=True)[1]] = 1.0
    case = Case(kernel_of(spec), X, y, weight, inputs_of(spec, _NEW, 7))
    for of, options in _WAYS.items():
        model = GaussianProcessClassifier(case.kernel, optimizer=None, **options)
        found = common.fit(ledger, of, model, case)
        if found is None:
            continue
        if of == "one_vs_one":
            # It says which class, and with what probability it does not.
            ledger.run(of, lambda found=found: found.predict(case.X_new), may_refuse=False)
            continue
        answers(ledger, of, found, case)
        _renamed(ledger, spec, of, found, case, options)


def _renamed(
    ledger: Ledger, spec: Spec, of: str, model: object, case: Case, options: dict[str, str]
) -> None:
    """Letters for numbers, in the same order, and the rows in another order."""
    order = permutation_of(spec, len(case.y), 0)
    weight = None if case.weight is None else case.weight[order]
    other = GaussianProcessClassifier(case.kernel, optimizer=None, **options)
    names = np.array(list("abcde"))[case.y[order]]
    again, _ = ledger.run(of, lambda: other.fit(case.X[order], names, weight), may_refuse=False)
    if again is None or not (common.settled(model) and common.settled(again)):
        return
    ledger.counts["compared"] += 1
    found, truth = (one.predict_proba(case.X_new) for one in (again, model))
    # Both have converged to the usual tolerance only.
    ledger.near("names and order", of, found, truth, 2e-3, 0.0)
