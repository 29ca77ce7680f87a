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
from cavity.estimators.problems import (
    binary_evidences,
    classifier_rule,
    noise_variances,
    regressor_rule,
    target_evidence,
    target_likelihood,
    target_units,
    with_added,
)
from cavity.estimators.validation import (
    check_added,
    check_classes,
    check_n_targets,
    check_offset,
    check_rows,
    check_single,
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
    classifier: Any, X: Any, y: Any, sample_weight: Any, offset: Any, before: Sequence[Array]
) -> FitPlan:
    """Check a table of classes; return what the fit of a classifier is made of.

    The search for each problem begins at the hyperparameters found ``before``, if there are any.
    """
    X, y = validate_inputs(classifier, X, y)
    check_classification_targets(y)
    labels, kernel = np.unique(y, return_inverse=True)[1], classifier.kernel
    offset = check_offset(offset, len(y))
    if offset is not None:
        labels = np.column_stack([labels, offset])
    merge = not is_precomputed(kernel) and not method(classifier.inference).ordered
    rows = check_rows(sample_weight, X, labels, classifier_rule(classifier), merge=merge)
    classes, codes = np.unique(y[rows.index], return_inverse=True)
    check_classes(classifier, classes)
    split = coding(len(classes), classifier.multi_class)
    check_added(classifier, offset, split.n_tasks, "classes")
    tasks = split.tasks(codes)
    evidences_of = partial(
        binary_evidences,
        classifier=classifier,
        X=X,
        rows=rows,
        tasks=tasks,
        before=before,
        offset=offset,
    )
    setting = Setting(
        evidences_of,
        classifier_rule(classifier),
        select_rows(X, rows.index),
        amplitude=CLASS_AMPLITUDE,
        noise=False,
        rngs=generators(classifier, len(tasks)),
        columns=[rows.index[t.rows] if is_precomputed(kernel) else None for t in tasks],
    )
    model = partial(FittedModel, rows=rows, coding=split)
    model = partial(model, unweighted=unweighted_rows(classifier, X, rows, offset))
    return FitPlan(way_of_tuning(classifier, setting.rule), setting, model, classes)


def targets_in_memory(regressor: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> FitPlan:
    """Check a table of targets; return what the fit of a regressor is made of."""
    X, y = validate_inputs(regressor, X, y, multi_output=True, y_numeric=True)
    y, base = np.asarray(y, dtype=np.float64), target_likelihood(regressor)
    check_n_targets(regressor, y)
    base.check_targets(y)
    offset, noise = check_offset(offset, len(y)), noise_variances(regressor.alpha, len(y))
    check_added(regressor, offset, 1 if y.ndim == 1 else y.shape[1], "targets")
    check_single(base, y)
    parts = [y, noise] if offset is None else [y, noise, offset]
    labels, merge = np.column_stack(parts), not is_precomputed(regressor.kernel)
    rows = check_rows(sample_weight, X, labels, regressor_rule(regressor), merge=merge)
    units, inputs = target_units(regressor, base, y, offset, rows), select_rows(X, rows.index)
    size = np.sqrt(units.amplitude)
    shifted = with_added(regressor, units.likelihood, inputs, units.offset, size)

    def evidences_of(rule: Rule) -> list[Evidence]:
        return [target_evidence(rule, regressor, X, rows, units.targets, shifted)]

    setting = Setting(
        evidences_of,
        regressor_rule(regressor),
        inputs,
        units.amplitude,
        noise=base.quadratic,
        rngs=[check_random_state(regressor.random_state)],
        columns=[rows.index if is_precomputed(regressor.kernel) else None],
    )
    model = partial(FittedModel, rows=rows, noise=units.noise, level=units.level)
    model = partial(model, origin=units.origin, scale=units.scale)
    model = partial(model, unweighted=unweighted_rows(regressor, X, rows, offset))
    return FitPlan(way_of_tuning(regressor, setting.rule), setting, model, targets=units.targets)


def generators(estimator: Any, count: int) -> list[np.random.RandomState]:
    """Return a random generator for each problem."""
    seeds = check_random_state(estimator.random_state).randint(2**31 - 1, size=count)
    return list(map(np.random.RandomState, seeds))
