"""The questions that a report answers, one file each, in the order of the page."""

from cavity.report.sections.certainty import certainty
from cavity.report.sections.inputs import inputs
from cavity.report.sections.labels import labels
from cavity.report.sections.methods import methods
from cavity.report.sections.more import more
from cavity.report.sections.quality import quality
from cavity.report.sections.record import record
from cavity.report.sections.strip import strip

__all__ = ["SECTIONS", "strip"]

SECTIONS = (quality, certainty, more, inputs, labels, methods, record)
"""Each takes an `Analysis` and returns a `Section`."""
