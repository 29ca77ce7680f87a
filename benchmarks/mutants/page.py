"""The page on the faults that the tests notice."""

from typing import Any

import numpy as np

from benchmarks.mutants.core import ROOMS
from benchmarks.tables import markdown

_HEAD = """# Faults that the tests notice

Each fault changes one operator, number, sign, condition or function of the core. The tests that
run the changed line are run with it, for a minute at most; by `python -m benchmarks.mutants`. For
those that were missed in the first draw tests were added, and some were shown to all tests. The
later draw was tried before any test was added for it: it shows how the tests do on faults that
nobody has looked at."""


def share(found: dict[str, Any]) -> float:
    """Return the share of the faults that was noticed."""
    return float(np.mean([value["noticed"] for value in found.values()]))


def counts(draws: dict[str, dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return how many faults of each draw were tried, and how many noticed."""
    return {
        seed: {"faults": len(found), "noticed": sum(one["noticed"] for one in found.values())}
        for seed, found in draws.items()
    }


def page(draws: dict[str, dict[str, Any]], reasons: dict[str, str]) -> str:
    """Return how many faults of each draw were noticed in each room, and those that were not."""
    parts = [_HEAD]
    for seed, found in draws.items():
        parts.append(f"## Seed {seed}: {len(found)} faults, {share(found):.1%} noticed")
        parts.append(markdown(["room", "faults", "noticed", "share"], _rows(found)))
        parts.append("Not noticed:\n\n" + (_left(found, reasons) or "None."))
    return "\n\n".join(parts) + "\n"


def _rows(found: dict[str, Any]) -> list[list[str]]:
    rows = []
    for room in ROOMS:
        own = {k: value for k, value in found.items() if k.startswith(room)}
        if own:
            count = sum(value["noticed"] for value in own.values())
            rows.append([room, str(len(own)), str(count), f"{share(own):.0%}"])
    return rows


def _left(found: dict[str, Any], reasons: dict[str, str]) -> str:
    """Return the faults that no test noticed, and why."""
    left = [name for name, value in found.items() if not value["noticed"]]
    return "\n".join(f"- `{name}`: {reasons.get(name, 'no reason is known')}" for name in left)
