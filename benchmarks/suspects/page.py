"""The results as tables, with what was lost."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.suspects.fits import OURS, PEERS
from benchmarks.suspects.noise import KINDS
from benchmarks.suspects.scores import PROMISES
from benchmarks.tables import markdown

__all__ = ["page"]

Rows = Sequence[dict[str, Any]]
_METHOD = """
Labels of eight tables are turned wrong: {shares} of them, in three ways, {seeds} times each.
*Uniform* turns any label into any other; *near the boundary* turns labels into the second likeliest
class, the more often the closer it is by the vote of fifteen neighbours; *one class into another*
calls rows of one class, at most two fifths of them, by the name of another. `cavity` is one fit
with `kernel="auto"` and its leave-one-out probabilities; the others are cleanlab's scores
(`get_label_quality_scores`) and number (`num_label_issues`) from class probabilities by five-fold
cross-validation. Our rules were chosen on other tables.
""".strip()


def page(rows: Rows) -> str:
    """Return all tables."""
    shares = ", ".join(f"{share:.0%}" for share in sorted({row["share"] for row in rows}))
    seeds = len({row["seed"] for row in rows})
    parts = [_METHOD.format(shares=shares, seeds=seeds)]
    parts += ["## How many are wrong", _counts(rows)]
    parts += ["## The promised precision", _promises(rows)]
    parts += ["## Which are wrong", _wins(rows)]
    for kind in KINDS:
        some = [row for row in rows if row["kind"] == kind]
        parts += [f"### {kind.capitalize()}", _orders(some)]
    parts += ["### Seconds", _seconds(rows)]
    return "\n\n".join(parts)


def _counts(rows: Rows) -> str:
    lines = []
    for kind in KINDS:
        own = _of(rows, model=OURS, kind=kind)
        inside = np.mean([row["low"] <= row["wrong"] <= row["high"] for row in own])
        near = [_share_near(_of(rows, model=name, kind=kind)) for name in [OURS, *PEERS]]
        lines.append([kind, str(len(own)), f"{inside:.0%}", *(f"{x:.0%}" for x in near)])
    header = ["labels turned wrong", "cases", "90 % interval holds the number"]
    header += [f"{name} within a factor 1.5" for name in [OURS, *PEERS]]
    return markdown(header, lines) + "\n\n" + _worst(_of(rows, model=OURS))


def _worst(own: Rows) -> str:
    """Return the counts of uniform noise by table."""
    lines = []
    for name in _names(own):
        some = _of(own, table=name, kind="uniform")
        inside = np.mean([row["low"] <= row["wrong"] <= row["high"] for row in some])
        width = np.mean([(row["high"] - row["low"]) / row["wrong"] for row in some])
        ratio = np.exp(np.mean([np.log(max(row["count"], 0.5) / row["wrong"]) for row in some]))
        near = _share_near(some)
        lines.append([name, f"{inside:.0%}", f"{near:.0%}", f"{ratio:.2f}", f"{width:.2f}"])
    header = ["table (uniform)", "in the interval", "within a factor 1.5"]
    return markdown([*header, "estimate / truth", "width of the interval / truth"], lines)


def _share_near(rows: Rows) -> float:
    ratios = np.array([max(row["count"], 0.5) / row["wrong"] for row in rows])
    return float(np.mean((ratios <= 1.5) & (ratios >= 1.0 / 1.5)))


def _promises(rows: Rows) -> str:
    lines = []
    for kind in KINDS:
        own, cells = _of(rows, model=OURS, kind=kind), []
        for promise in PROMISES:
            some = [row[f"kept {promise:g}"] for row in own]
            kept = np.array([share for share in some if share is not None])
            mean = f"{kept.mean():.2f}" if len(kept) else "–"
            off = f"{np.mean(np.abs(kept - promise)):.2f}" if len(kept) else "–"
            cells.append(f"{mean} (off by {off}, none in {len(own) - len(kept)})")
        lines.append([kind, *cells])
    header = ["labels turned wrong", *(f"asked for {promise:g}" for promise in PROMISES)]
    note = (
        "The share of wrong labels among the rows that the cut-off chooses: its mean over the "
        "cases, how far it is off on average, and in how many cases no row is chosen."
    )
    return f"{note}\n\n{markdown(header, lines)}"


def _wins(rows: Rows) -> str:
    lines = []
    for kind in [*KINDS, "all three"]:
        some, won, lost = _of(rows, kind=kind) if kind in KINDS else rows, [], []
        for name in _names(rows):
            ours = _mean(some, "ap", model=OURS, table=name)
            best = max(_mean(some, "ap", model=peer, table=name) for peer in PEERS)
            (won if round(ours, 3) >= round(best, 3) else lost).append(name)
        lines.append([kind, f"{len(won)} of {len(won) + len(lost)}", ", ".join(lost) or "none"])
    header = ["labels turned wrong", "average precision at least the best of four", "lost"]
    return markdown(header, lines)


def _orders(rows: Rows) -> str:
    """Return average precision, and for all tables the other measures, of each model."""
    names = [OURS, *PEERS]
    lines = [
        _line(name, names, lambda who, table=name: _mean(rows, "ap", model=who, table=table))
        for name in _names(rows)
    ]
    for measure, title in (("ap", "mean"), ("auc", "mean AUC"), ("at_k", "mean precision at k")):
        lines.append(_line(title, names, lambda who, m=measure: _mean(rows, m, model=who)))
    return markdown(["average precision", *names], lines)


def _line(title: str, names: list[str], value: Callable[[str], float]) -> list[str]:
    values = [round(value(name), 3) for name in names]
    best = max(values)
    return [title, *(f"**{x:.3f}**" if x == best else f"{x:.3f}" for x in values)]


def _seconds(rows: Rows) -> str:
    names = [OURS, *PEERS]
    lines = [
        [name, *(f"{_mean(rows, 'seconds', model=who, table=name):.2f}" for who in names)]
        for name in _names(rows)
    ]
    return markdown(["mean seconds", *names], lines)


def _names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["table"] for row in rows))


def _of(rows: Rows, **wanted: Any) -> Rows:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _mean(rows: Rows, measure: str, **wanted: Any) -> float:
    return float(np.mean([row[measure] for row in _of(rows, **wanted)]))
