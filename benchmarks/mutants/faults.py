"""Small faults that can be put into a source file: other operators, numbers, signs, conditions."""

import ast
from collections.abc import Iterator
from typing import NamedTuple

_OPERATORS = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Pow: ("**", "*"),
}
_COMPARISONS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_NAMES = {
    "maximum": "minimum",
    "minimum": "maximum",
    "max": "min",
    "min": "max",
    "any": "all",
    "all": "any",
    "sum": "mean",
    "cumsum": "cumprod",
    "zeros_like": "ones_like",
    "ones_like": "zeros_like",
    "argmax": "argmin",
    "argmin": "argmax",
    "log": "exp",
    "exp": "log",
    "log1p": "expm1",
    "expm1": "log1p",
    "sqrt": "square",
}
# What a fault in here would change is words, types or how something is drawn up, not an answer.
_SKIPPED = (ast.Raise, ast.JoinedStr, ast.Assert)
_SIGNATURE = ("annotation", "returns", "decorator_list", "bases", "args")
_CHECKS = ("strict",)
"""Keywords that only make mistakes of our own fail sooner."""
_SMALL = 1e-3


class Fault(NamedTuple):
    """A piece of a file's text, and what takes its place."""

    start: int
    end: int
    old: str
    new: str
    line: int

    def into(self, text: str) -> str:
        """Return the text with the fault."""
        return text[: self.start] + self.new + text[self.end :]


def faults(text: str) -> list[Fault]:
    """Return all faults of a file, in the order of their places."""
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    lines = text.splitlines(keepends=True)

    def at(line: int, column: int) -> int:
        # The columns of ast count bytes.
        return offsets[line - 1] + len(lines[line - 1].encode()[:column].decode())

    found = []
    for node in _nodes(ast.parse(text)):
        for (a, b), (c, d), old, new in _of(node):
            start, end = at(a, b), at(c, d)
            place = text.find(old, start, end) if old else start
            if place >= 0:
                stop = place + len(old) if old else end
                found.append(Fault(place, stop, text[place:stop], new or "", a))
    return sorted(set(found))


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the code, without words, annotations, defaults and decorators."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in _SIGNATURE and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            check = isinstance(child, ast.keyword) and child.arg in _CHECKS
            if isinstance(child, ast.AST) and not check and not isinstance(child, _SKIPPED):
                yield from _nodes(child)


Replacement = tuple[tuple[int, int], tuple[int, int], str, str]
"""From where to where in the text which piece is replaced by which."""


def _of(node: ast.AST) -> Iterator[Replacement]:
    """Return what is replaced at a node."""
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS and not _words(node):
        yield _end(node.left), _start(node.right), *_OPERATORS[type(node.op)]
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield _end(node.left), _start(node.comparators[0]), *_COMPARISONS[type(node.ops[0])]
    elif isinstance(node, ast.BoolOp):
        pair = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        yield _end(node.values[0]), _start(node.values[1]), *pair
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield _start(node), _end(node), "-", ""
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        yield _start(node), _end(node), "", repr(_other(node.value))
    elif isinstance(node, ast.Call):
        yield from _other_function(node.func)


def _other(value: float) -> float:
    """Return another number; a small one, such as a tolerance, becomes a large one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value * 1e3 if 0.0 < value < _SMALL else value * 2.0 or 1.0


def _other_function(called: ast.AST) -> Iterator[Replacement]:
    """Return the call of another function of the same form."""
    name = getattr(called, "attr", getattr(called, "id", None))
    if name in _NAMES:
        line, column = _end(called)
        yield (line, column - len(name)), (line, column), name, _NAMES[name]


def _words(node: ast.BinOp) -> bool:
    return any(
        isinstance(part, ast.JoinedStr)
        or (isinstance(part, ast.Constant) and isinstance(part.value, str))
        for part in (node.left, node.right)
    )


def _start(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
