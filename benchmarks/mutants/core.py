"""The files of the core, by rooms."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = {
    "likelihoods": 0.22,
    "sites.py": 0.05,
    "priors": 0.18,
    "inference": 0.2,
    "evidence": 0.15,
    "resampling": 0.15,
    "storage": 0.05,
}
"""The share of the faults that each room gets."""


def files_of(room: str) -> list[str]:
    """Return the names of a room's files."""
    base = ROOT / "src" / "cavity" / room
    files = [base] if base.is_file() else sorted(base.rglob("*.py"))
    return [str(path.relative_to(ROOT)) for path in files]


def core_files() -> list[str]:
    """Return the names of all files that faults are put into."""
    return [name for room in ROOMS for name in files_of(room)]


def digest(name: str) -> str:
    """Return what changes with a file's text."""
    return hashlib.sha256((ROOT / name).read_bytes()).hexdigest()[:16]
