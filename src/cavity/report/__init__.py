"""From a table on disk to a fitted model and the numbers of its report."""
