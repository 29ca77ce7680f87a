"""An analysis in words, for a terminal or a log."""

import math

from cavity.model_selection.columns import columns
from cavity.report.analysis import Analysis, Json

__all__ = ["comparison", "curve_lines", "quality", "summarise"]


def summarise(analysis: Analysis) -> str:
    """Return a page of plain text."""
    paragraphs = [
        _data(analysis),
        _model(analysis),
        quality(analysis.left_out, analysis.held_out),
        _relevance(analysis),
        _comparison(analysis.comparison),
        _curve(analysis),
        _suspects(analysis),
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines) + "\n"


def _data(analysis: Analysis) -> list[str]:
    data, counts = analysis.data, analysis.data["counts"]
    test = f" and {counts['rows_held_out']:,} test" if counts["rows_held_out"] else ""
    classes = f" ({', '.join(data['classes'])})" if data["classes"] else ""
    return [
        f"{data['source']}: {counts['rows_trained_on']:,} training{test} rows, "
        f"{counts['inputs']} inputs, predicting {data['target']}{classes} by {data['task']}.",
        *(f"  {note}" for note in data["notes"]),
    ]


def _model(analysis: Analysis) -> list[str]:
    model = analysis.model
    correction = model["evidence_correction"]
    error_bar = "" if correction is None else f" (second-order correction {correction:+.3f})"
    return [
        f"Kernel: {model['kernel']}",
        f"Log evidence {model['log_evidence']:.2f}{error_bar}, "
        f"{model['inference']} with {model['likelihood']} likelihood, {model['seconds']:.1f} s.",
    ]


def quality(left_out: Json, held_out: Json | None) -> list[str]:
    """Say how good the model is, beside knowing nothing."""
    key = "error" if "error" in left_out else "rmse"
    rows = [("leave-one-out, without refitting", left_out), ("on the test rows", held_out)]
    lines = [
        f"  {name + ':':34s}{key} {scores[key]:.3f} ± {scores[f'{key}_se']:.3f}, "
        f"log loss {scores['log_loss']:.3f} ± {scores['log_loss_se']:.3f}"
        for name, scores in rows
        if scores
    ]
    baseline = (
        f"  {'knowing no inputs:':34s}{key} {left_out[f'baseline_{key}']:.3f}, "
        f"log loss {left_out['baseline_log_loss']:.3f}"
    )
    return ["How good is it?", *lines, baseline]


def _relevance(analysis: Analysis) -> list[str]:
    if not analysis.relevance:
        return []
    width = max(len(line["feature"]) for line in analysis.relevance)
    ranked = sorted(analysis.relevance, key=lambda line: -line["relevance"])
    bars = [
        f"  {line['feature']:{width}s} {'#' * round(30 * line['relevance'])}".rstrip()
        for line in ranked
    ]
    return ["Which inputs matter? (relative inverse length scale)", *bars]


def _comparison(rows: list[Json]) -> list[str]:
    if not rows:
        return []
    return [
        "Which inference? (at the kernel above; leave-one-out log loss and error)",
        *(f"  {line}" for line in comparison(rows)),
    ]


def comparison(rows: list[Json]) -> list[str]:
    """Return the rows of a comparison of inference methods as lines of text."""
    header = [
        "inference",
        "log evidence",
        "correction",
        "log loss",
        "error",
        "seconds",
        "converged",
    ]
    return columns(header, [_compared(row) for row in rows])


def _compared(row: Json) -> list[str]:
    return [
        row["inference"],
        f"{row['log_evidence']:.3f}",
        "" if math.isnan(row["correction"]) else f"{row['correction']:+.3f}",
        f"{row['loo_log_loss']:.4f}",
        f"{row['loo_error']:.4f}",
        f"{row['seconds']:.2f}",
        "yes" if row["converged"] else "no",
    ]


def _curve(analysis: Analysis) -> list[str]:
    lines = curve_lines(analysis.curve)
    return ["Would more data help?", *(f"  {line}" for line in lines)]


def curve_lines(about: Json) -> list[str]:
    """Return a learning curve and its forecasts as lines of text."""
    measured = [
        [f"{size:,}", f"{error:.4g}", f"{loss:.4g}", "", "average over subsets"]
        for size, error, loss in zip(about["sizes"], about["error"], about["log_loss"], strict=True)
    ]
    ahead = [
        [
            f"{f['size']:,}",
            f"{f['value']:.4g}",
            f"{loss['value']:.4g}",
            f"{f['low']:.4g} to {f['high']:.4g}",
            "forecast",
        ]
        for f, loss in zip(about["forecast"], about["log_loss_forecast"], strict=True)
        if f["size"] > about["rows"]
    ]
    interval = f"{about['level']:.0%} interval"
    lines = columns(["rows", about["measure"], "log loss", interval, ""], measured + ahead)
    if "goal" not in about:
        return lines
    rows = about["rows_for_goal"]
    reached = "out of reach" if rows is None else f"expected from {rows:,} rows on"
    return [*lines, f"Goal, {about['measure']} {about['goal']:g}: {reached}."]


def _suspects(analysis: Analysis) -> list[str]:
    def line(found: Json) -> str:
        if "z" in found:
            return (
                f"  row {found['row']}: {found['label']:g}, the others say "
                f"{found['prediction']:.4g} ± {found['std']:.2g}"
            )
        return (
            f"  row {found['row']}: labelled {found['label']}, the others give that "
            f"{found['probability_of_label']:.1%}"
        )

    return ["Which rows to check first?", *map(line, analysis.suspects[:5])]
