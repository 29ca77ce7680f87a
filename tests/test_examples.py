"""The gallery's scripts run, in their short form, and write their pictures."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py"))
# About half a minute even in its short form.
SLOW = {"founding/boston_abalone.py"}


def scripts() -> list:
    return [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SCRIPTS
    ]


@pytest.mark.parametrize("name", scripts())
def test_script_runs_and_writes_its_picture(name: str, tmp_path: Path) -> None:
    """Run from another folder, a script ends well and leaves a new PNG in the output folder."""
    pytest.importorskip("matplotlib")
    copy = tmp_path / Path(name).name
    copy.write_text((EXAMPLES / name).read_text(encoding="utf-8"), encoding="utf-8")
    environment = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(copy), "--quick"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    pictures = list((tmp_path / "output").glob("*.png"))
    # A blank page of this size is smaller.
    assert any(picture.stat().st_size > 20_000 for picture in pictures), pictures


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_begins_as_the_gallery_wants(name: str) -> None:
    """The first thing in a script is a docstring whose title is underlined."""
    text = (EXAMPLES / name).read_text(encoding="utf-8").lstrip("r").removeprefix('"""')
    title, underline = text.strip().splitlines()[:2]
    assert underline == "=" * len(title)
