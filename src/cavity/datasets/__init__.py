"""Data sets of the learning-curve and mean-field literature, shipped with the package.

The loaders, in scikit-learn's style, all work from one table of specifications.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

__all__ = [
    "DatasetInfo",
    "list_datasets",
    "load_abalone",
    "load_arthritis",
    "load_boston",
    "load_coal",
    "load_crabs",
    "load_insurance",
    "load_outliers",
    "load_pima",
    "load_sonar",
]

DATA = files("cavity.datasets") / "data"


class DatasetInfo(NamedTuple):
    """What a shipped data set offers.

    Attributes
    ----------
    n_rows, n_features : int
        Shape of the design matrix with everything loaded.
    task : str
        "classification", "regression", "counts" or "ordinal".
    description : str
        One line.
    """

    n_rows: int
    n_features: int
    task: str
    description: str


@dataclass(frozen=True)
class DatasetSpec:
    """How the columns of one table, in one file or several, become features and a target."""

    files: tuple[str, ...]
    target: str
    task: str
    description: str
    indicators: tuple[tuple[str, str], ...] = ()  # (column, level): a 0/1 feature, placed first
    unused: tuple[str, ...] = ()
    order: tuple[str, ...] = ()  # of the classes, the lowest first
    exposure: str | None = None  # what counts are in proportion to


SPECS = {
    # The second of two files holds the test rows.
    "pima": DatasetSpec(
        ("pima_tr.csv", "pima_te.csv"),
        "type",
        "classification",
        "diabetes among Pima women, with Ripley's split of 200 and 332 rows",
    ),
    "crabs": DatasetSpec(
        ("crabs.csv",),
        "sex",
        "classification",
        "sex (or species) of rock crabs from five shell measurements",
        indicators=(("sp", "O"),),
        unused=("index",),
    ),
    "sonar": DatasetSpec(
        ("sonar.csv",),
        "Class",
        "classification",
        "sonar echoes of a metal cylinder (M) and of rocks (R) in 60 frequency bands",
    ),
    "boston": DatasetSpec(
        ("boston.csv",),
        "medv",
        "regression",
        "median house values around Boston, kept to reproduce published learning curves",
    ),
    "abalone": DatasetSpec(
        ("abalone.csv",),
        "rings",
        "regression",
        "growth rings of abalones from sex, size and weight",
        indicators=(("sex", "M"), ("sex", "F"), ("sex", "I")),
    ),
    "coal": DatasetSpec(
        ("coal.csv",), "disasters", "counts", "disasters in British coal mines, 1851 to 1962"
    ),
    "insurance": DatasetSpec(
        ("insurance.csv",),
        "Claims",
        "counts",
        "claims of groups of policyholders, in proportion to the size of the group",
        indicators=(
            *(("Group", size) for size in ("<1l", "1-1.5l", "1.5-2l", ">2l")),
            *(("Age", years) for years in ("<25", "25-29", "30-35", ">35")),
        ),
        exposure="Holders",
    ),
    "arthritis": DatasetSpec(
        ("arthritis.csv",),
        "Improved",
        "ordinal",
        "improvement (none, some, marked) of patients with arthritis in a trial",
        indicators=(("Treatment", "Treated"), ("Sex", "Male")),
        unused=("ID",),
        order=("None", "Some", "Marked"),
    ),
    "outliers": DatasetSpec(
        ("outliers.csv",),
        "y",
        "regression",
        "made up: a curve with nine outliers",
        unused=("wrong",),
    ),
}

_PIMA_FILES = {"train": ("pima_tr.csv",), "test": ("pima_te.csv",), "all": SPECS["pima"].files}
# With the species as the target, sex becomes a feature.
_CRABS_SPECS = {
    "sex": SPECS["crabs"],
    "species": replace(SPECS["crabs"], target="sp", indicators=(("sex", "M"),)),
}


def _columns(names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    tables = [list(csv.reader((DATA / name).read_text("utf-8").splitlines())) for name in names]
    body = [row for table in tables for row in table[1:]]
    return dict(zip(tables[0][0], zip(*body, strict=True), strict=True))


def _features(spec: DatasetSpec, columns: Mapping[str, Sequence[str]]) -> dict[str, NDArray[Any]]:
    levels = {f"{c}_{level}": np.array(columns[c]) == level for c, level in spec.indicators}
    skipped = {spec.target, spec.exposure, *spec.unused, *(c for c, _ in spec.indicators)}
    measured = {c: np.array(v) for c, v in columns.items() if c not in skipped}
    return {name: column.astype(np.float64) for name, column in (levels | measured).items()}


def _target(spec: DatasetSpec, column: Sequence[str]) -> tuple[NDArray[Any], dict[str, Any]]:
    if spec.task in ("regression", "counts"):
        return np.array(column, dtype=np.float64), {}
    if spec.order:
        ranks = [spec.order.index(level) for level in column]
        return np.array(ranks, dtype=np.int64), {"target_names": np.array(spec.order)}
    # Sorted, so that codes agree with `classes_` of a classifier fitted on the names.
    names, codes = np.unique(np.array(column), return_inverse=True)
    return codes.astype(np.int64), {"target_names": names}


def _description(name: str) -> str:
    sections = (DATA / "README.md").read_text("utf-8").split("\n## ")
    return next(text for text in sections if text.startswith(f"{name}\n")).strip()


def _frame(X: NDArray[Any], y: NDArray[Any], names: Sequence[str], target: str) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas, which is not installed: "
            "run `pip install pandas`, or leave as_frame=False for NumPy arrays."
        ) from error
    return pd.DataFrame(X, columns=list(names)).assign(**{target: y})


def _load(name: str, spec: DatasetSpec, return_X_y: bool, as_frame: bool, **extra: Any) -> Any:
    columns = _columns(spec.files)
    features = _features(spec, columns)
    X, frame = np.column_stack(list(features.values())), None
    y, naming = _target(spec, columns[spec.target])
    if as_frame:
        frame = _frame(X, y, list(features), spec.target)
        X, y = frame[list(features)], frame[spec.target]
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        feature_names=list(features),
        frame=frame,
        DESCR=_description(name),
        filename=spec.files[0] if len(spec.files) == 1 else spec.files,
        **naming,
        **extra,
    )


def _choose(options: Mapping[str, Any], parameter: str, value: str) -> Any:
    if value not in options:
        raise ValueError(f"{parameter} must be one of {sorted(options)}, got {value!r}.")
    return options[value]


def load_pima(*, subset: str = "train", return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Pima diabetes data with Ripley's split.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 200 training rows, the 332 test rows, or both with the training rows first.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    as_frame : bool, default=False
        Return pandas objects in place of arrays.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        `data` (n, 7), `target` (0 for "No", 1 for "Yes"), `feature_names`, `target_names`,
        `frame`, `DESCR`, `filename` (a tuple of two for ``"all"``), and the row numbers `train`
        and `test` of the two parts within `data`.
    """
    spec = replace(SPECS["pima"], files=_choose(_PIMA_FILES, "subset", subset))
    sizes = [len(_columns([name])["type"]) for name in spec.files]
    is_train = np.repeat([name == "pima_tr.csv" for name in spec.files], sizes)
    split = {"train": np.flatnonzero(is_train), "test": np.flatnonzero(~is_train)}
    return _load("pima", spec, return_X_y, as_frame, **split)


def load_crabs(*, target: str = "sex", return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the rock crab data, 200 rows.

    Parameters
    ----------
    target : {"sex", "species"}, default="sex"
        What to predict; the other of the two becomes a 0/1 feature, `sp_O` or `sex_M`.
    return_X_y, as_frame : bool, default=False
        As in :func:`load_pima`.

    Returns
    -------
    sklearn.utils.Bunch or tuple
        `data` (200, 6) and the other entries listed for :func:`load_pima`, without the split.
    """
    return _load("crabs", _choose(_CRABS_SPECS, "target", target), return_X_y, as_frame)


def load_sonar(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the sonar data: 208 echoes, 60 features, classes "M" (0) and "R" (1).

    The rows are ordered by class: shuffle them, or stratify, before any splitting.
    Parameters and entries are those of :func:`load_crabs`, without `target`.
    """
    return _load("sonar", SPECS["sonar"], return_X_y, as_frame)


def load_boston(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Boston housing data: 506 rows, 13 features, target `medv`.

    The column `black` encodes race and its use is rightly criticised; the table is here to
    reproduce published learning curves and for no other purpose (see `DESCR`).
    Parameters and entries are those of :func:`load_crabs`, without `target` and `target_names`.
    """
    return _load("boston", SPECS["boston"], return_X_y, as_frame)


def load_abalone(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the abalone data: 4177 rows, 10 features, target `rings`.

    Sex comes first, as the three 0/1 features `sex_M`, `sex_F` and `sex_I`.
    Parameters and entries are those of :func:`load_crabs`, without `target` and `target_names`.
    """
    return _load("abalone", SPECS["abalone"], return_X_y, as_frame)


def load_coal(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the coal-mining disasters: 112 years, the number of disasters in each.

    The feature `time` is the middle of the year. The Bunch also has `dates`, those of the 191
    disasters in years. Parameters and other entries are those of :func:`load_boston`.
    """
    dates = np.array(_columns(["coal_dates.csv"])["date"], dtype=np.float64)
    return _load("coal", SPECS["coal"], return_X_y, as_frame, dates=dates)


def load_insurance(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the motor insurance claims: 64 groups of policyholders, 9 features, target `Claims`.

    The Bunch also has `exposure`, the number of policyholders in each group: pass its logarithm as
    ``offset``. Parameters and other entries are those of :func:`load_boston`.
    """
    spec = SPECS["insurance"]
    exposure = np.array(_columns(spec.files)["Holders"], dtype=np.float64)
    return _load("insurance", spec, return_X_y, as_frame, exposure=exposure)


def load_arthritis(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the arthritis trial: 84 patients, 3 features, and how much they improved.

    The classes are in their order: "None" (0), "Some" (1), "Marked" (2). Parameters and entries are
    those of :func:`load_crabs`, without `target`.
    """
    return _load("arthritis", SPECS["arthritis"], return_X_y, as_frame)


def load_outliers(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load a made-up curve with noise: 150 rows, one feature, nine of the targets outliers.

    The Bunch also has `wrong`, which says which. Parameters and other entries are those of
    :func:`load_boston`.
    """
    wrong = np.array(_columns(["outliers.csv"])["wrong"]) == "1"
    return _load("outliers", SPECS["outliers"], return_X_y, as_frame, wrong=wrong)


def list_datasets() -> dict[str, DatasetInfo]:
    """List the shipped data sets.

    Returns
    -------
    dict
        Name to :class:`DatasetInfo`: number of rows, number of features, task, description.
    """
    found = {}
    for name, spec in SPECS.items():
        n_rows, n_features = _load(name, spec, True, False)[0].shape
        found[name] = DatasetInfo(n_rows, n_features, spec.task, spec.description)
    return found
