"""Fits on inducing points: what an estimator makes of a table in blocks, and how it is tuned."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from cavity import inference as methods
from cavity.arrays import Array
from cavity.estimators.automatic import CLASS_AMPLITUDE
from cavity.estimators.blocks import Opened, opened
from cavity.estimators.coding import ClassCode, Code, TargetCode, coding
from cavity.estimators.fitted import FittedModel
from cavity.estimators.fitting import Setting
from cavity.estimators.ladder import on_ladder
from cavity.estimators.plans import FitPlan, generators
from cavity.estimators.problems import (
    beginning,
    classifier_rule,
    density,
    method_of,
    noise_variances,
    nonzero_scale,
    regressor_rule,
)
from cavity.estimators.validation import (
    RowMap,
    check_classes,
    check_n_targets,
    is_auto,
)
from cavity.evidence import Evidence
from cavity.inference import Method
from cavity.kernels import Rule
from cavity.likelihoods import Gaussian, Likelihood, likelihood
from cavity.rows import Coded, RowBlocks, RowSample, Summary, scan

_SAMPLE, _SAMPLE_BYTES = 100_000, 2**28
"""Most rows of the sample that is kept in memory, and most bytes of their inputs."""


class LargeTable(NamedTuple):
    """A table in blocks, and the problems that an estimator makes of it."""

    estimator: Any
    blocks: RowBlocks
    summary: Summary
    problems: Sequence[Sequence[Code]]
    """For each problem the codes of its targets, which share a kernel."""
    rule: Rule
    method: Method
    likelihood_of: Callable[[Array | None], Likelihood]
    """The likelihood of the rows with these numbers; of all rows if None."""
    rngs: Sequence[np.random.RandomState]
    """One for each problem."""
    amplitude: float = CLASS_AMPLITUDE
    """Typical variance of a latent function."""
    noise: bool = False
    """Whether a kernel that is to be chosen needs noise of its own."""
    before: Sequence[Array] = ()
    """Where the search for each problem begins, if not at the rule's hyperparameters."""

    def small(self, sample: RowSample, further: int) -> Setting:
        """Return what a fit to a sample without inducing points is made of."""
        how = (self.amplitude, self.noise, self.rngs, [None] * len(self.problems), further)
        return Setting(partial(self._dense, sample), self.rule, sample.X, *how)

    def _dense(self, sample: RowSample, rule: Rule) -> list[Evidence]:
        """Return the evidence of each problem for a sample, under a covariance matrix."""
        rest, found = (self.likelihood_of(sample.index), self.method, sample.weight), []
        for codes in self.problems:
            targets = [code(sample.y) for code in codes]
            evidence = Evidence.of(rule, sample.X, targets, *rest)
            found.append(evidence.under(density(self.estimator)))
        return beginning(found, self.before)

    def evidence(
        self,
        k: int,
        rule: Rule,
        couple: Callable[[Any], Any],
        blocks: RowBlocks,
        index: Any = None,
    ) -> Evidence:
        """Return the evidence of a problem for rows in blocks, those of a sample by their index."""
        rows = [Coded(blocks, code) for code in self.problems[k]]
        found = Evidence(rule, rows, self.likelihood_of(index), self.method, couple)
        return found.under(density(self.estimator))


def classes_in_blocks(
    classifier: Any, X: Any, y: Any, sample_weight: Any, before: Sequence[Array]
) -> FitPlan:
    """Check a table of classes in blocks; return what the fit of a classifier is made of.

    The search for each problem begins at the hyperparameters found ``before``, if there are any.
    """
    rule, model = classifier_rule(classifier), likelihood(classifier.likelihood)
    table = opened(classifier, X, y, sample_weight, rule)
    summary = _scanned(classifier, table, classes=True)
    classes = summary.labels.values  # type: ignore[union-attr]
    check_classification_targets(classes)
    check_classes(classifier, classes)
    split = coding(len(classes), classifier.multi_class)
    if not split.has_proba:
        raise ValueError(
            "With inducing points several classes need multi_class='one_vs_rest': its problems "
            "share the rows."
        )
    codes = [[ClassCode(label)] for label in (classes[1:] if len(classes) == 2 else classes)]
    method, rngs = method_of(classifier, model), generators(classifier, len(codes))
    setting = LargeTable(
        classifier, table.blocks, summary, codes, rule, method, lambda index: model, rngs
    )
    setting = setting._replace(before=before)
    fitted = partial(FittedModel, rows=_row_map(table, summary), coding=split)
    return FitPlan(on_ladder, setting, partial(fitted, unweighted=table.unweighted), classes)


def targets_in_blocks(regressor: Any, X: Any, y: Any, sample_weight: Any) -> FitPlan:
    """Check a table of real targets in blocks; return what the fit of a regressor is made of."""
    rule, method = regressor_rule(regressor), methods.method(regressor.inference)
    table = opened(regressor, X, y, sample_weight, rule, regressor.alpha)
    summary = _scanned(regressor, table, classes=False)
    check_n_targets(regressor, summary.sample.y)
    noise, found = _noise(regressor.alpha, table), summary.targets
    origin, scale = np.zeros_like(found.mean), np.ones_like(found.mean)  # type: ignore[union-attr]
    if regressor.normalize_y or is_auto(regressor.kernel):
        origin, scale = found.mean, nonzero_scale(found.mean, found.std)  # type: ignore[union-attr]
    square = (found.std**2 + (found.mean - origin) ** 2) / scale**2  # type: ignore[union-attr]
    single = summary.sample.y.ndim == 1
    each = enumerate(zip(origin, scale, strict=True))
    codes = [[TargetCode(None if single else k, m, s) for k, (m, s) in each]]
    own = noise if np.ndim(noise) == 0 else noise[table.rows.index]  # type: ignore[union-attr]

    def likelihood_of(index: Array | None) -> Likelihood:
        return Gaussian(own if index is None or np.ndim(own) == 0 else own[index])

    rngs, amplitude = generators(regressor, 1), float(np.mean(square)) or 1.0
    setting = LargeTable(
        regressor, table.blocks, summary, codes, rule, method, likelihood_of, rngs, amplitude, True
    )
    if single:
        origin, scale = origin[0], scale[0]
    fitted = partial(FittedModel, rows=_row_map(table, summary), origin=origin, scale=scale)
    fitted = partial(fitted, noise=noise, unweighted=table.unweighted)
    return FitPlan(on_ladder, setting, fitted)


def _noise(alpha: Any, table: Opened) -> Any:
    """Return the noise variance, one for all rows or, of arrays, for each of the user's."""
    if np.ndim(alpha) == 0:
        return float(noise_variances(alpha, 1)[0])
    if table.rows is None:
        raise ValueError("With a table in blocks alpha must be one number for all rows.")
    return noise_variances(alpha, len(table.rows.position))


def _scanned(estimator: Any, table: Opened, *, classes: bool) -> Summary:
    """Look at every row once; the sample's rows fit into a bounded amount of memory."""
    size = min(_SAMPLE, _SAMPLE_BYTES // (8 * estimator.n_features_in_))
    return scan(table.blocks, size=size, seed=0, classes=classes)


def _row_map(table: Opened, summary: Summary) -> RowMap:
    if table.rows is not None:
        return table.rows
    every = np.arange(summary.n_rows)
    return RowMap(every, np.ones(len(every)), every)
