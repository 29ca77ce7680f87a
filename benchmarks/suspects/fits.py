"""Class probabilities of rows that a model has not seen: ours from one fit, others by folds."""

import time
import zlib
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.suspects.noise import KINDS, turned
from benchmarks.suspects.tables import TABLES, table
from benchmarks.trust.plan import spread
from cavity import GaussianProcessClassifier

__all__ = ["OURS", "PEERS", "Case", "Seen", "cases", "fit_all", "read"]

OURS = "cavity"
_FOLDS = 5
PEERS: dict[str, Callable[[], Any]] = {
    "logistic regression": lambda: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=2000)
    ),
    "random forest": lambda: RandomForestClassifier(300, random_state=0),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "SVC": lambda: make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
}


class Case(NamedTuple):
    """A table some of whose labels are turned wrong."""

    table: str
    kind: str
    share: float
    seed: int

    @property
    def file(self) -> str:
        """Return the name of the file with its probabilities."""
        words = [self.table, self.kind, f"{self.share:g}", str(self.seed)]
        return "-".join(words).replace(" ", "_") + ".npz"


class Seen(NamedTuple):
    """Labels as given, which are wrong, and held-out probabilities and seconds of each model."""

    given: np.ndarray
    wrong: np.ndarray
    proba: dict[str, np.ndarray]
    seconds: dict[str, float]


def cases(quick: bool, seeds: int) -> Iterator[Case]:
    """Yield all cases; a quick run has three tables and one share."""
    names, shares = (["crabs", "iris", "rings"], [0.1]) if quick else (TABLES, [0.05, 0.1, 0.2])
    for seed, kind in product(range(1 if quick else seeds), KINDS):
        for name, share in product(names, shares):
            yield Case(name, kind, share, seed)


def fit_all(wanted: list[Case], folder: Path, jobs: int) -> None:
    """Fit all models to the cases that have no file yet, which keeps what each has said."""
    folder.mkdir(parents=True, exist_ok=True)
    todo = [(case, folder) for case in wanted if not (folder / case.file).exists()]
    spread(fit_one, todo, jobs)


def fit_one(case: Case, folder: Path) -> None:
    """Fit all models to one case."""
    X, y = table(case.table)
    rng = np.random.default_rng([zlib.crc32(case.file.encode()), case.seed])
    given, wrong = turned(case.kind, X, y, case.share, rng)
    found = {OURS: _timed(_left_out, X, given)}
    for name, make in PEERS.items():
        found[name] = _timed(_by_folds, make(), X, given)
    arrays = {f"p {name}": p for name, (p, _) in found.items()}
    arrays |= {f"s {name}": np.array(seconds) for name, (_, seconds) in found.items()}
    beside = folder / f"unfinished-{case.file}"
    np.savez_compressed(beside, given=given, wrong=wrong, **arrays)
    beside.rename(folder / case.file)


def read(case: Case, folder: Path) -> Seen:
    """Return what was kept of a case."""
    with np.load(folder / case.file) as kept:
        names = [OURS, *PEERS]
        proba = {name: kept[f"p {name}"] for name in names}
        seconds = {name: float(kept[f"s {name}"]) for name in names}
        return Seen(kept["given"], kept["wrong"], proba, seconds)


def _left_out(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    return GaussianProcessClassifier(kernel="auto").fit(X, y).loo_proba_


def _by_folds(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=0)
    return np.asarray(cross_val_predict(model, X, y, cv=folds, method="predict_proba"))


def _timed(work: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    begin = time.perf_counter()
    found = work(*given)
    return found, time.perf_counter() - begin
