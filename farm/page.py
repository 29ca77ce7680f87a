"""The page on reliability, from the results."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

__all__ = ["page"]

_HEAD = """# Reliability

Hostile but legal problems, long streams, kills, interrupts and strange input: what went wrong, counted. `make reliability`
measures all of it and writes this page; `make farm` solves further problems. Problems whose faults have been mended are kept in
`farm/cases`, one of each kind that is quickly solved, and the tests solve them again; what is still open is listed.
"""


def page(results: Path) -> str:
    """Return the page of what has been measured."""
    parts, places = [_HEAD], {name: results / f"{name}.json" for name in _SECTIONS}
    for name, write in _SECTIONS.items():
        if places[name].exists():
            parts.append(write(json.loads(places[name].read_text(encoding="utf-8"))))
    return "\n".join(parts)


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table; numbers are written with commas."""
    head = list(head)
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1e}" if abs(value) < 1e-3 else f"{value:,.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _problems(found: dict[str, Any]) -> str:
    all_, rows = found["all"], found["kinds"].items()
    fits, good = all_.get("fits", 0), all_.get("converged", 0) + all_.get("warned", 0)
    kinds = _table(
        [
            "kind",
            "problems",
            "fits",
            "converged",
            "warned",
            "silent",
            "compared",
            "rounds",
            "problems failed",
        ],
        (
            [
                name,
                *(one.get(key, 0) for key in ("problems", "fits", "converged", "warned", "silent")),
                one.get("compared", 0),
                one.get("rounds", 0),
                one.get("failed problems", 0),
            ]
            for name, one in rows
        ),
    )
    faults = "".join(f"- {rule}: {count:,}\n" for rule, count in found["faults"].items())
    share = 100.0 * good / fits if fits else 0.0
    return f"""## Random problems

Each problem is a random table (repeated, far, constant, collinear, clustered rows; units from 10⁻⁸ to 10⁸; amplitudes from 10⁻³
to 10⁵; weights with zeros and hundreds) with every inference method and likelihood that fits it; checked are properties: finite
numbers, probabilities, bounds below the exact evidence, EP beside EP in plain loops, another round of a method's own equations that
leaves what has converged ("rounds"), the same answer for another order of rows or columns, another unit, copies for weights, all
rows as inducing points, blocks, files ("compared"), and what follows from answers: intervals, sets, quantiles, draws, suspects,
plans and suggestions.

{kinds}
Of {fits:,} fits {share:.3f} % converged or warned. {all_.get("uncaught", 0):,} ended in an error that was not meant for the
user, {all_.get("not finite", 0):,} results were not finite, {all_.get("refused", 0):,} requests were refused in a sentence
(damaged files included). {all_.get("mended problems", 0):,} problems failed when they were first solved, and hold since the library, or
a rule that asked for more than is true, was mended.

{("What failed:" + chr(10) + chr(10) + faults) if faults else "Nothing failed."}
{_peer(all_)}"""


def _again(found: dict[str, Any]) -> str:
    all_ = found["all"]
    good = all_.get("converged", 0) + all_.get("warned", 0)
    return f"""{all_["problems"]:,} of these problems, from the first on, were solved once more, all by one version of the library
(`python -m farm.reliability --part again`): of {all_["fits"]:,} fits {100.0 * good / all_["fits"]:.3f} % converged or warned, {all_.get("uncaught", 0):,} ended in an error that
was not meant, {all_.get("not finite", 0):,} results were not finite, and {all_.get("failed problems", 0):,} problems broke a property. {all_.get("mended problems", 0):,} did at first, and hold
since the library, or a rule that asked for more than is true, was mended.
"""


def _peer(all_: dict[str, int]) -> str:
    """Return how scikit-learn fares on the same tables."""
    names = {
        "peer errors": "raised an error",
        "peer not finite": "returned numbers that are not finite",
        "peer not converged, in silence": "stopped before the mode, without a word",
        "peer leaked warnings": "let a NumPy warning through",
    }
    rows = [[text, all_.get(key, 0)] for key, text in names.items()]
    return f"""scikit-learn's classifier (Laplace) and regressor on the same tables and kernels, {all_.get("peer fits", 0):,} fits:

{_table(["scikit-learn", "fits"], rows)}"""


def _streams(found: dict[str, Any]) -> str:
    rows = (
        [name, *(one[key] for key in ("updates", "mean", "deviation", "seconds"))]
        for name, one in found.items()
    )
    return f"""## Long streams

Rows are learned one after the other; after every 64,000 the posterior is compared with the exact one. Of labels the exact one
depends on their order: it is that of the same updates, made one by one with three more digits.

{_table(["stream", "updates", "largest error of a mean", "of a deviation, relative", "seconds"], rows)}"""


def _kills(found: dict[str, Any]) -> str:
    workers = found.pop("workers", {"kills": 0, "as before": 0, "ended": 0, "changed": 0})
    rows = (
        [name, *(one[key] for key in ("kills", "old", "new", "lost", "litter"))]
        for name, one in found.items()
    )
    return f"""## Killed writers and workers

A writer is killed before and after each of its system calls. The file is then the old or the new one; what else the writer has
left goes when the same path is written next.

{_table(["written", "kills", "old file", "new file", "lost", "scraps left"], rows)}
Of {workers["kills"]:,} tunings in several processes, one of which was killed, {workers["as before"]:,} failed and left the model
as it was, {workers["ended"]:,} ended all the same, and {workers["changed"]:,} changed it.
"""


def _interrupts(found: dict[str, Any]) -> str:
    rows = (
        [name, one["moments"], one["before"], one["after"], len(one["between"])]
        for name, one in found.items()
    )
    return f"""## Interrupts

Ctrl-C at random moments: the object is the one before or the one after.

{_table(["task", "moments", "before", "after", "between"], rows)}"""


def _fuzz(found: dict[str, Any]) -> str:
    rows = ([name, one["examples"], one["failures"]] for name, one in found["doors"].items())
    return f"""## Strange input

Hypothesis at every door for {found["minutes"]:g} minutes: an answer, or one refusal of one line.

{_table(["door", "examples", "failures"], rows)}"""


def _coverage(found: dict[str, Any]) -> str:
    return f"""## What the tests run

{found["lines"]:.1f} % of the lines and {found["branches"]:.1f} % of the branches of the package (`make coverage`, shown in every run of CI; at
least 97 % and 92 % are wanted).
"""


def _mutants(found: dict[str, Any]) -> str:
    rows = (
        [
            draw,
            *(one[key] for key in ("faults", "noticed")),
            f"{one['noticed'] / one['faults']:.1%}",
        ]
        for draw, one in found.items()
    )
    return f"""## Faults put in on purpose

One operator, number, sign, condition or function of the core (likelihoods, sites, priors, inference, evidence, the theory of curves,
storage) is changed, and the tests that run the line are run (`make mutants`). Those that no test notices are listed, each with the
reason, in `benchmarks/results/mutants.md`. For the first draw tests were added; a later one is tried before any is.

{_table(["draw", "faults", "noticed", "share"], rows)}"""


_SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "problems": _problems,
    "again": _again,
    "streams": _streams,
    "kills": _kills,
    "interrupts": _interrupts,
    "fuzz": _fuzz,
    "coverage": _coverage,
    "mutants": _mutants,
}
