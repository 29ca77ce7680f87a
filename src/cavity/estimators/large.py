"""Fits on inducing points: what an estimator makes of a table in blocks, and how it is tuned."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from cavity.arrays import Array
from cavity.estimators.automatic import CLASS_AMPLITUDE, TARGET_AMPLITUDE
from cavity.estimators.blocks import Opened, opened
from cavity.estimators.coding import ClassCode, Code, Coding, RankCode, TargetCode
from cavity.estimators.fitted import FittedModel
from cavity.estimators.fitting import Setting
from cavity.estimators.joint import latents_of, method_on_points
from cavity.estimators.ladder import on_ladder
from cavity.estimators.latents import SIGNS, Latents
from cavity.estimators.plans import FitPlan, generators, split_of
from cavity.estimators.problems import (
    TargetUnits,
    beginning,
    classifier_rule,
    density,
    given_noise,
    in_units,
    method_of,
    noise_variances,
    nonzero_scale,
    regressor_rule,
    target_likelihood,
    target_method,
    target_units,
    with_added,
)
from cavity.estimators.validation import (
    RowMap,
    check_targets,
    is_auto,
)
from cavity.evidence import Evidence
from cavity.inference import Method
from cavity.kernels import Rule
from cavity.likelihoods import Gaussian, Likelihood, likelihood
from cavity.rows import RowBlocks, RowSample, Summary, scan

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
    latents: Latents = SIGNS
    """What each problem's latent values are of."""

    def small(self, sample: RowSample, further: int) -> Setting:
        """Return what a fit to a sample without inducing points is made of."""
        how = (self.amplitude, self.noise, self.rngs, [None] * len(self.problems), further)
        evidences_of = partial(self._dense, sample)
        return Setting(evidences_of, self.rule, sample.X, *how, latents=self.latents)

    def _dense(self, sample: RowSample, rule: Rule) -> list[Evidence]:
        """Return the evidence of each problem for a sample, under a covariance matrix."""
        rest, found = (self.likelihood_of(sample.index), self.method), []
        for codes in self.problems:
            targets = [code(sample.y) for code in codes]
            rows, couple = self.latents.in_memory(sample.X, targets, sample.weight)
            evidence = Evidence(rule, rows, *rest, couple)
            found.append(evidence.under(density(self.estimator)))
        return beginning(found, self.before)

    def couple(self, Z: Array) -> Callable[[Any], Any]:
        """Return what makes a prior with these inducing points from a kernel rule."""
        return self.latents.on_points(Z, whole=not self.method.bounds)

    def evidence(
        self,
        k: int,
        rule: Rule,
        couple: Callable[[Any], Any],
        blocks: RowBlocks,
        index: Any = None,
    ) -> Evidence:
        """Return the evidence of a problem for rows in blocks, those of a sample by their index."""
        rows = [self.latents.in_blocks(blocks, code) for code in self.problems[k]]
        found = Evidence(rule, rows, self.likelihood_of(index), self.method, couple)
        return found.under(density(self.estimator))


def classes_in_blocks(
    classifier: Any, X: Any, y: Any, sample_weight: Any, offset: Any, before: Sequence[Array]
) -> FitPlan:
    """Check a table of classes in blocks; return what the fit of a classifier is made of.

    The search for each problem begins at the hyperparameters found ``before``, if there are any.
    """
    rule, model = classifier_rule(classifier), likelihood(classifier.likelihood)
    method = method_of(classifier, model)
    table = opened(classifier, X, y, sample_weight, offset, rule, method)
    summary = _scanned(classifier, table, classes=True)
    classes = summary.labels.values  # type: ignore[union-attr]
    check_classification_targets(classes)
    split = split_of(classifier, classes, table.offset)
    if split.several:
        method = method_on_points(classifier)
    elif not split.has_proba:
        raise ValueError(
            "With inducing points several classes need multi_class='one_vs_rest' or 'multinomial': "
            "their problems are about the same rows."
        )
    codes = _codes(split, classes)
    if split.ordered:
        model = model.fitted_to(*_with_all(codes[0][0], summary, len(classes)))
    shifted, rngs = _with_added(classifier, model, table), generators(classifier, len(codes))
    setting = LargeTable(
        classifier, table.blocks, summary, codes, rule, method, _of_rows(shifted), rngs
    )
    setting = setting._replace(before=before, latents=latents_of(classifier, split))
    fitted = partial(FittedModel, rows=_row_map(table, summary), coding=split)
    return FitPlan(on_ladder, setting, partial(fitted, unweighted=table.unweighted), classes)


def targets_in_blocks(regressor: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> FitPlan:
    """Check a table of targets in blocks; return what the fit of a regressor is made of."""
    rule, base = regressor_rule(regressor), target_likelihood(regressor)
    method = target_method(regressor, base)
    own = given_noise(regressor) if base.quadratic else 0.0
    table = opened(regressor, X, y, sample_weight, offset, rule, method, own)
    summary = _checked_summary(regressor, base, table)
    units = _units(regressor, base, table, summary)
    origin, scale = np.atleast_1d(units.origin), np.atleast_1d(units.scale)
    single, each = summary.sample.y.ndim == 1, enumerate(zip(origin, scale, strict=True))
    codes = [[TargetCode(None if single else k, m, s) for k, (m, s) in each]]
    size = float(np.sqrt(units.amplitude))
    shifted = _with_added(regressor, units.likelihood, table, units.offset, size)
    setting = LargeTable(
        regressor,
        table.blocks,
        summary,
        codes,
        rule,
        method,
        _of_rows(shifted),
        generators(regressor, 1),
        units.amplitude,
        base.quadratic,
    )
    fitted = partial(FittedModel, rows=_row_map(table, summary), level=units.level)
    fitted = partial(fitted, origin=units.origin, scale=units.scale, noise=units.noise)
    return FitPlan(on_ladder, setting, partial(fitted, unweighted=table.unweighted))


def _checked_summary(regressor: Any, base: Likelihood, table: Opened) -> Summary:
    """Look at every row once; in memory, a wrong target is named by the user's number."""
    if table.given is not None:
        check_targets(regressor, base, *table.given)
    summary = _scanned(regressor, table, classes=False, check=base.check_targets)
    if table.given is None:
        check_targets(regressor, base, summary.sample.y, None)
    return summary


def _units(regressor: Any, base: Likelihood, table: Opened, summary: Summary) -> TargetUnits:
    """Return how targets are scaled; those of a table in blocks by the moments of all rows."""
    if table.given is not None and table.rows is not None:
        units = target_units(regressor, base, *table.given, table.rows)
        if base.quadratic and np.ptp(units.noise) == 0.0:
            noise = float(units.noise[0])
            return units._replace(noise=noise, likelihood=Gaussian(noise))
        return units
    found: Any = summary.targets
    normalize, sample = regressor.normalize_y or is_auto(regressor.kernel), summary.sample
    if base.support != "reals":
        level = base.level(sample.y, sample.weight) if normalize else 0.0
        model = base.fitted_to(sample.y, sample.weight)
        return TargetUnits(sample.y, model, 0.0, level, TARGET_AMPLITUDE, level=level)
    origin, scale = np.zeros_like(found.mean), np.ones_like(found.mean)
    if normalize:
        origin, scale = found.mean, nonzero_scale(found.mean, found.std)
    amplitude = float(np.mean((found.std**2 + (found.mean - origin) ** 2) / scale**2)) or 1.0
    if sample.y.ndim == 1:
        origin, scale = origin[0], scale[0]
    own, noise = (sample.y - origin) / scale, 0.0
    model = in_units(regressor, base, own, sample.weight, origin, scale)
    if base.quadratic:
        noise = _noise(given_noise(regressor, scale))
        model = Gaussian(noise)
    return TargetUnits(sample.y, model, noise, None, amplitude, origin, scale)


def _with_added(
    estimator: Any, model: Likelihood, table: Opened, offset: Any = None, unit: float = 1.0
) -> Likelihood:
    """Return the likelihood of a table's rows, with their offsets and perhaps a trend."""
    added = table.offset if offset is None else offset
    return with_added(estimator, model, table.inputs, added, unit)


def _codes(split: Coding, classes: Array) -> list[list[Code]]:
    """Return what each problem makes of the labels."""
    if split.joint:
        return [[RankCode(classes)]]
    return [[ClassCode(label)] for label in (classes[1:] if len(classes) == 2 else classes)]


def _with_all(code: Code, summary: Summary, n_classes: int) -> tuple[Array, Array]:
    """Return the codes of a sample, and each class without weight: it may have no row there."""
    codes, every = code(summary.sample.y), np.arange(n_classes, dtype=float)
    return np.append(codes, every), np.append(summary.sample.weight, 0.0 * every)


def _of_rows(model: Likelihood) -> Callable[[Array | None], Likelihood]:
    """Return the likelihood of rows by their numbers; of all rows, if these are None."""
    return lambda index: model if index is None else model.subset(index)


def _noise(alpha: Any) -> float:
    """Return the noise variance, which is one for all rows of a table in blocks."""
    if np.ndim(alpha):
        raise ValueError("With a table in blocks alpha must be one number for all rows.")
    return float(noise_variances(alpha, 1)[0])


def _scanned(estimator: Any, table: Opened, *, classes: bool, check: Any = None) -> Summary:
    """Look at every row once; the sample's rows fit into a bounded amount of memory."""
    size = min(_SAMPLE, _SAMPLE_BYTES // (8 * estimator.n_features_in_))
    return scan(table.blocks, size=size, seed=0, classes=classes, check=check)


def _row_map(table: Opened, summary: Summary) -> RowMap:
    if table.rows is not None:
        return table.rows
    every = np.arange(summary.n_rows)
    return RowMap(every, np.ones(len(every)), every)
