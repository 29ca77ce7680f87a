"""Docstrings name every parameter's default, and name the right one."""

import importlib
import inspect
import pkgutil
import re

import pytest

import cavity

PARAMETER = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<kind>.+)$", re.M)
STATED = re.compile(r"default[ =]+(?P<value>.+?)(?:$|, optional)")


def documented():
    """Public functions, and classes with parameters, with their docstrings."""
    found = {}
    for module in pkgutil.walk_packages(cavity.__path__, "cavity."):
        if module.name.split(".")[-1].startswith("_") or module.name.endswith("curves"):
            continue
        names = vars(importlib.import_module(module.name))
        for name, value in names.items():
            own = getattr(value, "__module__", None) == module.name and not name.startswith("_")
            if own and inspect.isclass(value):
                found[f"{module.name}.{name}"] = (value, inspect.cleandoc(value.__doc__ or ""))
                for method, function in vars(value).items():
                    if inspect.isfunction(function) and not method.startswith("_"):
                        doc = inspect.cleandoc(function.__doc__ or "")
                        found[f"{module.name}.{name}.{method}"] = (function, doc)
            elif own and inspect.isfunction(value):
                found[f"{module.name}.{name}"] = (value, inspect.cleandoc(value.__doc__ or ""))
    return {name: pair for name, pair in found.items() if "\nParameters\n" in pair[1]}


DOCUMENTED = documented()


def stated(doc):
    """Return each parameter of a docstring with what it says of its kind."""
    section = re.split(r"\n\n(?=[A-Z][a-z]+\n-)", doc.split("\nParameters\n", 1)[1])[0]
    flat = re.sub(r"\\\n\s+", "", section)
    return {
        name: match["kind"]
        for match in PARAMETER.finditer(flat)
        for name in match["names"].split(", ")
    }


def wrong(callable_, doc):
    """Return the parameters whose default is not stated, or not as it is."""
    said = stated(doc)
    for name, parameter in inspect.signature(callable_).parameters.items():
        if name not in said or parameter.default is inspect.Parameter.empty:
            continue
        found = STATED.search(said[name])
        if found is None:
            if "optional" not in said[name]:
                yield f"{name}: no default"
            continue
        value = found["value"].strip("` ").replace("'", '"')
        if value != repr(parameter.default).replace("'", '"') and not value.startswith(":"):
            yield f"{name}: says {value}, is {parameter.default!r}"


@pytest.mark.parametrize("name", DOCUMENTED)
def test_defaults_are_stated(name):
    """What has a default says so, with the value of the signature."""
    assert list(wrong(*DOCUMENTED[name])) == []


def test_there_are_docstrings_to_check():
    """The parser above has found the estimators' and the functions' parameters."""
    assert len(DOCUMENTED) > 100
    said = stated(DOCUMENTED["cavity.estimators.classifier.GaussianProcessClassifier"][1])
    assert said["inference"].endswith('default "ep"')
    assert "Parameters" in DOCUMENTED["cavity.model_selection.learning.learning_curve"][1]
