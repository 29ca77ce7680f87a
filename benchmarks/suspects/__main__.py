"""Wrong labels beside cleanlab: ``python -m benchmarks.suspects``, or ``make suspects``.

Probabilities of held-out rows are kept in a folder, one file for each case, and a run goes on where
another one stopped. Scores need cleanlab: ``--fits`` stops before them, for a machine without it,
and ``--scores`` makes the tables of what is kept.
"""

import argparse
import json
from pathlib import Path

from benchmarks.suspects.fits import cases, fit_all, read
from benchmarks.suspects.page import page
from benchmarks.suspects.scores import scores
from benchmarks.trust.plan import say

_ROOT = Path(__file__).resolve().parent.parent.parent
_RESULTS = _ROOT / "benchmarks" / "results"
_SCRATCH = _ROOT / "build" / "suspects"
_DOCS = _ROOT / "docs" / "howto" / "suspects_measured.md"
_MARK = "<!-- written by python -m benchmarks.suspects -->"


def main() -> None:
    """Fit what is not fitted, score it and write the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.suspects", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three tables, once")
    parser.add_argument("--scores", action="store_true", help="of what is kept, fit nothing")
    parser.add_argument("--fits", action="store_true", help="keep probabilities, score nothing")
    parser.add_argument("--seeds", type=int, default=3, help="how often labels are turned wrong")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    parser.add_argument("--kept", type=Path, default=None, help="where the probabilities are kept")
    options = parser.parse_args()
    wanted = list(cases(options.quick, options.seeds))
    kept = options.kept or _SCRATCH / ("quick" if options.quick else "full")
    if not options.scores:
        fit_all(wanted, kept, options.jobs)
    if options.fits:
        say(f"{len(wanted)} cases are in {kept}")
        return
    done = [case for case in wanted if (kept / case.file).exists()]
    rows = [row for case in done for row in scores(case, read(case, kept))]
    out = _SCRATCH if options.quick else _RESULTS
    lines = ",\n".join(json.dumps(row) for row in rows)
    (out / "suspects.json").write_text(f"[\n{lines}\n]\n")
    text = page(rows)
    (out / "suspects.md").write_text(f"# Wrong labels\n\n{text}\n")
    if not options.quick and _DOCS.exists():
        before, _, _ = _DOCS.read_text().partition(_MARK)
        _DOCS.write_text(f"{before}{_MARK}\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
