"""Files that never run code: a JSON header and plain arrays."""

from cavity.storage.format import StorageError, read, replacing, short, write

__all__ = ["StorageError", "read", "replacing", "short", "write"]
