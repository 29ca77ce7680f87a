"""The report as one self-contained page."""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cavity.report.analysis import Analysis
from cavity.report.sections import SECTIONS, strip
from cavity.tables.plain import to_json

__all__ = ["render"]

Json = dict[str, Any]
_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def render(analysis: Analysis) -> str:
    """Return an HTML page that needs nothing but itself.

    Its charts come from Vega, whose code is written into the page. The page's own policy lets no
    other script run and nothing be fetched.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    str

    Examples
    --------
    >>> from cavity.report.analysis import analyse
    >>> from cavity.tables.model import Settings
    >>> from cavity.report.page import render
    >>> from cavity.tables.prepare import prepare
    >>> from cavity.tables.read import read_table
    >>> page = render(analyse(prepare(read_table("crabs")), Settings("rbf")))
    >>> page.startswith("<!doctype html>"), len(page) < 3_000_000
    (True, True)
    """
    a: Json = json.loads(to_json(analysis))
    scripts = [_bundle(), _own("page.js")]
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            a=a,
            big=strip(a),
            sections=[section(a) for section in SECTIONS],
            style=Markup(_own("style.css")),
            scripts=[Markup(script) for script in scripts],
            policy=_policy(scripts),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("cavity.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    # Readers of the page look at the numbers; a compact form keeps it small.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _own(name: str) -> str:
    return (files("cavity.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed in one script that may stand inside a page."""
    return str(vl_convert.javascript_bundle(_SNIPPET)).replace("</script", "<\\/script")


def _policy(scripts: list[str]) -> str:
    """Return a content policy: these scripts, inline styles, and nothing from anywhere."""
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
