"""The pictures of the documentation are those that its script draws, and are shown somewhere."""

import importlib.util
import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def script():
    """The script that draws them."""
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_has_a_page(script):
    """What is drawn is there and is shown, with a text for those who cannot see it."""
    pages = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("*/*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    shown = {
        name for alt, name in re.findall(r"!\[([^]]{20,})\]\([./a-z]*pictures/(\w+)\.png\)", text)
    }
    assert shown == set(script.PICTURES)
    assert {path.stem for path in (DOCS / "pictures").glob("*.png")} == shown
    assert all(path.stat().st_size < 250_000 for path in (DOCS / "pictures").glob("*.png"))


def draw(script, name, folder, monkeypatch):
    monkeypatch.setattr(script, "FOLDER", folder)
    with plt.rc_context():
        script.main([name])
    assert (folder / f"{name}.png").stat().st_size > 5_000


def test_the_script_runs(script, tmp_path, monkeypatch):
    """One picture is drawn anew."""
    draw(script, "suspects", tmp_path, monkeypatch)


@pytest.mark.slow
def test_all_pictures(script, tmp_path, monkeypatch):
    """All pictures are drawn anew."""
    for name in script.PICTURES:
        if name == "report" and shutil.which("chromium") is None:
            continue
        draw(script, name, tmp_path, monkeypatch)
