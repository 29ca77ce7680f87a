"""Checks of a table and of its model, each with a code that docs/checks.md explains."""

import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import spearmanr

from cavity.arrays import Array
from cavity.estimators.fitted import fitted_model
from cavity.report.baselines import BOOSTED
from cavity.report.scores import Unseen
from cavity.report.words import count, join
from cavity.tables.columns import CONSTANT
from cavity.tables.prepare import Prepared

_FEW_ROWS = 10
"""Of a class; with fewer, some folds of ten would have none."""
_ENOUGH_ROWS = 30
"""From which on an order, or an input that tells everything, is hardly a coincidence."""
_MOST_ROWS, _MOST_NAMES = 2000, 3
_TELLS_ALL, _SAME_ORDER = 0.98, 0.995
_ALIKE, _DEVIATIONS = 0.1, 4.0
"""The least correlation of neighbours that matters, and that is no chance, by 1/√n."""
_STEPS = 10
Record = dict[str, Any]


class Case(NamedTuple):
    """What the checks look at."""

    data: Prepared
    fitted: Any
    left_out: Unseen
    helps: bool
    """Whether the inputs help."""
    baselines: Record
    sample: Prepared
    """Of many rows, some, in memory."""


Finder = Callable[[Case], str | None]
"""Returns a sentence about what it has found, or "" for nothing, or None if it cannot be made."""


class Check(NamedTuple):
    """A check: how to find it, how bad it is, and what it means and what to do."""

    code: str
    find: Finder
    severity: str
    title: str
    meaning: str


def checks_of(
    data: Prepared, fitted: Any, left_out: Unseen, about: Record, seed: int
) -> list[Record]:
    """Return code, severity, title, status, text and link of each check.

    The status is "found", "passed" or "not made"; ``about`` has the fields verdict and baselines of
    the analysis.
    """
    sample = data.sample(_MOST_ROWS, seed)
    case = Case(data, fitted, left_out, about["verdict"]["helps"], about["baselines"], sample)
    return [_record(check, check.find(case)) for check in CHECKS]


def _record(check: Check, text: str | None) -> Record:
    return {
        "code": check.code,
        "severity": check.severity,
        "title": check.title,
        "status": "not made" if text is None else "found" if text else "passed",
        "text": text or "",
        "link": f"docs/checks.md#{check.code.lower()}",
    }


def _duplicates(case: Case) -> str | None:
    data = case.data
    if data.stored is not None:
        return None
    inputs = pl.from_numpy(np.asarray(data.X))
    copies = data.X.shape[0] - inputs.with_columns(y=pl.Series(data.y)).n_unique()
    same = inputs.with_columns(y=pl.Series(data.y)).group_by(inputs.columns)
    apart = same.agg(pl.len().alias("rows"), pl.col("y").n_unique()).filter(pl.col("y") > 1)
    parts = []
    if copies:
        parts.append(f"{count(copies, 'row is a copy', 'rows are copies')} of another row")
    if len(apart):
        parts.append(f"{apart['rows'].sum():,} rows share their inputs but not their target")
    risk = " If these are the same cases, left-out scores are too good." if copies else ""
    return f"{' and '.join(parts)}.{risk}" if parts else ""


def _leak(case: Case) -> str | None:
    data = case.sample
    if len(data.y) < _ENOUGH_ROWS:
        return None
    tells = _tells_class if data.classes else _tells_number
    columns = zip(data.encoder.columns, data.encoder.groups, strict=True)
    names = [column.name for column, group in columns if tells(data.X[:, group], data.y)]
    return f"{_some(names)} alone tells the target almost exactly." if names else ""


def _tells_class(X: Array, y: Array) -> bool:
    """Return whether a tree of as many leaves as there are classes is hardly ever wrong."""
    from sklearn.tree import DecisionTreeClassifier

    leaves = max(len(np.unique(y)), 2)
    right = DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=0).fit(X, y).score(X, y)
    guess = np.bincount(y).max() / len(y)
    return bool(1.0 - right <= (1.0 - _TELLS_ALL) * (1.0 - guess))


def _tells_number(X: Array, y: Array) -> bool:
    """Return whether the target rises or falls with a number, or is nearly the same in a level."""
    if X.shape[1] == 1 and len(np.unique(X)) > 2:
        return bool(np.ptp(y) > 0.0 and abs(spearmanr(X[:, 0], y).statistic) >= _SAME_ORDER)
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_leaf_nodes=X.shape[1] + 1, random_state=0)
    return bool(tree.fit(X, y).score(X, y) >= _TELLS_ALL)


def _constant(case: Case) -> str | None:
    names = [name for name, reason in case.data.unused.items() if reason == CONSTANT]
    X, encoder = case.sample.X, case.data.encoder
    still = np.ptp(X, axis=0) == 0.0
    names += [
        column.name
        for column, group in zip(encoder.columns, encoder.groups, strict=True)
        if still[group].all()
    ]
    return f"{_some(names)} has the same value in every row." if names else ""


def _at_bound(case: Case) -> str | None:
    found = dict.fromkeys(
        line for process in fitted_model(case.fitted).processes for line in process.at_bounds
    )
    if not found:
        return ""
    first = next(iter(found))
    more = f" {count(len(found) - 1, 'other', 'others')} did, too." if len(found) > 1 else ""
    return f"{first}{more}"


def _no_help(case: Case) -> str | None:
    return "" if case.helps else "A guess without inputs predicts as well as the model."


def _boosting(case: Case) -> str | None:
    found = {m["name"]: m for m in case.baselines["methods"]}
    if BOOSTED not in found:
        return None
    m = found[BOOSTED]
    if m["verdict"] != "better":
        return ""
    return f"The log loss of {BOOSTED} is {-m['excess']:.3g} below that of the model."


def _rare_class(case: Case) -> str | None:
    data = case.data
    if not data.classes:
        return None
    counts = np.bincount(data.y, minlength=len(data.classes)).tolist()
    rare = [f"{c} ({n})" for c, n in zip(data.classes, counts, strict=True) if n < _FEW_ROWS]
    return f"Fewer than {_FEW_ROWS} training rows have the class {_some(rare)}." if rare else ""


def _ordered(case: Case) -> str | None:
    data = case.data
    if len(data.y) < _ENOUGH_ROWS or data.stored is not None:
        return None
    groups = zip(data.encoder.columns, data.encoder.groups, strict=True)
    names = [column.name for column, g in groups if len(g) == 1 and _rises(data.X[:, g[0]])]
    if names:
        return f"The rows are in the order of {_some(names)}."
    alike = _neighbours(case.left_out)
    if alike < max(_ALIKE, _DEVIATIONS / np.sqrt(len(data.y))) or _is_grouped(data):
        return ""
    return (
        "Rows next to each other are alike beyond what the inputs explain: their prediction errors "
        f"have a correlation of {alike:.2f}."
    )


def _rises(x: Array) -> bool:
    steps = np.diff(x)
    return len(np.unique(x)) > _STEPS and bool(np.all(steps >= 0.0) or np.all(steps <= 0.0))


def _neighbours(left_out: Unseen) -> float:
    """Return the correlation of the errors of rows next to each other."""
    if left_out.proba is None:
        errors = ((left_out.y - left_out.mean) / left_out.std)[:, None]
    else:
        errors = np.eye(left_out.proba.shape[1])[left_out.y] - left_out.proba
    errors = errors - errors.mean(axis=0)
    total = float(np.sum(errors**2))
    return float(np.sum(errors[1:] * errors[:-1])) / total if total > 0.0 else 0.0


def _is_grouped(data: Prepared) -> bool:
    """Return whether the table is sorted by its target, which says nothing about time."""
    if not data.classes:
        return bool(abs(float(spearmanr(data.y, data.rows).statistic)) > 1.0 - _ALIKE)
    shares = np.bincount(data.y) / len(data.y)
    changes = np.count_nonzero(np.diff(data.y))
    return bool(changes < len(data.y) * (1.0 - float(shares @ shares)) / 2.0)


def _some(names: list[str]) -> str:
    """Return a few names for a sentence, and how many more there are."""
    shown = [str(name) for name in names[:_MOST_NAMES]]
    more = len(names) - len(shown)
    return join([*shown, f"{more} more"] if more else shown)


FINDERS: dict[str, Finder] = {
    "C01": _duplicates,
    "C02": _leak,
    "C03": _constant,
    "C04": _at_bound,
    "C05": _no_help,
    "C06": _boosting,
    "C07": _rare_class,
    "C08": _ordered,
}
"""What looks for each; a code is never given to another check."""


def _texts() -> dict[str, Any]:
    text = (files("cavity.report") / "templates" / "checks.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


CHECKS = [Check(code, find=FINDERS[code], **about) for code, about in _texts().items()]
"""All checks, in the order of their codes."""
