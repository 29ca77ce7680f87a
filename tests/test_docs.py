"""The documentation stays true: every example runs, prints what it says, and every link leads."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from cavity.inference import METHODS
from cavity.kernels import RULES
from cavity.likelihoods import REGISTRY
from cavity.priors import PRIORS
from cavity.rows import ENGINES

ROOT = Path(__file__).resolve().parents[1]
# What `make docs` generates from other files of the repository is not a page of its own.
GENERATED = ("_build", "auto_examples", "generated")
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not set(page.relative_to(ROOT).parts) & set(GENERATED)
    ),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# A block of Python and, where one follows at once, the block of text that it prints.
EXAMPLE = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", re.M | re.S)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


class Example(NamedTuple):
    line: int
    code: str
    output: str | None


def examples(page: Path) -> list[Example]:
    text = page.read_text(encoding="utf-8")
    return [
        Example(text.count("\n", 0, found.start(1)), found[1], found[2])
        for found in EXAMPLE.finditer(text)
    ]


@pytest.fixture
def registries() -> Iterator[None]:
    """Forget afterwards what an example has registered."""
    with contextlib.ExitStack() as stack:
        for registry in (METHODS, REGISTRY, RULES, PRIORS, ENGINES):
            stack.enter_context(mock.patch.dict(registry))
        yield


@pytest.mark.usefixtures("registries")
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_examples_run_and_print_what_the_page_says(page: Path) -> None:
    """Run top to bottom in one namespace, each example prints the text below it, warning-free."""
    namespace = {"__name__": f"examples_of_{page.stem.lower()}"}
    found = examples(page)
    if any("import torch" in example.code for example in found):
        pytest.importorskip("torch", reason="the page's examples need PyTorch")
    if any("import dask" in example.code for example in found):
        pytest.importorskip("distributed", reason="the page's examples need Dask")
    for line, code, output in found:
        printed = io.StringIO()
        # Blank lines in front make a traceback's line numbers those of the page.
        program = compile("\n" * line + code, str(page), "exec")
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        if output is not None:
            assert printed.getvalue() == output, f"{page.name}, line {line + 1}"


def test_every_fence_is_one_that_the_examples_know() -> None:
    """Fences are closed and of a kind that is either run or plainly not Python."""
    for page in PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), re.M)
        assert set(fences[1::2]) <= {""}, f"{page.name}: a fence is not closed"
        known = {"python", "text", "console", "bibtex", "{eval-rst}"}
        assert set(fences[::2]) <= known, page.name


def test_relative_links_lead_somewhere() -> None:
    """Every link to a file of the repository names one that exists."""
    for page in PAGES:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://", *GENERATED)):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
