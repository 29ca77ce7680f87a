"""The doors between the rooms stay shut, and nothing grows past what one can read."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import cavity

ROOT = Path(cavity.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
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
    "dask",
}
FRONT = {
    f"cavity.{room}"
    for room in ("estimators", "dask", "model_selection", "tables", "report", "cli")
}
CONCRETE = {
    f"cavity.likelihoods.{path.stem}"
    for path in (ROOT / "likelihoods").glob("*.py")
    if path.stem not in {"__init__", "base"}
}
SHUT = {
    "rows": {"cavity.priors", "cavity.kernels", "cavity.likelihoods", "cavity.inference", *FRONT},
    "kernels": {"cavity.likelihoods", "cavity.inference", "cavity.priors", *FRONT},
    "likelihoods": {"cavity.kernels", "cavity.inference", "cavity.priors", *FRONT},
    "priors": {"cavity.kernels", "cavity.likelihoods", "cavity.inference", *FRONT},
    "inference": {"cavity.kernels", "cavity.evidence", *FRONT, *CONCRETE},
    "evidence": {"cavity.online", "cavity.resampling", *FRONT},
    "resampling": {"cavity.kernels", "cavity.evidence", *FRONT},
    "online": {"cavity.kernels", "cavity.evidence", *FRONT, *CONCRETE},
    "estimators": FRONT - {"cavity.estimators"},
    "dask": FRONT - {"cavity.estimators", "cavity.dask"},
    "model_selection": {"cavity.dask", "cavity.tables", "cavity.report", "cavity.cli"},
    "tables": {"cavity.dask", "cavity.report", "cavity.cli"},
    "report": {"cavity.dask", "cavity.cli"},
}
FOUNDATIONS = {"arrays", "solvers", "sites"}
LINES = [
    FOUNDATIONS,
    {"kernels", "likelihoods", "priors", "rows"},
    {"inference"},
    {"evidence", "online", "resampling", "storage"},
    {"estimators"},
    {"tables", "model_selection", "dask"},
    {"report"},
    {"cli"},
]
OF_NAMED_TUPLES = {"_replace", "_fields", "_asdict"}
OF_SCIKIT_LEARN = {"_init_callback_context", "_callback_fit_ctx"}


def room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """Every module and name that a file imports, dotted, wherever in the file."""
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative imports hide which door they use"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(name, modules):
    return any(name == module or name.startswith(module + ".") for module in modules)


def within_any(names, modules):
    return any(within(name, modules) for name in names)


def body_lines(function):
    """Lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function):
        lines -= function.body[0].end_lineno - function.body[0].lineno + 1
    return lines


def classes(path):
    return [node for node in ast.walk(TREES[path]) if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("shut", SHUT)
def test_doors_are_shut(shut):
    """No room imports from a room it must not know."""
    for path in (path for path in FILES if room(path) == shut):
        wrong = [name for name in imports(path) if within(name, SHUT[shut])]
        assert not wrong, f"{path.relative_to(ROOT)} imports {wrong}"


def test_rooms_import_from_below():
    """No room imports from its own line of the picture in docs/architecture.md, or from above."""
    for k, line in enumerate(LINES[1:], start=1):
        above = {f"cavity.{name}" for names in LINES[k:] for name in names}
        for path in (path for path in FILES if room(path) in line):
            others = (name for name in imports(path) if not within(name, {f"cavity.{room(path)}"}))
            wrong = [name for name in others if within(name, above)]
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


def test_dask_has_one_door():
    """Dask is imported by one file, when it is needed, and that file by one other."""
    door = ROOT / "rows" / "dask.py"
    for path in (path for path in FILES if path != door):
        names = set(imports(path))
        assert not [name for name in names if within(name, {"dask", "distributed"})], path
        assert path == ROOT / "dask.py" or not within_any(names, {"cavity.rows.dask"}), path
        words = {n.value for n in ast.walk(TREES[path]) if isinstance(n, ast.Constant)}
        assert not words & {"dask", "distributed"}, f"{path} imports Dask by its name"
    assert not [name for name in imports(door) if within(name, {"dask", "distributed"})]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_sizes(path):
    """Functions are at most 30 lines long without their docstring, files at most 350.

    An estimator's ``__init__`` has two lines for each parameter, as scikit-learn wants it.
    """
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 350
    functions = (n for n in ast.walk(TREES[path]) if isinstance(n, ast.FunctionDef))
    long = [f.name for f in functions if body_lines(f) > 30 and f.name != "__init__"]
    assert not long, f"longer than 30 lines: {long}"


def test_size_of_the_whole():
    """All of the library is at most 42,650 lines; the tests are at least 0.6 times as many."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES)
    tests = Path(__file__).parent.rglob("*.py")
    assert lines <= 42_650
    assert sum(len(path.read_text(encoding="utf-8").splitlines()) for path in tests) >= 0.6 * lines


def test_class_names_are_unique():
    """One name for one thing."""
    counts = Counter(node.name for path in FILES for node in classes(path))
    assert not [name for name, count in counts.items() if count > 1]


def test_nothing_happens_when_an_object_dies():
    """No class has a __del__."""
    methods = (node for path in FILES for cls in classes(path) for node in cls.body)
    assert not [m for m in methods if isinstance(m, ast.FunctionDef) and m.name == "__del__"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_private_is_private(path):
    """Attributes with an underscore are read in the file that sets them, and nowhere else."""
    nodes = [node for node in ast.walk(TREES[path]) if isinstance(node, ast.Attribute)]
    private = {n.attr for n in nodes if n.attr.startswith("_") and not n.attr.startswith("__")}
    of_self = {
        n.attr for n in nodes if isinstance(n.value, ast.Name) and n.value.id in ("self", "cls")
    }
    of_super = {n.attr for n in nodes if isinstance(n.value, ast.Call)}
    known = of_self | of_super | OF_NAMED_TUPLES | OF_SCIKIT_LEARN
    assert not private - known, f"reads {private - known} of another object"


def test_public_names():
    """`dir(cavity)` shows the public names, and nothing else."""
    assert dir(cavity) == sorted(cavity.__all__)


def test_former_names_answer_with_a_warning():
    """What was in `cavity.curves` can still be imported from there."""
    from cavity import curves, resampling

    with pytest.warns(DeprecationWarning, match=r"cavity\.resampling\.sollich_curve"):
        assert curves.sollich_curve is resampling.sollich_curve
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = curves.nothing_of_the_kind


def test_former_names_of_estimators():
    """What moved from `cavity.estimators` to `cavity.model_selection` is still found there."""
    from cavity import estimators, model_selection

    with pytest.warns(DeprecationWarning, match="model_selection"):
        assert estimators.Comparison is model_selection.Comparison
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = estimators.nothing_of_the_kind
