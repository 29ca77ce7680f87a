"""The report as one self-contained HTML page."""

import base64
import hashlib
import os
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cavity.report.analysis import Analysis
from cavity.report.sections import SECTIONS, strip
from cavity.storage import replacing
from cavity.tables.output import plain

_MOST_SUSPECTS = 1000
"""In the numbers that come with a page; `cavity report --suspects FILE` writes all."""
_SNIPPET = "window.vegaEmbed = vegaEmbed;"
_ENVIRONMENT = Environment(
    loader=PackageLoader("cavity.report"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
# Compact numbers keep the page small.
_ENVIRONMENT.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}


def render(analysis: Analysis) -> str:
    """Return an HTML page that needs no other file and no network.

    Its charts are drawn by Vega, whose code is part of the page. The page's content policy
    allows no other script to run and nothing to be fetched.
    """
    scripts = [_bundle(), _own("page.js")]
    return _ENVIRONMENT.get_template("page.html.j2").render(
        a=analysis,
        numbers=plain(replace(analysis, suspects=analysis.suspects[:_MOST_SUSPECTS])),
        big=strip(analysis),
        sections=[found for section in SECTIONS if (found := section(analysis))],
        style=Markup(_own("style.css")),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
    )


def _own(name: str) -> str:
    return (files("cavity.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script that can be put into a page.

    To put them together takes a second: the script is kept in the user's folder for such files,
    behind its own digest.
    """
    path = _kept()
    with suppress(OSError, ValueError):
        digest, text = path.read_text(encoding="utf-8").split("\n", 1)
        if digest == hashlib.sha256(text.encode()).hexdigest():
            return text
    # Its import takes long, too.
    import vl_convert

    text = str(vl_convert.javascript_bundle(_SNIPPET)).replace("</script", "<\\/script")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as beside:
            digest = hashlib.sha256(text.encode()).hexdigest()
            beside.write_text(f"{digest}\n{text}", encoding="utf-8")
    return text


def _kept() -> Path:
    """Return where the script of this version is kept."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder) / "cavity" / f"vega-{version('vl-convert-python')}.js"


def _policy(scripts: list[str]) -> str:
    """Return a content policy that allows these scripts and inline styles, and nothing else."""
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
