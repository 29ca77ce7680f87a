"""Hypothesis at all doors for some minutes: ``python -m farm.fuzz [--minutes 10] [--seed 0]``.

What fails is printed, made smaller by Hypothesis; the counts go to build/farm/fuzz.json.
"""

import argparse
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, seed, settings

from farm.doors import DOORS, Door

_BATCH = 50
"""Examples between two looks at the clock."""


def main() -> int:
    """Fuzz the doors in turns; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(prog="farm.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build") / "farm" / "fuzz.json")
    options = parser.parse_args()
    found = fuzz(options.minutes, options.seed)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1)
    options.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return any(one["failures"] for one in found["doors"].values())


def fuzz(minutes: float, begin: int = 0) -> dict[str, Any]:
    """Try the doors in turns; return the examples and failures of each."""
    end, turn = time.monotonic() + 60.0 * minutes, begin
    found = {name: {"examples": 0, "failures": 0} for name in DOORS}
    while time.monotonic() < end:
        turn += 1
        for name, door in DOORS.items():
            found[name]["examples"] += _BATCH
            found[name]["failures"] += not _holds(name, door, turn)
    return {"minutes": minutes, "doors": found}


def _holds(name: str, door: Door, turn: int) -> bool:
    """Try some examples; return whether all went well, and print what did not."""

    @seed(turn)
    @settings(
        max_examples=_BATCH,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(door.drawn())
    def check(drawn: object) -> None:
        door.check(drawn)

    try:
        check()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"{name}, seed {turn}:", file=sys.stderr)
        traceback.print_exc()
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
