"""The faults that are put into the core are real ones, in code and nowhere else."""

import ast

from benchmarks.mutants.__main__ import ROOMS, ROOT, chosen, key, page, those_for
from benchmarks.mutants.faults import faults

TEXT = '''"""Words: a + b < 2."""
ONE = 1e-6


def f(a: int | None, b=2) -> float:
    """Return -1 if a > 3."""
    if a >= b and not -a:
        raise ValueError(f"{a + b} is not 3")
    return xp.sqrt(a * 0.5) - max(a, b, key=lambda x: x) + 2**b
'''


def test_every_kind_of_fault():
    """Operators, comparisons, conditions, signs, numbers and functions, each at its place."""
    found = {(fault.old, fault.new) for fault in faults(TEXT)}
    assert found == {
        ("1e-6", "0.001"),
        (">=", ">"),
        ("and", "or"),
        ("-", ""),
        ("sqrt", "square"),
        ("*", "/"),
        ("0.5", "1.0"),
        ("-", "+"),
        ("max", "min"),
        ("+", "-"),
        ("**", "*"),
        ("2", "3"),
    }
    for fault in faults(TEXT):
        changed = fault.into(TEXT)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(TEXT))
        assert changed.splitlines()[0] == TEXT.splitlines()[0]


def test_faults_of_the_core():
    """The same seed chooses the same faults, from every room, each of which is valid Python."""
    found = chosen(60, 1)
    assert found == chosen(60, 1) != chosen(60, 2)
    for name, fault in found:
        text = (ROOT / name).read_text(encoding="utf-8")
        assert ast.dump(ast.parse(fault.into(text))) != ast.dump(ast.parse(text))
        assert len(those_for(name)) > 3
    assert {name.split("/")[2] for name, _ in found} == set(ROOMS)


def test_the_page_lists_what_was_missed():
    """Shares by room, and every fault that no test noticed."""
    found = {key(*one): {"noticed": k > 0, "by": ""} for k, one in enumerate(chosen(40, 0))}
    text = page(found)
    assert next(iter(found)) in text
    assert f"{1.0 - 1.0 / len(found):.1%}" in text
