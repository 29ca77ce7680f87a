"""The doors between the rooms stay shut, and nothing grows past what one can read."""

import ast
from pathlib import Path

import pytest

import cavity

ROOT = Path(cavity.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
SKLEARN_ROOMS = {
    "estimators",
    "kernels",
    "datasets",
    "testing",
    "tables",
    "report",
    "cli",
    "model_selection",
    "storage",
}
CONCRETE = {
    f"cavity.likelihoods.{path.stem}"
    for path in (ROOT / "likelihoods").glob("*.py")
    if path.stem not in {"__init__", "base"}
}
SHUT = {
    "kernels": {"cavity.likelihoods", "cavity.inference", "cavity.priors", "cavity.estimators"},
    "likelihoods": {"cavity.kernels", "cavity.inference", "cavity.priors", "cavity.estimators"},
    "priors": {"cavity.kernels", "cavity.likelihoods", "cavity.inference", "cavity.estimators"},
    "inference": {"cavity.kernels", "cavity.estimators", *CONCRETE},
    "resampling": {"cavity.estimators", "cavity.model_selection"},
    "estimators": {"cavity.model_selection"},
    "online": {"cavity.estimators", "cavity.kernels", *CONCRETE},
}
FOUNDATIONS = {"arrays", "solvers", "sites"}


def room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """Every module and name that a file imports, dotted, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide which door they use"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name, modules):
    return any(name == module or name.startswith(module + ".") for module in modules)


def body_lines(function):
    """Lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function):
        lines -= function.body[0].end_lineno - function.body[0].lineno + 1
    return lines


@pytest.mark.parametrize("shut", SHUT)
def test_doors_are_shut(shut):
    """No room imports from a room it must not know."""
    for path in (path for path in FILES if room(path) == shut):
        wrong = [name for name in imports(path) if within(name, SHUT[shut])]
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_inference_names_no_likelihood():
    """Inference sees the Likelihood interface, never one of those behind it."""
    known = {"cavity.likelihoods.Likelihood", "cavity.likelihoods.base.Likelihood"}
    for path in (path for path in FILES if room(path) == "inference"):
        seen = {name for name in imports(path) if within(name, {"cavity.likelihoods"})}
        assert seen <= known, f"{path.relative_to(ROOT)} imports {seen - known}"


def test_foundations_import_no_room():
    """What every room stands on imports only other foundations."""
    for path in (path for path in FILES if room(path) in FOUNDATIONS):
        ours = [name for name in imports(path) if within(name, {"cavity"})]
        wrong = [name for name in ours if name.split(".")[1] not in FOUNDATIONS]
        assert not wrong, f"{path.name} imports {wrong}"


def test_scikit_learn_stays_outside():
    """scikit-learn is imported by the front ends, the kernels and the data sets only."""
    for path in (path for path in FILES if room(path) not in SKLEARN_ROOMS):
        wrong = [name for name in imports(path) if within(name, {"sklearn"})]
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sizes(path):
    """Functions are at most 40 lines long without their docstring, files at most 420."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 420
    functions = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef))
    long = [f.name for f in functions if body_lines(f) > 40]
    assert not long, f"longer than 40 lines: {long}"
