"""A fitted table as numbers, as text and as a page."""
