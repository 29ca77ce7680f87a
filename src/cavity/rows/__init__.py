"""Where rows are kept: in memory, or wherever else blocks of them can be visited."""

from cavity.rows.base import ENGINES, Memo, RowBlocks, State, added
from cavity.rows.batches import BatchRows
from cavity.rows.coded import Coded
from cavity.rows.memory import MemoryBlocks
from cavity.rows.parquet import ParquetRows
from cavity.rows.scan import RowSample, Spread, Summary, draw_rows, scan

__all__ = [
    "ENGINES",
    "BatchRows",
    "Coded",
    "Memo",
    "MemoryBlocks",
    "ParquetRows",
    "RowBlocks",
    "RowSample",
    "Spread",
    "State",
    "Summary",
    "added",
    "draw_rows",
    "scan",
]
