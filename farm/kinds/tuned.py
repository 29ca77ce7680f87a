"""Tuning: the evidence never ends below where it began, whatever the prior of hyperparameters."""

from typing import Any

import numpy as np

from cavity import GaussianProcessClassifier, GaussianProcessRegressor
from farm.draw import Spec, inputs_of, kernel_of, labels_of, rng_of, targets_of, with_noise
from farm.invariances import Case
from farm.kinds import classes, common, targets
from farm.ledger import Ledger

_NEW = 5


def check(ledger: Ledger, spec: Spec) -> None:
    """Tune a classifier and a regressor."""
    X, rng = inputs_of(spec), rng_of(spec, 12)
    new, hyperprior = inputs_of(spec, _NEW, 7), rng.choice(["none", "hierarchical", "auto"])
    kernel: Any = "auto" if hyperprior == "auto" else kernel_of(spec)
    options = {"random_state": 0}
    if hyperprior == "hierarchical":
        options |= {"hyperprior": "hierarchical"}
    method = str(rng.choice(["ep", "laplace", "variational", "naive", "sequential"]))
    classifier = GaussianProcessClassifier(kernel, inference=method, **options)
    case = Case(kernel, X, labels_of(spec, X), None, new)
    _one(ledger, f"{method} {hyperprior}", classifier, case, classes.answers)
    noisy = kernel if hyperprior == "auto" else with_noise(spec, kernel)
    regressor = GaussianProcessRegressor(noisy, alpha=1e-6, normalize_y=True, **options)
    case = case._replace(kernel=noisy, y=targets_of(spec, X))
    _one(ledger, f"exact {hyperprior}", regressor, case, targets.answers)


def _one(ledger: Ledger, of: str, model: Any, case: Case, answers: Any) -> None:
    found = common.fit(ledger, of, model, case)
    if found is None:
        return
    answers(ledger, of, found, case)
    if case.kernel == "auto" or model.hyperprior is not None:
        return
    fixed = type(model)(**model.get_params(deep=False) | {"optimizer": None})
    start, _ = ledger.run(of, lambda: fixed.fit(case.X, case.y))
    if start is None or not (common.settled(start) and common.settled(found)):
        return
    begin, end = (m.log_marginal_likelihood_value_ for m in (start, found))
    ledger.counts["compared"] += 1
    slack = 1e-3 * (1.0 + np.abs(begin))
    # What is searched by another method's evidence may lose some of its own.
    if not of.startswith("sequential"):
        ledger.require(end >= begin - slack, "tuning loses evidence", of, f"{begin}, {end}")
