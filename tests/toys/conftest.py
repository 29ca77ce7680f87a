"""The modules here register things when they are imported: each runs in a process of its own."""

collect_ignore_glob = ["*.py"]
