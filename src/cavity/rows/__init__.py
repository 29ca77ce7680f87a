"""Where rows are kept: in memory, or wherever else blocks of them can be visited."""

from cavity.rows.base import ENGINES, Memo, RowBlocks, State, added
from cavity.rows.memory import MemoryBlocks

__all__ = ["ENGINES", "Memo", "MemoryBlocks", "RowBlocks", "State", "added"]
