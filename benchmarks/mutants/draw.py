"""Which faults of the core are tried."""

import hashlib
from collections import Counter

from benchmarks.mutants.core import ROOMS, ROOT, files_of
from benchmarks.mutants.faults import Fault, faults


def chosen(count: int, seed: int) -> dict[str, tuple[str, Fault]]:
    """Return so many faults of the core by their names, drawn at random from each room.

    A fault keeps its place in the draw when other lines change.
    """

    def place(name: str) -> bytes:
        return hashlib.sha256(f"{seed} {name}".encode()).digest()

    found: dict[str, tuple[str, Fault]] = {}
    for room, share in ROOMS.items():
        every = {k: v for name in files_of(room) for k, v in named(name).items()}
        for key in sorted(sorted(every, key=place)[: round(share * count)]):
            found[key] = every[key]
    return found


def named(name: str) -> dict[str, tuple[str, Fault]]:
    """Return all faults of a file by what they are called."""
    text = (ROOT / name).read_text(encoding="utf-8")
    lines, seen, found = text.splitlines(), Counter[str](), {}
    for fault in faults(text):
        line = lines[fault.line - 1].strip()
        key = f"{name.removeprefix('src/cavity/')}: {fault.old!r} -> {fault.new!r} in {line!r}"
        seen[key] += 1
        found[key + (f" ({seen[key]})" if seen[key] > 1 else "")] = (name, fault)
    return found
