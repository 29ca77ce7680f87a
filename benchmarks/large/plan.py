"""How much to do."""

from typing import NamedTuple

__all__ = ["FULL", "QUICK", "Plan"]


class Plan(NamedTuple):
    """Sizes of the tables, and limits in seconds."""

    quick: bool
    tables: tuple[tuple[str, int], ...]
    """Sets and training rows on which the contestants compete."""
    points: int
    """Inducing points, or features."""
    timeout: float
    """After which a contestant is given up."""
    n_passes: tuple[int, ...]
    """Rows for the cost of one evaluation."""
    m_passes: tuple[int, ...]
    rounds: int
    """Times that an evaluation is timed."""
    n_file: int
    """Rows of the Parquet file."""
    m_file: int
    n_curve: int
    n_workers: tuple[int, ...]
    """Rows generated on Dask's workers."""
    m_workers: int


FULL = Plan(
    quick=False,
    tables=(
        ("flights", 300_000),
        ("flights, departed", 10_000),
        ("flights, departed", 300_000),
        ("made up", 10_000),
        ("made up", 100_000),
        ("made up", 1_000_000),
    ),
    points=200,
    timeout=600.0,
    n_passes=(25_000, 50_000, 100_000, 200_000),
    m_passes=(100, 200, 500),
    rounds=5,
    n_file=1_000_000,
    m_file=200,
    n_curve=100_000,
    n_workers=(1_000_000, 10_000_000),
    m_workers=50,
)
QUICK = Plan(
    quick=True,
    tables=(("flights, departed", 3000), ("made up", 3000)),
    points=50,
    timeout=120.0,
    n_passes=(10_000, 20_000),
    m_passes=(100, 200),
    rounds=1,
    n_file=20_000,
    m_file=50,
    n_curve=10_000,
    n_workers=(20_000, 100_000),
    m_workers=20,
)
