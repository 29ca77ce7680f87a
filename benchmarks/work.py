"""The work that is measured, and the bars that it has to clear."""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.contestants import PEERS
from benchmarks.contestants.common import timed
from benchmarks.measure import ROOT, child, interleaved, median
from benchmarks.plan import Plan
from benchmarks.rows import Answers, Row, against_floor, against_peer, fit_row

__all__ = ["contender", "evaluations", "fits", "floors", "own"]

Say = Callable[[str], None]

_FITTED = ("cavity EP", "cavity Laplace", "cavity Laplace logit", *PEERS)
_EVALUATED = ("cavity EP", "cavity Laplace logit", "scikit-learn", "GPBoost", "GPy")
_EVALUATION_BARS = (
    ("cavity Laplace logit", "scikit-learn", 10.0),
    ("cavity EP", "scikit-learn", 6.0),
    ("cavity EP", "GPBoost", 1.5),
    ("cavity EP", "GPy", 50.0),
)
_FIT_BARS = (
    ("cavity Laplace logit", "scikit-learn", 8.0),
    ("cavity EP", "GPy", 15.0),
    ("cavity Laplace", "GPBoost", 1.0),
)
_FIRST = """
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler
from cavity import GaussianProcessClassifier
from cavity.datasets import load_pima
X, y = load_pima(return_X_y=True)
X = StandardScaler().fit_transform(X)
GaussianProcessClassifier(1.0 * RBF([1.0] * 7)).fit(X, y)
"""


def contender(
    plan: Plan, absent: dict[str, str], who: str, **job: Any
) -> Callable[[], dict[str, Any]]:
    """Return the call that asks a contestant; one that is absent answers with the reason."""
    if who in absent:
        return lambda: {"failed": absent[who]}
    return partial(child, plan.timeout, contestant=who, **job)


def floors(plan: Plan, say: Say) -> list[Row]:
    """EP's evidence with its gradient against dpotrf(n), cold and warm."""
    data = f"synthetic-{plan.n_floor}-10"
    say(f"EP evidence and gradient, {data}")
    ask = partial(child, plan.timeout, job="evaluate", contestant="cavity EP", data=data)
    ways = [(how, at) for how in ("evaluate", "warm") for at in plan.points]
    calls = {f"{how} {at}": partial(ask, at=at, how=how) for how, at in ways}
    found = interleaved(calls, plan, say)
    what = f"EP evidence + gradient, n = {plan.n_floor}, d = 10 ARD"
    cold, warm = ({at: found[f"{how} {at}"] for at in plan.points} for how in ("evaluate", "warm"))
    return [
        against_floor(f"{what}, cold start", cold, 25.0),
        against_floor(f"{what}, warm after a step of 5 %", warm, 12.0),
    ]


def evaluations(plan: Plan, absent: dict[str, str], say: Say) -> list[Row]:
    """One evidence with its gradient against each peer's."""
    data = f"synthetic-{plan.n_peers}-10"
    say(f"evidence and gradient against peers, {data}")
    calls = {
        f"{who} {at}": contender(plan, absent, who, job="evaluate", data=data, at=at)
        for at in plan.points
        for who in _EVALUATED
    }
    found = interleaved(calls, plan, say)

    def of(who: str) -> dict[str, Answers]:
        return {at: found[f"{who} {at}"] for at in plan.points}

    work = f"evidence + gradient, n = {plan.n_peers}, d = 10 ARD"
    return [
        against_peer(f"{ours} {work}", of(ours), of(peer), peer, bar)
        for ours, peer, bar in _EVALUATION_BARS
    ]


def fits(plan: Plan, absent: dict[str, str], say: Say) -> tuple[list[Row], list[dict[str, Any]]]:
    """Tune ARD kernels on Pima and on synthetic data: the bars, and all that was found."""
    rows, found = [], []
    for data in plan.fitted:
        say(f"ARD fits, {data}")
        order = {"job": "fit", "data": data, "deadline": plan.deadline}
        calls = {who: contender(plan, absent, who, **order) for who in _FITTED}
        answers = interleaved(calls, plan, say)
        rows += [
            fit_row(f"{ours} ARD fit, {data}", answers[ours], answers[peer], peer, bar)
            for ours, peer, bar in _FIT_BARS
        ]
        found += [{"data": data, "contestant": w, **_middle(answers[w])} for w in _FITTED]
    return rows, found


def _middle(answers: Answers) -> dict[str, Any]:
    """Return the median of every number, from repetitions of the same measurement."""
    first = answers[0]
    if "failed" in first:
        return first
    numbers = {k: median([a[k] for a in answers if k in a]) for k in first if k != "note"}
    return {**numbers, "note": first["note"], "repeats": len(answers)}


def own(plan: Plan, say: Say) -> list[Row]:
    """Measure what concerns this library alone."""
    return [_memory(plan, say), _naive(plan, say), _share(plan, say), _first_fit(plan, say)]


def _memory(plan: Plan, say: Say) -> Row:
    data = f"synthetic-{plan.n_large}-10"
    say(f"peak memory, {data}")
    found = child(plan.timeout, job="memory", data=data, evaluations=3)
    work = f"EP fit of three evaluations, n = {plan.n_large}: peak memory above the data"
    bar = "<= 5 n² doubles"
    if "failed" in found:
        return Row(work, None, None, "", found["failed"], bar, None)
    seconds, memory = found["seconds"], found["memory"]
    floors = seconds / found["dpotrf"]
    return Row(work, seconds, floors, "", f"{memory:.2f} n² doubles", bar, memory <= 5.0)


def _naive(plan: Plan, say: Say) -> Row:
    data = f"synthetic-{plan.n_large}-10"
    say(f"naive mean field, {data}")
    ask = partial(child, plan.timeout, job="naive", data=data)
    found = interleaved({at: partial(ask, at=at) for at in plan.points}, plan, say)
    work = f"naive mean field evidence + gradient, n = {plan.n_large}"
    bar = "no factorisation; <= 2 x dpotrf(n) per ten products with K"
    answers = [a for at in plan.points for a in found[at]]
    if failed := [a["failed"] for a in answers if "failed" in a]:
        return Row(work, None, None, "dpotrf(n)", failed[0], bar, None)
    per_ten = {at: median([_per_ten(a) for a in found[at]]) for at in plan.points}
    factored = max(a["factorisations"] for a in answers)
    products = {at: found[at][0]["calls"]["symmetric_product"] for at in plan.points}
    measured = f"{factored} factorisations; " + ", ".join(
        f"{per_ten[at]:.2f} x per ten of {products[at]} products at {at}" for at in plan.points
    )
    seconds = median([a["seconds"] for a in answers])
    floors = median([a["seconds"] / a["dpotrf"] for a in answers])
    met = not factored and max(per_ten.values()) <= 2.0
    return Row(work, seconds, floors, "dpotrf(n)", measured, bar, met)


def _per_ten(answer: dict[str, Any]) -> float:
    """Return the whole evaluation's time, kernel and gradient included, per ten products."""
    tens = answer["calls"]["symmetric_product"] / 10.0
    return float(answer["seconds"] / answer["dpotrf"] / tens)


def _share(plan: Plan, say: Say) -> Row:
    data = f"synthetic-{plan.n_floor}-10"
    say(f"share of LAPACK and BLAS, {data}")
    ask = partial(child, plan.timeout, job="share", data=data)
    found = interleaved({at: partial(ask, at=at) for at in plan.points}, plan, say)
    work = f"EP evidence + gradient, n = {plan.n_floor}: share inside LAPACK and BLAS"
    answers = [a for at in plan.points for a in found[at]]
    if failed := [a["failed"] for a in answers if "failed" in a]:
        return Row(work, None, None, "", failed[0], ">= 70 %", None)
    shares = {at: median([_inside(a) for a in found[at]]) for at in plan.points}
    measured = ", ".join(f"{share:.0%} at {at}" for at, share in shares.items())
    seconds = median([a["seconds"] for a in answers])
    floors = median([a["seconds"] / a["dpotrf"] for a in answers])
    return Row(work, seconds, floors, "", measured, ">= 70 %", min(shares.values()) >= 0.7)


def _inside(answer: dict[str, Any]) -> float:
    return float(sum(answer["inside"].values()) / answer["seconds"])


def _first_fit(plan: Plan, say: Say) -> Row:
    """Judge a first call in a fresh process, import included."""
    say("first fit in a fresh process")
    found = interleaved({"first fit": _fresh}, plan, say)["first fit"]
    seconds = median([answer["seconds"] for answer in found])
    work = "full fit of n = 200, d = 7 (Pima), first call in a fresh process, import included"
    return Row(work, seconds, None, "", f"{seconds:.2f} s", "<= 3 s", seconds <= 3.0)


def _fresh() -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-c", _FIRST]
    seconds, _ = timed(lambda: subprocess.run(command, cwd=ROOT, check=True))
    return {"seconds": seconds}
