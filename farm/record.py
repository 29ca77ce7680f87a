"""What is kept of every problem, and sums over all."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from farm.kinds import problem, solve
from farm.ledger import Fault

__all__ = ["Record", "append", "solved", "summary", "totals"]


class Record(NamedTuple):
    """How one problem ended."""

    number: int
    kind: str
    seconds: float
    counts: Mapping[str, int]
    refusals: Mapping[str, int]
    faults: list[Fault]
    mended: bool = False
    """Whether it failed when it was first solved, and does not now."""

    def after(self, earlier: "Record | None") -> "Record":
        """Return the record of a problem that has been solved before."""
        failed = earlier is not None and (earlier.mended or bool(earlier.faults))
        return self._replace(mended=failed and not self.faults)

    @classmethod
    def of(cls, seed: int, number: int) -> "Record":
        """Solve a problem in this process."""
        spec, begin = problem(seed, number), time.process_time()
        with threadpool_limits(1):
            found = solve(spec)
        seconds = time.process_time() - begin
        counts = found.counts, found.refusals
        return cls(number, spec["kind"], seconds, *map(dict, counts), found.faults)


def append(path: Path, record: Record) -> None:
    """Add a problem to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entry = record._asdict() | {"faults": [list(fault) for fault in record.faults]}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def solved(path: Path) -> dict[int, Record]:
    """Return the problems in a file; a line that was cut short is left out.

    The last line of a problem counts.
    """
    found: dict[int, Record] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        faults = [Fault(*fault) for fault in entry.pop("faults")]
        found[entry["number"]] = Record(**entry, faults=faults).after(found.get(entry["number"]))
    return found


def summary(records: Iterable[Record]) -> dict[str, Any]:
    """Return sums over problems: in all, and of each kind."""
    kinds: dict[str, Counter[str]] = {}
    refusals: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for record in records:
        own = kinds.setdefault(record.kind, Counter())
        own.update(record.counts)
        own["problems"] += 1
        own["failed problems"] += bool(record.faults)
        own["mended problems"] += record.mended
        own["milliseconds"] += round(1e3 * record.seconds)
        refusals.update(record.refusals)
        faults.update({f"{record.kind}: {fault.rule}" for fault in record.faults})
    return {
        "kinds": {name: dict(sorted(own.items())) for name, own in sorted(kinds.items())},
        "all": dict(sorted(sum(kinds.values(), Counter()).items())),
        "faults": dict(faults.most_common()),
        "refusals": dict(refusals.most_common(30)),
    }


def totals(records: Iterable[Record]) -> str:
    """Return the sums as text."""
    return json.dumps(summary(records), indent=1)
