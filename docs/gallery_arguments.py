"""How the gallery starts an example; a module, so that Sphinx can cache its configuration."""

from pathlib import Path


def quick(gallery_conf, script_vars):
    """Return the command line of an example, and tell it where it lives, as Python itself would."""
    script_vars["example_globals"]["__file__"] = str(Path(script_vars["src_file"]).resolve())
    return ["--quick"]
