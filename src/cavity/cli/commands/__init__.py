"""One file for each command, and its line here."""

from cavity.cli.commands.compare import compare
from cavity.cli.commands.curve import curve
from cavity.cli.commands.datasets import datasets
from cavity.cli.commands.fit import fit
from cavity.cli.commands.plan import plan
from cavity.cli.commands.predict import predict
from cavity.cli.commands.report import report
from cavity.cli.commands.suggest import suggest

__all__ = [
    "COMMANDS",
    "compare",
    "curve",
    "datasets",
    "fit",
    "plan",
    "predict",
    "report",
    "suggest",
]

COMMANDS = (report, compare, curve, plan, fit, predict, suggest, datasets)
