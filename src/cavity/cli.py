"""The command line: ``cavity report`` fits a shipped data set and says how good the model is."""

import argparse
import sys
import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cavity import GaussianProcessClassifier, __version__
from cavity.arrays import Array
from cavity.datasets import load_pima
from cavity.estimators import compare_inference

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    _parser().parse_args(arguments)
    sys.stdout.write(_report())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cavity", description=__doc__)
    parser.add_argument("--version", action="version", version=f"cavity {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    report = commands.add_parser("report", help="fit a data set and summarise the model")
    report.add_argument("table", choices=["pima"], help="name of a shipped data set")
    return parser


def _report() -> str:
    """Fit Pima end to end and put the answers into words."""
    data = load_pima(subset="all")
    X, y = data.data, data.target
    model = make_pipeline(
        StandardScaler(), GaussianProcessClassifier(1.0 * RBF(np.ones(X.shape[1])))
    )
    with warnings.catch_warnings():
        # An input that does not matter is tuned to its bound; the relevances below say so.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X[data.train], y[data.train])
    classifier = model[-1]
    held_out = _scores(model.predict_proba(X[data.test]), y[data.test])
    left_out = _scores(classifier.loo_proba_, y[data.train])
    relevance = 1.0 / classifier.kernel_.k2.length_scale
    table = compare_inference(
        model[:-1].transform(X[data.train]), y[data.train], classifier.kernel_, optimizer=None
    )
    lines = [
        f"Pima: {len(data.train)} training and {len(data.test)} test rows, "
        f"{X.shape[1]} inputs, predicting diabetes.",
        f"Kernel: {classifier.kernel_}",
        f"Log evidence {classifier.log_marginal_likelihood_value_:.2f} "
        f"(second-order correction {classifier.evidence_correction_:+.3f}).",
        "",
        "How good is it?",
        f"  leave-one-out, without refitting: error {left_out[0]:.3f}, log loss {left_out[1]:.3f}",
        f"  on the test rows:                 error {held_out[0]:.3f}, log loss {held_out[1]:.3f}",
        "",
        "Which inputs matter? (relative inverse length scale)",
        *(
            f"  {name:6s} {'#' * round(30 * r)}"
            for name, r in zip(data.feature_names, relevance / relevance.max(), strict=True)
        ),
        "",
        "Which inference? (at the kernel above)",
        *(f"  {line}" for line in repr(table).splitlines()),
        "",
    ]
    return "\n".join(lines)


def _scores(proba: Array, y: Array) -> tuple[float, float]:
    """Return error rate and log loss."""
    chosen = proba[np.arange(len(y)), y]
    return float(np.mean(np.argmax(proba, axis=1) != y)), float(-np.mean(np.log(chosen)))
