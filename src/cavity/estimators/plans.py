"""From an estimator's parameters and a table in memory to what its fit is made of."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from cavity.arrays import Array
from cavity.estimators.automatic import CLASS_AMPLITUDE
from cavity.estimators.coding import coding
from cavity.estimators.fitted import FittedModel
from cavity.estimators.fitting import Setting, way_of_tuning
from cavity.estimators.joint import class_evidences, latents_of
from cavity.estimators.problems import (
    binary_evidences,
    classifier_rule,
    noise_variances,
    regressor_rule,
    scaling,
    target_evidence,
)
from cavity.estimators.validation import (
    check_classes,
    check_n_targets,
    check_rows,
    is_auto,
    is_precomputed,
    select_rows,
    unweighted_rows,
    validate_inputs,
)
from cavity.evidence import Evidence
from cavity.inference import method
from cavity.kernels import Rule


class FitPlan(NamedTuple):
    """What an estimator's fit is made of."""

    way: Callable[[Any, Any], Any]
    """Tunes every problem's kernel and infers at the optimum."""
    setting: Any
    """What it works on."""
    model: Callable[..., FittedModel]
    """From the fitted processes to what the estimator keeps."""
    classes: Array | None = None
    targets: Array | None = None
    """A regressor's targets in its own units, if they are in memory."""


def classes_in_memory(
    classifier: Any, X: Any, y: Any, sample_weight: Any, before: Sequence[Array]
) -> FitPlan:
    """Check a table of classes; return what the fit of a classifier is made of.

    The search for each problem begins at the hyperparameters found ``before``, if there are any.
    """
    X, y = validate_inputs(classifier, X, y)
    check_classification_targets(y)
    labels, kernel = np.unique(y, return_inverse=True)[1], classifier.kernel
    merge = not is_precomputed(kernel) and not method(classifier.inference).ordered
    rows = check_rows(sample_weight, X, labels, classifier_rule(classifier), merge=merge)
    classes, codes = np.unique(y[rows.index], return_inverse=True)
    check_classes(classifier, classes)
    split = coding(len(classes), classifier.multi_class)
    tasks = split.tasks(codes)
    problems = class_evidences if split.joint else binary_evidences
    evidences_of = partial(
        problems, classifier=classifier, X=X, rows=rows, tasks=tasks, before=before
    )
    setting = Setting(
        evidences_of,
        classifier_rule(classifier),
        select_rows(X, rows.index),
        amplitude=CLASS_AMPLITUDE,
        noise=False,
        rngs=generators(classifier, len(tasks)),
        columns=[rows.index[t.rows] if is_precomputed(kernel) else None for t in tasks],
        latents=latents_of(classifier, split),
    )
    model = partial(FittedModel, rows=rows, coding=split)
    model = partial(model, unweighted=unweighted_rows(classifier, X, rows))
    return FitPlan(way_of_tuning(classifier, setting.rule), setting, model, classes)


def targets_in_memory(regressor: Any, X: Any, y: Any, sample_weight: Any) -> FitPlan:
    """Check a table of real targets; return what the fit of a regressor is made of."""
    X, y = validate_inputs(regressor, X, y, multi_output=True, y_numeric=True)
    y = np.asarray(y, dtype=np.float64)
    check_n_targets(regressor, y)
    noise = noise_variances(regressor.alpha, len(y))
    labels, merge = np.column_stack([y, noise]), not is_precomputed(regressor.kernel)
    rows = check_rows(sample_weight, X, labels, regressor_rule(regressor), merge=merge)
    normalize = regressor.normalize_y or is_auto(regressor.kernel)
    origin, scale = scaling(y[rows.index], rows.weight, normalize)
    own = (y[rows.index] - origin) / scale

    def evidences_of(rule: Rule) -> list[Evidence]:
        return [target_evidence(rule, regressor, X, rows, own, noise)]

    amplitude = float(np.mean(np.average(own**2, axis=0, weights=rows.weight))) or 1.0
    setting = Setting(
        evidences_of,
        regressor_rule(regressor),
        select_rows(X, rows.index),
        amplitude,
        noise=True,
        rngs=[check_random_state(regressor.random_state)],
        columns=[rows.index if is_precomputed(regressor.kernel) else None],
    )
    model = partial(FittedModel, rows=rows, origin=origin, scale=scale, noise=noise)
    model = partial(model, unweighted=unweighted_rows(regressor, X, rows))
    return FitPlan(way_of_tuning(regressor, setting.rule), setting, model, targets=own)


def generators(estimator: Any, count: int) -> list[np.random.RandomState]:
    """Return a random generator for each problem."""
    seeds = check_random_state(estimator.random_state).randint(2**31 - 1, size=count)
    return list(map(np.random.RandomState, seeds))
