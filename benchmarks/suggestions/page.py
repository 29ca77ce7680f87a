"""Tables of the races, for the results and for the documentation."""

from typing import Any

import numpy as np

from benchmarks.suggestions.races import START, STEP, STEPS

_BESIDE = "uncertainty"
Races = list[dict[str, Any]]


def table(races: Races, sets: list[str]) -> str:
    """Return the log losses after the last step, one line for each set."""
    order = list(dict.fromkeys(run["strategy"] for run in races))
    lines = [["set", "seeds", "at first", *order]]
    for name in sets:
        ends = _ends(races, name)
        if not ends:
            continue
        first = [run["losses"][0] for run in races if run["set"] == name]
        cells = [_cell(ends, strategy) for strategy in order]
        lines.append([name, str(max(map(len, ends.values()))), f"{np.mean(first):.3f}", *cells])
    return _aligned(lines)


def _ends(races: Races, name: str) -> dict[str, dict[int, float]]:
    """Return the last loss by strategy and seed."""
    found: dict[str, dict[int, float]] = {}
    for run in races:
        if run["set"] == name:
            found.setdefault(run["strategy"], {})[run["seed"]] = run["losses"][-1]
    return found


def _cell(ends: dict[str, dict[int, float]], strategy: str) -> str:
    """Return the mean loss, and how far it is from uncertainty sampling on the same seeds."""
    own, beside = ends.get(strategy, {}), ends.get(_BESIDE, {})
    if not own:
        return ""
    text = f"{np.mean(list(own.values())):.3f}"
    shared = sorted(own.keys() & beside.keys())
    if strategy == _BESIDE or len(shared) < 2:
        return text
    d = np.array([own[seed] - beside[seed] for seed in shared])
    return f"{text} ({np.mean(d):+.3f} ± {np.std(d, ddof=1) / np.sqrt(len(d)):.3f})"


def counts(races: Races, sets: list[str], strategy: str) -> str:
    """Return on how many sets a strategy is no worse than uncertainty and better than random."""
    ends = {name: found for name in sets if (found := _ends(races, name))}
    means = {
        name: {s: float(np.mean(list(losses.values()))) for s, losses in found.items()}
        for name, found in ends.items()
    }
    known = [m for m in means.values() if {strategy, "random", _BESIDE} <= m.keys()]
    no_worse = sum(round(m[strategy], 3) <= round(m[_BESIDE], 3) for m in known)
    better = sum(m[strategy] < m["random"] for m in known)
    return (
        f"`{strategy}`: mean log loss no higher than that of uncertainty sampling, to three "
        f"digits, on {no_worse} of {len(known)} sets, and lower than that of random rows on "
        f"{better}."
    )


def signs(races: Races) -> str:
    """Return what came of steps with and without a stop sign."""
    rows = []
    for run in races:
        for said, before, after in zip(
            run["said"], run["losses"][:-1], run["losses"][1:], strict=True
        ):
            if said:
                rows.append((said["stop"], said["fall"] / said["loss"], 1.0 - after / before))
    lines = [["stop sign", "steps", "expected fall", "fall on fresh rows"]]
    for stop in (False, True):
        some = np.array([row[1:] for row in rows if row[0] == stop])
        if len(some):
            expected, real = 100.0 * some.mean(axis=0)
            lines.append(
                ["yes" if stop else "no", str(len(some)), f"{expected:.1f} %", f"{real:.1f} %"]
            )
    return _aligned(lines)


def _chosen(races: Races, chosen_on: list[str]) -> list[str]:
    """Return the table of the sets that the default was chosen on, if they took part."""
    if not any(run["set"] in chosen_on for run in races):
        return []
    return ["The sets that the default was chosen on:", table(races, chosen_on)]


def page(races: Races, reported: list[str], chosen_on: list[str], cost: dict[str, float]) -> str:
    """Return all of it."""
    own = sorted({r["strategy"] for r in races if r["strategy"].startswith("suggest")})
    parts = [
        f"Mean log loss on fresh rows with {START + STEP * STEPS} rows labelled, {START} at random "
        f"and {STEPS} times {STEP} chosen; in brackets the difference from uncertainty sampling on "
        "the same seeds, with its standard error. After each step the kernel is chosen and tuned "
        'again, by `kernel="auto"`, for every strategy alike.',
        table(races, reported),
        "\n".join(f"- {counts(races, reported, strategy)}" for strategy in own),
        *_chosen(races, chosen_on),
        "What ten suggestions were expected to gain, and what they did, in shares of the log loss:",
        signs(races),
    ]
    if cost:
        each = " and ".join(f"{v:.1f} s ({name})" for name, v in cost.items())
        parts.append(f"Ten suggestions among 10,000 rows for a model of 1,000 took {each} of CPU.")
    return "\n\n".join(parts)


def _aligned(lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in [lines[0], rule, *lines[1:]]
    )
