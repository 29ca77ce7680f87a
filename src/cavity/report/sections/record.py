"""What was done, so that others can repeat it."""

from typing import Any

from cavity.report.blocks import Cell, Code, Facts, Note, Section, Table
from cavity.report.sections.common import is_classes
from cavity.report.words import count, number, percent

__all__ = ["record"]

Json = dict[str, Any]


def record(a: Json) -> Section:
    """Return the section that lets others repeat the work."""
    counts = a["data"]["counts"]
    missing = counts["missing_values"]
    headline = (
        f"Learned from {count(counts['rows_trained_on'], 'row')} and "
        f"{count(counts['inputs'], 'input')}; "
        f"{'no value was' if not missing else count(missing, 'value was', 'values were')} missing."
    )
    blocks: list[Any] = [Facts(_facts(a))]
    if is_classes(a):
        blocks.append(_class_table(a))
    blocks += [Note(note) for note in (*a["data"]["notes"], *a["model"]["warnings"])]
    if a["command"]:
        blocks += [Note("To get this page again:"), Code(a["command"])]
    return Section("record", "What was done?", headline, blocks)


def _facts(a: Json) -> list[tuple[str, str]]:
    data, model, counts = a["data"], a["model"], a["data"]["counts"]
    correction = model["evidence_correction"]
    bar = "" if correction is None else f" (correction {number(correction, 2)})"
    return [
        ("Table", data["source"]),
        ("Target", f"{data['target']}, by {data['task']}"),
        (
            "Rows",
            f"{counts['rows']:,} in the table, {counts['rows_without_target']:,} without a target, "
            f"{counts['rows_trained_on']:,} learned from, {counts['rows_held_out']:,} held out",
        ),
        (
            "Columns",
            f"{counts['columns']:,}, of which {counts['columns_used']:,} used as "
            f"{count(counts['inputs'], 'input')}",
        ),
        ("Missing values", f"{counts['missing_values']:,}"),
        ("Kernel", model["kernel"]),
        (
            "Inference",
            f"{model['inference']}, {model['likelihood']} likelihood"
            + ("" if model["converged"] else "; it did not converge"),
        ),
        ("Log evidence", f"{number(model['log_evidence'], 5)}{bar}"),
        ("Time to tune", f"{number(model['seconds'], 2)} s"),
        ("Seed", str(a["settings"].get("seed", "–"))),
        ("Versions", ", ".join(f"{name} {version}" for name, version in a["versions"].items())),
    ]


def _class_table(a: Json) -> Table:
    counts = a["data"]["class_counts"]
    rows = [
        [Cell(name, name), Cell(f"{n:,}", n), Cell(percent(n / sum(counts)), n)]
        for name, n in zip(a["data"]["classes"], counts, strict=True)
    ]
    return Table("classes", "Classes among the rows learned from", ["class", "rows", "share"], rows)
