"""Where rows are kept: in memory, or wherever else blocks of them can be visited."""

from cavity.rows.base import ENGINES, RowBlocks, added
from cavity.rows.memory import MemoryBlocks

__all__ = ["ENGINES", "MemoryBlocks", "RowBlocks", "added"]
