"""Files that never run code: a header of plain values, and arrays."""

from cavity.storage.format import StorageError, read, write

__all__ = ["StorageError", "read", "write"]
