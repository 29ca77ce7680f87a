"""Files that never run code: a JSON header and plain arrays."""

from cavity.storage.checks import (
    check_classes,
    check_memory,
    refusing,
    stored_array,
    stored_number,
    stored_text,
)
from cavity.storage.format import (
    StorageError,
    check_regular,
    clipped,
    read,
    remove_litter,
    replacing,
    short,
    write,
)

__all__ = [
    "StorageError",
    "check_classes",
    "check_memory",
    "check_regular",
    "clipped",
    "read",
    "refusing",
    "remove_litter",
    "replacing",
    "short",
    "stored_array",
    "stored_number",
    "stored_text",
    "write",
]
