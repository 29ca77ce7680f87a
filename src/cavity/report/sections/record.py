"""What was done, so that others can repeat it."""

from typing import Any

from cavity.report.analysis import Analysis
from cavity.report.blocks import Cell, Code, Facts, HtmlTable, Note, Section
from cavity.report.sections.common import word_cell
from cavity.report.words import count, number, percent


def record(a: Analysis) -> Section:
    """Return the section with all settings and decisions."""
    missing = a.data.counts["missing_values"]
    headline = (
        f"The model was trained on {count(a.n_rows, 'row')} and "
        f"{count(a.data.counts['inputs'], 'input')}; "
        f"{'no value was' if not missing else count(missing, 'value was', 'values were')} missing."
    )
    blocks: list[Any] = [Facts(_facts(a))]
    if a.is_classes:
        blocks.append(_class_table(a))
    blocks += [Note(note) for note in (*a.data.notes, *a.model.warnings)]
    if a.command:
        blocks += [Note("To make this page again:"), Code(a.command)]
    return Section("record", "What was done?", headline, blocks)


def _facts(a: Analysis) -> list[tuple[str, str]]:
    data, model, counts = a.data, a.model, a.data.counts
    correction = model.evidence_correction
    bar = "" if correction is None else f" (correction {number(correction, 2)})"
    failed = "" if model.converged else "; it did not converge"
    rows = (
        f"{counts['rows']:,} in the table, {counts['rows_without_target']:,} without a target, "
        f"{counts['rows_trained_on']:,} for training, {counts['rows_held_out']:,} held out"
    )
    used = f"{counts['columns_used']:,} used as {count(counts['inputs'], 'input')}"
    return [
        ("Table", data.source),
        ("Target", f"{data.target}, by {data.task}"),
        ("Rows", rows),
        ("Columns", f"{counts['columns']:,}, of which {used}"),
        ("Missing values", f"{counts['missing_values']:,}"),
        ("Kernel", model.kernel),
        ("Inference", f"{model.inference}, {model.likelihood} likelihood{failed}"),
        ("Log evidence", f"{number(model.log_evidence, 5)}{bar}"),
        ("Time for tuning", f"{number(model.seconds, 2)} s"),
        ("Seed", str(a.settings["seed"])),
        ("Versions", ", ".join(f"{name} {version}" for name, version in a.versions.items())),
    ]


def _class_table(a: Analysis) -> HtmlTable:
    counts = a.data.class_counts
    rows = [
        [word_cell(name), Cell(f"{n:,}", n), Cell(percent(n / sum(counts)), n)]
        for name, n in zip(a.data.classes, counts, strict=True)
    ]
    return HtmlTable("classes", "Classes of the training rows", ["class", "rows", "share"], rows)
