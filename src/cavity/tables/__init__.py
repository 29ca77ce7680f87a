"""From a table on disk to a fitted model, and back to a file."""
