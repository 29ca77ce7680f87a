"""Files that never run code: a JSON header and plain arrays."""

from cavity.storage.format import (
    StorageError,
    check_regular,
    read,
    remove_litter,
    replacing,
    short,
    write,
)

__all__ = ["StorageError", "check_regular", "read", "remove_litter", "replacing", "short", "write"]
