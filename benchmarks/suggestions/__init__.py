"""Which rows to label next: suggestions beside uncertainty sampling and random rows."""
