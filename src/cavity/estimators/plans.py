"""From an estimator's parameters and a table in memory to what its fit is made of."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets

from cavity.arrays import Array
from cavity.estimators.automatic import CLASS_AMPLITUDE
from cavity.estimators.coding import Coding, coding_of
from cavity.estimators.fitted import FittedModel
from cavity.estimators.fitting import Setting, way_of_tuning
from cavity.estimators.joint import class_evidences, latents_of
from cavity.estimators.problems import (
    binary_evidences,
    classifier_rule,
    given_noise,
    noise_variances,
    regressor_rule,
    target_evidence,
    target_likelihood,
    target_method,
    target_units,
    with_added,
)
from cavity.estimators.sizes import check_presentations
from cavity.estimators.validation import (
    RowMap,
    check_added,
    check_classes,
    check_offset,
    check_rows,
    check_targets,
    is_precomputed,
    select_rows,
    unweighted_rows,
    validate_inputs,
)
from cavity.evidence import Evidence
from cavity.inference import Method, method
from cavity.kernels import Rule
from cavity.likelihoods import likelihood


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
    rule, offset = classifier_rule(classifier), check_offset(offset, len(y))
    labels, how = np.unique(y, return_inverse=True)[1], method(classifier.inference)
    rows = _rows(classifier, X, [labels], offset, sample_weight, rule, how)
    classes, codes = np.unique(y[rows.index], return_inverse=True)
    split = split_of(classifier, classes, offset)
    tasks = split.tasks(codes)
    problems = class_evidences if split.several else binary_evidences
    evidences_of = partial(
        problems, classifier=classifier, X=X, rows=rows, tasks=tasks, before=before
    )
    evidences_of = partial(evidences_of, offset=offset)
    setting = Setting(
        evidences_of,
        rule,
        select_rows(X, rows.index),
        amplitude=CLASS_AMPLITUDE,
        noise=False,
        rngs=generators(classifier, len(tasks)),
        columns=[rows.index[t.rows] if is_precomputed(classifier.kernel) else None for t in tasks],
        latents=latents_of(classifier, split),
    )
    model = partial(FittedModel, rows=rows, coding=split)
    model = partial(model, unweighted=unweighted_rows(classifier, X, rows, offset))
    return FitPlan(way_of_tuning(classifier, setting.rule), setting, model, classes)


def targets_in_memory(regressor: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> FitPlan:
    """Check a table of targets; return what the fit of a regressor is made of."""
    X, y = validate_inputs(regressor, X, y, multi_output=True, y_numeric=True)
    y, base = np.asarray(y, dtype=np.float64), target_likelihood(regressor)
    offset = check_offset(offset, len(y))
    check_targets(regressor, base, y, offset)
    own, rule = given_noise(regressor) if base.quadratic else 0.0, regressor_rule(regressor)
    labels = [y, noise_variances(own, len(y))]
    how = target_method(regressor, base)
    rows = _rows(regressor, X, labels, offset, sample_weight, rule, how)
    units, inputs = target_units(regressor, base, y, offset, rows), select_rows(X, rows.index)
    size = np.sqrt(units.amplitude)
    shifted = with_added(regressor, units.likelihood, inputs, units.offset, size)

    def evidences_of(rule: Rule) -> list[Evidence]:
        return [target_evidence(rule, regressor, X, rows, units.targets, shifted)]

    setting = Setting(
        evidences_of,
        rule,
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


def split_of(classifier: Any, classes: Array, offset: Array | None) -> Coding:
    """Return how classes become problems; refuse what does not go with it."""
    check_classes(classifier, classes)
    split = coding_of(likelihood(classifier.likelihood), len(classes), classifier.multi_class)
    check_added(classifier, offset, split.n_functions, "classes")
    return split


def _rows(
    estimator: Any,
    X: Any,
    labels: list[Array],
    offset: Array | None,
    sample_weight: Any,
    rule: Rule,
    how: Method,
) -> RowMap:
    """Return the rows to train on; equal ones, labels and offsets included, may become one."""
    examples = np.column_stack(labels if offset is None else [*labels, offset])
    merge = not (how.ordered or is_precomputed(estimator.kernel))
    rows = check_rows(sample_weight, X, examples, rule, merge=merge)
    if how.ordered:
        check_presentations(rows.weight)
    return rows


def generators(estimator: Any, count: int) -> list[np.random.RandomState]:
    """Return a random generator for each problem."""
    seeds = check_random_state(estimator.random_state).randint(2**31 - 1, size=count)
    return list(map(np.random.RandomState, seeds))
