"""The section on what the checks have found."""

from cavity.report.analysis import Analysis
from cavity.report.blocks import Finding, Findings, Note, Section
from cavity.report.checks import CHECKS
from cavity.report.words import count


def checks(a: Analysis) -> Section:
    """Return the section on checks."""
    meanings = {check.code: check.meaning for check in CHECKS}
    found = [
        Finding(c["code"], c["severity"], c["title"], c["text"], meanings[c["code"]])
        for c in a.checks
        if c["status"] == "found"
    ]
    passed = [f"{c['code']} {c['title'].lower()}" for c in a.checks if c["status"] == "passed"]
    missing = [f"{c['code']} {c['title'].lower()}" for c in a.checks if c["status"] == "not made"]
    notes = [f"Nothing found by {'; '.join(passed)}."] if passed else []
    notes += [f"Not made for this table: {'; '.join(missing)}."] if missing else []
    blocks = [Findings(found), *(Note(note, quiet=True) for note in notes)]
    return Section("checks", "Is anything odd?", headline(a), blocks)


def headline(a: Analysis) -> str:
    """Return how many checks have found something, the serious ones first."""
    found = [c for c in a.checks if c["status"] == "found"]
    if not found:
        return f"No: none of {count(len(a.checks), 'check')} has found anything."
    serious = [c for c in found if c["severity"] == "warning"]
    title = (serious or found)[0]["title"]
    have = "check has" if len(found) == 1 else "checks have"
    first = f"{title[:1].lower()}{title[1:]}"
    more = ", among other things" * (len(found) > 1)
    return f"{len(found)} of {len(a.checks)} {have} found something: {first}{more}."
