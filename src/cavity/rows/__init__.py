"""Where rows are kept: in memory, or wherever else blocks of them can be visited."""

from cavity.rows.base import ENGINES, Memo, RowBlocks, State, added
from cavity.rows.batches import BatchRows
from cavity.rows.memory import MemoryBlocks
from cavity.rows.parquet import ParquetRows

__all__ = [
    "ENGINES",
    "BatchRows",
    "Memo",
    "MemoryBlocks",
    "ParquetRows",
    "RowBlocks",
    "State",
    "added",
]
