"""The script that draws the charts is put together once and kept."""

import hashlib

import pytest
import vl_convert

from cavity.report import page


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """An empty cache, and a page module that has not drawn anything yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    page._bundle.cache_clear()
    yield tmp_path / "cavity"
    page._bundle.cache_clear()


def made(monkeypatch):
    """Count how often the script is put together."""
    calls = []

    def bundle(snippet):
        calls.append(snippet)
        return f"{snippet} // </script"

    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    return calls


def test_the_script_is_kept(folder, monkeypatch):
    """A second program reads what the first has put together, and it may stand in a page."""
    calls = made(monkeypatch)
    first = page._bundle()
    page._bundle.cache_clear()
    assert page._bundle() == first
    assert len(calls) == 1
    assert "</script" not in first
    assert [path.suffix for path in folder.iterdir()] == [".js"]


@pytest.mark.parametrize("spoil", [b"", b"nonsense", b"\xff\n", b"0" * 64 + b"\nalert(1)"])
def test_a_damaged_file_is_replaced(folder, monkeypatch, spoil):
    """Half a file, other bytes, or a script that is not that of its digest is never used."""
    calls = made(monkeypatch)
    first = page._bundle()
    [path] = folder.iterdir()
    path.write_bytes(spoil)
    page._bundle.cache_clear()
    assert page._bundle() == first
    assert len(calls) == 2
    digest, text = path.read_text("utf-8").split("\n", 1)
    assert (digest, text) == (hashlib.sha256(first.encode()).hexdigest(), first)


def test_without_a_folder_to_write_to_a_page_is_drawn(folder, monkeypatch):
    """Where nothing can be kept, the script is put together each time."""
    calls = made(monkeypatch)
    folder.write_text("a file where the folder should be")
    first = page._bundle()
    page._bundle.cache_clear()
    assert page._bundle() == first
    assert len(calls) == 2
