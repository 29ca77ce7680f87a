"""All classes of a table as one problem."""

from collections.abc import Sequence
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
    inputs = training_inputs(classifier, X, rows.index)
    latents = ClassLatents(int(codes.max()) + 1, model == Logit())
    own, couple = latents.in_memory(inputs, [codes], rows.weight)
    evidence = Evidence(rule, own, Softmax() if model == Logit() else model, method, couple)
    return beginning([evidence.under(density(classifier))], before)


def method_on_points(classifier: Any) -> Method:
    """Return the inference of all classes at once on inducing points."""
    method = joint_method(classifier)
    if likelihood(classifier.likelihood) == Logit():
        raise ValueError(
            "With inducing points multi_class='multinomial' goes with likelihood='probit': use it, "
            "or leave out n_inducing and inducing_points and fit at most some thousand rows."
        )
    return method


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
