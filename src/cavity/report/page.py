"""The report as one self-contained HTML page."""

import base64
import hashlib
from dataclasses import replace
from functools import cache
from importlib.resources import files

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cavity.report.analysis import Analysis
from cavity.report.sections import SECTIONS, strip
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
    """Return Vega, Vega-Lite and Vega-Embed as one script that can be put into a page."""
    return str(vl_convert.javascript_bundle(_SNIPPET)).replace("</script", "<\\/script")


def _policy(scripts: list[str]) -> str:
    """Return a content policy that allows these scripts and inline styles, and nothing else."""
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
