"""The section on what the checks have found."""

from typing import Any

from cavity.report.analysis import Analysis
from cavity.report.blocks import Findings, Note, Section
from cavity.report.checks import CHECKS
from cavity.report.words import count


def checks(a: Analysis) -> Section:
    """Return the section on checks."""
    meanings = {check.code: check.meaning for check in CHECKS}
    found = [c | {"meaning": meanings[c["code"]]} for c in a.checks if c["status"] == "found"]
    blocks: list[Any] = [Findings(found)]
    for status, begin in (("passed", "Nothing found by"), ("not made", "Not made for this table:")):
        names = [f"{c['code']} {c['title'].lower()}" for c in a.checks if c["status"] == status]
        if names:
            blocks.append(Note(f"{begin} {'; '.join(names)}.", quiet=True))
    return Section("checks", "Is anything odd?", headline(a), blocks)


def headline(a: Analysis) -> str:
    """Return how many checks have found something, the serious ones first."""
    found = [c for c in a.checks if c["status"] == "found"]
    if not found:
        return f"No: none of {count(len(a.checks), 'check')} has found anything."
    serious = [c for c in found if c["severity"] == "warning"]
    title = (serious or found)[0]["title"]
    have = "has" if len(found) == 1 else "have"
    first = f"{title[:1].lower()}{title[1:]}"
    more = ", among other things" * (len(found) > 1)
    return f"{len(found)} of {len(a.checks)} checks {have} found something: {first}{more}."
