"""One line of the table of bars, and the ways to judge one."""

from typing import Any, NamedTuple

from benchmarks.measure import median

__all__ = ["Answers", "Row", "against_floor", "against_peer", "fit_row", "verdict"]

Answers = list[dict[str, Any]]

_SAME_EVIDENCE = 0.05
"""Nats by which two optimisers may miss each other at the same optimum."""


class Row(NamedTuple):
    """What was done, how long it took, what was asked for and whether it was met."""

    work: str
    seconds: float | None
    floors: float | None
    peer: str
    measured: str
    bar: str
    met: bool | None


def verdict(met: bool | None) -> str:
    """Say it in a word."""
    return "not judged" if met is None else "met" if met else "MISSED"


def against_floor(work: str, answers: dict[str, Answers], bar: float) -> Row:
    """Judge the time in units of dpotrf(n), at the worse of several hyperparameters."""
    if failed := _failure(*answers.values()):
        return Row(work, None, None, "dpotrf(n)", failed, f"<= {bar:g} x", None)
    times = {at: _floors(found) for at, found in answers.items()}
    worst = max(times, key=lambda at: times[at])
    measured = ", ".join(f"{value:.1f} x at {at}" for at, value in times.items())
    seconds = _seconds(answers[worst])
    met = times[worst] <= bar
    return Row(work, seconds, times[worst], "dpotrf(n)", measured, f"<= {bar:g} x", met)


def against_peer(
    work: str, ours: dict[str, Answers], theirs: dict[str, Answers], peer: str, bar: float
) -> Row:
    """Judge how many times faster than a peer, at the worse of several hyperparameters."""
    if failed := _failure(*ours.values(), *theirs.values()):
        return Row(work, None, None, peer, failed, f">= {bar:g} x faster", None)
    times = {at: _ratio(ours[at], theirs[at]) for at in ours}
    worst = min(times, key=lambda at: times[at])
    measured = ", ".join(f"{value:.1f} x faster at {at}" for at, value in times.items())
    found = ours[worst]
    met = times[worst] >= bar
    return Row(work, _seconds(found), _floors(found), peer, measured, f">= {bar:g} x faster", met)


def fit_row(work: str, ours: Answers, theirs: Answers, peer: str, bar: float) -> Row:
    """Judge how many times faster a whole fit is, to an evidence at least as good."""
    text = f">= {bar:g} x faster, evidence as good"
    if failed := _failure(ours, theirs):
        return Row(work, None, None, peer, failed, text, None)
    ratio, stopped = _ratio(ours, theirs), bool(theirs[0]["note"])
    mine, other = (median([a["evidence"] for a in found]) for found in (ours, theirs))
    met = ratio >= bar and mine >= other - _SAME_EVIDENCE
    sign = "> " if stopped else ""
    measured = f"{sign}{ratio:.1f} x faster, evidence {mine:.2f} against {other:.2f}"
    return Row(work, _seconds(ours), _floors(ours), peer, measured, text, met)


def _failure(*found: Answers) -> str:
    reasons = [a["failed"] for answers in found for a in answers if "failed" in a]
    return reasons[0] if reasons else "" if all(found) else "not measured"


def _seconds(found: Answers) -> float:
    return median([a["seconds"] for a in found])


def _floors(found: Answers) -> float:
    return median([a["seconds"] / a["dpotrf"] for a in found])


def _ratio(ours: Answers, theirs: Answers) -> float:
    """Return the median over the rounds in which both took part."""
    return median([b["seconds"] / a["seconds"] for a, b in zip(ours, theirs, strict=False)])
