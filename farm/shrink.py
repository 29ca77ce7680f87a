"""Smaller problems that fail in the same way."""

import json
from collections.abc import Iterator
from pathlib import Path

from farm.draw import Spec, simplest
from farm.kinds import solve
from farm.ledger import Fault

__all__ = ["CASES", "keep", "kept", "shrunk"]

CASES = Path(__file__).parent / "cases"
"""Problems that have failed once, and must not again."""
_FEWEST = 4


def shrunk(spec: Spec, fault: Fault, tries: int = 60) -> Spec:
    """Return a simpler problem with the same fault; the problem itself if there is none."""
    for _ in range(tries):
        smaller = next((s for s in _simpler(spec) if _fails(s, fault)), None)
        if smaller is None:
            break
        spec = smaller
    return spec


def _simpler(spec: Spec) -> Iterator[Spec]:
    """Yield problems with fewer rows, fewer columns, or one choice made simpler."""
    for n in sorted({_FEWEST, spec["n"] // 2, 3 * spec["n"] // 4, spec["n"] - 1}):
        if _FEWEST <= n < spec["n"]:
            yield spec | {"n": n}
    for d in range(1, spec["d"]):
        yield spec | {"d": d}
    for name, value in simplest(spec).items():
        yield spec | {name: value}


def _fails(spec: Spec, fault: Fault) -> bool:
    found = {(one.rule, one.of) for one in solve(spec).faults}
    return (fault.rule, fault.of) in found


def keep(spec: Spec, fault: Fault, folder: Path = CASES) -> Path:
    """Write a failed problem to a file of its own; return its path."""
    words = "-".join(f"{spec['kind']} {fault.rule} {fault.of}".split())
    name = "".join(letter for letter in words.lower() if letter.isalnum() or letter == "-")
    path = folder / f"{name[:80]}.json"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"fault": fault._asdict(), "problem": spec}, indent=1)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def kept(folder: Path = CASES) -> dict[str, Spec]:
    """Return all problems that were kept, by their names."""
    files = sorted(folder.glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8"))["problem"] for file in files}
