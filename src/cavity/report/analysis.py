"""Everything in a report, computed once into plain values."""

import platform
import time
import warnings
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from cavity import __version__, compare_inference
from cavity.estimators.fitted import fitted_model
from cavity.report import parts
from cavity.report.baselines import baselines_of, skipped
from cavity.report.checks import checks_of
from cavity.report.inputs import inputs_of
from cavity.report.outliers import outliers_of, seen_through
from cavity.report.scores import Unseen, held_out_of, left_out_of
from cavity.report.suspects import suspects_of
from cavity.report.thresholds import thresholds_of
from cavity.tables.fitting import (
    Settings,
    fit_model,
    likelihood_of,
    multi_class_of,
    tuned_likelihood,
)
from cavity.tables.output import plain
from cavity.tables.prepare import Prepared

_COMPARED = 1000
"""Methods are compared on at most so many rows: their time grows with the cube of the number."""
ONE_METHOD = ("regression", "robust")
"""Tasks with one inference method."""
_SPLIT = "multi_class"
Record = dict[str, Any]
"""Named plain values, with None for a number that is not finite."""
Tell = Callable[[str], None]


@dataclass(frozen=True)
class DataSummary:
    """The table and the target."""

    source: str
    target: str
    task: str
    classes: list[str]
    class_counts: list[int]
    feature_names: list[str]
    counts: dict[str, int]
    notes: list[str]


@dataclass(frozen=True)
class ModelSummary:
    """The fitted model; only EP has an evidence correction.

    ``inducing`` is None if the model is that of all rows, else points (how many of them stand for
    the table), left_over (the share of the variance that they do not account for) and gain (what
    the last doubling of their number has added to the log evidence, or None).
    """

    kernel: str
    inference: str
    likelihood: str
    log_evidence: float
    evidence_correction: float | None
    converged: bool
    seconds: float
    warnings: list[str]
    inducing: Record | None = None


@dataclass(frozen=True)
class Analysis:
    """The contents of a report; `cavity report --json` prints these fields.

    Scores are of training rows that were left out (``left_out``; ``left_out_by`` says how) and of
    held-out rows: rows, error, log_loss, brier (in an order also ranks_off), or rmse, mae,
    r2, log_loss (of counts also d2, the share of the deviance), with ``..._se`` and
    ``baseline_...`` for some. ``verdict`` says whether the inputs help (helps), by the gain in log
    loss over a guess without inputs (gain, standard_error). ``calibration`` has class and bins for
    each class (of two, for the second). In regression there is one entry, whose class is None and
    whose bins are nominal and observed interval coverage.
    ``confusion`` counts leave-one-out predictions, a row for each true class and a column for each
    predicted one. ``certainty`` is as `certainty_of` in parts.py returns it. ``points`` holds the
    leave-one-out predictions of the training rows, or of a random sample of 2,000, in columns:
    row, label, prediction; then probability of the predicted class and probability_of_label, or
    std (with outliers: half the width of the central 68 % interval) and z, by how many standard
    deviations a Gaussian target as unlikely would be off. ``least_certain`` are the rows with the
    least certain prediction, with the same columns. ``suspects`` are all rows whose label looks
    wrong (or the ten likeliest), with also wrong (the probability that it is), precision (its mean
    over this and all rows before), suggestion, low and high of a target that is a number, and
    reasons: row, label and share of what speaks against it. ``wrong_labels`` says how many there
    are, as `suspects_of` in suspects.py returns it. ``inputs`` has the inputs of the first ten of
    both, by row number as a string. ``importance`` and ``effects`` are as `inputs_of` in inputs.py
    returns them, ``curve`` as `describe_curve` in parts.py does, ``baselines`` as `baselines_of` in
    baselines.py, ``outliers`` as `outliers_of` in outliers.py, ``checks`` as `checks_of` in
    checks.py, ``thresholds`` as `thresholds_of` in thresholds.py.
    ``comparison`` has a row of
    `cavity.compare_inference` for each method, on ``comparison_rows`` rows; it is empty in
    regression, which is exact, and if it is not asked for.
    ``command`` is the command that makes this report.
    """

    title: str
    data: DataSummary
    model: ModelSummary
    left_out: Record
    left_out_by: str
    verdict: Record
    held_out: Record | None
    calibration: list[Record]
    confusion: list[list[int]] | None
    certainty: Record
    least_certain: list[Record]
    suspects: list[Record]
    wrong_labels: Record
    importance: list[Record]
    effects: list[Record]
    baselines: Record
    outliers: Record | None
    checks: list[Record]
    thresholds: Record | None
    comparison: list[Record]
    comparison_rows: int
    curve: Record
    points: dict[str, list[Any]]
    inputs: dict[str, dict[str, str]]
    settings: Record
    versions: dict[str, str]
    command: str

    @property
    def is_classes(self) -> bool:
        """Whether the target is a class."""
        return bool(self.data.classes)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.data.counts["rows_trained_on"]

    @property
    def scored(self) -> dict[str, Record]:
        """The scores that there are, by the name of the predictions."""
        found = {self.left_out_by: self.left_out, "held-out rows": self.held_out}
        return {name: scores for name, scores in found.items() if scores}

    @property
    def best_scores(self) -> Record:
        """The scores on held-out rows if there are any, else the leave-one-out ones."""
        return self.held_out or self.left_out


def analyse(
    data: Prepared,
    settings: Settings,
    *,
    command: str = "",
    tell: Tell = lambda stage: None,
    skip: Collection[str] = (),
) -> Analysis:
    """Fit a model and compute everything in its report.

    The command is recorded; ``tell`` is called with a description of each step before it begins.
    What is in ``skip`` is left out: "comparison" (of inference methods) or "baselines".
    """
    tell("tuning the kernel")
    begin = time.perf_counter()
    fitted, warned = fit_model(data, settings)
    model = _about_model(fitted, settings, data, time.perf_counter() - begin, warned)
    tell("predicting held-out rows")
    unseen = left_out_of(data, fitted), held_out_of(data, fitted)
    about_rows = _about_rows(data, fitted, unseen, settings.seed)
    tell("measuring which inputs matter")
    about_inputs = inputs_of(data, fitted, settings.seed)
    about_methods = _comparisons(data, settings, fitted, unseen, tell, skip)
    about = seen_through(about_rows | about_inputs | about_methods)
    return Analysis(
        title=f"{data.target} of {data.source}",
        data=_about_data(data),
        model=model,
        settings=asdict(settings),
        versions=_versions(),
        command=command,
        checks=checks_of(data, fitted, unseen[0], about, settings.seed),
        **plain(about),
    )


def _about_rows(
    data: Prepared, fitted: Any, unseen: tuple[Unseen, Unseen | None], seed: int
) -> Record:
    """Return the fields about rows that the model has not seen."""
    places, suspects = suspects_of(data, fitted, unseen[0])
    found = parts.rows_of(data, *unseen, places, seed) | suspects
    return found | {"thresholds": thresholds_of(data, unseen[0])}


def _comparisons(
    data: Prepared,
    settings: Settings,
    fitted: Any,
    unseen: tuple[Unseen, Unseen | None],
    tell: Tell,
    skip: Collection[str],
) -> Record:
    """Return the fields about other methods and other numbers of rows."""
    few, comparison = compared(data, settings), []
    if data.task not in ONE_METHOD and "comparison" not in skip:
        tell("comparing inference methods")
        known, split = tuned_likelihood(data.task, settings, fitted), getattr(fitted, _SPLIT, None)
        comparison = compare_methods(few, fitted.kernel_, settings, False, known, split)
    tell("computing the learning curve")
    curve = parts.describe_curve(parts.curve_of(data, fitted))
    baselines = skipped("It was made with --no-baselines.")
    if "baselines" not in skip:
        tell("fitting simpler models")
        baselines = baselines_of(data, *unseen, curve, settings.seed)
    tell("looking for outliers")
    return {
        "outliers": outliers_of(data, unseen[0], settings),
        "comparison": comparison,
        "comparison_rows": len(few.y),
        "curve": curve,
        "baselines": baselines,
    }


def _versions() -> dict[str, str]:
    others = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"cavity": __version__, "python": platform.python_version(), **others}


def _about_data(data: Prepared) -> DataSummary:
    return DataSummary(
        source=data.source,
        target=data.target,
        task=data.task,
        classes=[str(name) for name in data.classes],
        class_counts=[int(np.sum(data.y == code)) for code in range(len(data.classes))],
        feature_names=data.feature_names,
        counts=data.counts,
        notes=data.notes,
    )


def _about_model(
    fitted: Any, settings: Settings, data: Prepared, seconds: float, warned: list[str]
) -> ModelSummary:
    fits = fitted_model(fitted).fits
    correction = getattr(fitted, "evidence_correction_", None)
    return ModelSummary(
        kernel=parts.kernel_text(fitted.kernel_, data.classes),
        inference=fits[0].method.name,
        likelihood=str(fitted.likelihood),
        log_evidence=float(fitted.log_marginal_likelihood_value_),
        evidence_correction=None if correction is None else float(correction),
        converged=all(bool(fit.report.converged) for fit in fits),
        seconds=seconds,
        warnings=warned,
        inducing=about_inducing(fitted),
    )


def about_inducing(fitted: Any) -> Record | None:
    """Return points, left_over and gain of the inducing points, or None if there are none."""
    points = getattr(fitted, "inducing_points_", None)
    if points is None:
        return None
    gain = fitted.inducing_gain_
    return {
        "points": max(map(len, points if isinstance(points, list) else [points])),
        "left_over": float(fitted.inducing_left_over_),
        "gain": None if gain is None else float(gain),
    }


def compared(data: Prepared, settings: Settings) -> Prepared:
    """Return the rows on which inference methods are compared: of many, a random sample."""
    return data.sample(_COMPARED, settings.seed)


def compare_methods(
    data: Prepared,
    kernel: Kernel,
    settings: Settings,
    tune: bool = False,
    likelihood: Any = None,
    multi_class: str | None = None,
) -> list[Record]:
    """Compare all inference methods; a row of `compare_inference` for each.

    If each class has its own kernel, so has each of the binary problems here. With ``tune``, each
    method tunes the kernel by its own evidence. The likelihood, unless given, is that of the task.
    """
    with warnings.catch_warnings():
        # What matters, the table says; of odd targets the fit has warned.
        warnings.simplefilter("ignore")
        table = compare_inference(
            data.X,
            data.y,
            kernel,
            likelihood=likelihood or likelihood_of(data.task, settings),
            optimizer="fmin_l_bfgs_b" if tune else None,
            random_state=settings.seed,
            offset=data.offset,
            multi_class=multi_class or multi_class_of(data, settings),
            normalize_y=not data.classes,
        )
    return [plain(row) for row in table]
