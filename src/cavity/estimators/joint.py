"""All classes of a table as one problem."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from cavity import inference as methods
from cavity.arrays import Array
from cavity.estimators.coding import BinaryTask, Coding
from cavity.estimators.latents import SIGNS, ClassLatents, Latents, SignLatents
from cavity.estimators.problems import beginning, density
from cavity.estimators.validation import RowMap, training_inputs
from cavity.evidence import Evidence
from cavity.inference import Method, SoftmaxLaplace
from cavity.kernels import Rule
from cavity.likelihoods import Likelihood, Logit, Probit, likelihood
from cavity.likelihoods.softmax import Softmax
from cavity.priors import ClassLabels, ClassPrior, ScorePrior
from cavity.sites import Rows

JOINT_METHODS = {"probit": ("ep", "laplace", "naive", "variational"), "logit": ("laplace",)}
"""For each likelihood, the inferences that all classes as one problem go with."""
_METHODS = JOINT_METHODS["probit"]


def latents_of(classifier: Any, split: Coding) -> Latents:
    """Return what the latent values of a classifier's problems are of."""
    if split.ordered:
        return SignLatents(split.labels)
    if not split.joint:
        return SIGNS
    return ClassLatents(split.n_classes, likelihood(classifier.likelihood) == Logit())


def class_evidences(
    rule: Rule,
    classifier: Any,
    X: Any,
    rows: RowMap,
    tasks: Sequence[BinaryTask],
    before: Sequence[Array] = (),
    offset: Array | None = None,
) -> list[Evidence]:
    """Return the evidence of all classes at once, at the hyperparameters found before, if any."""
    [(_, codes)] = tasks
    model, method = likelihood(classifier.likelihood), joint_method(classifier)
    labels = ClassLabels.of(codes, int(codes.max()) + 1, rows.weight)
    inputs = training_inputs(classifier, X, rows.index)
    if model == Logit():
        couple, own = partial(ScorePrior.of, X=inputs, labels=labels), Rows(codes, rows.weight)
        evidence = Evidence(rule, [own], Softmax(), method, couple)
    else:
        coupled = partial(ClassPrior.of, X=inputs, labels=labels)
        evidence = Evidence(rule, [labels.rows(rows.weight)], model, method, coupled)
    return beginning([evidence.under(density(classifier))], before)


def joint_method(classifier: Any) -> Method:
    """Return the inference of all classes at once; reject what has no form for them."""
    model = likelihood(classifier.likelihood)
    options = {} if classifier.tol is None else {"tol": classifier.tol}
    method = methods.method(classifier.inference, max_iter=classifier.max_iter_predict, **options)
    if model == Logit() and method.name == "laplace":
        return SoftmaxLaplace(tol=method.tol, max_iter=method.max_iter)
    if model != Probit() or method.name not in _METHODS:
        known = ", ".join(map(repr, _METHODS))
        raise ValueError(
            f"multi_class='multinomial' goes with likelihood='probit' and inference {known}, or "
            f"with likelihood='logit' and inference 'laplace'; got {_named(model)} and "
            f"{method.name!r}. Use one of these, or multi_class='one_vs_rest'."
        )
    return method


def _named(model: Likelihood) -> str:
    return {Logit(): "'logit'", Probit(): "'probit'"}.get(model, repr(model))
