"""Nothing that a table, a name or a command holds acts in a report page, in a real browser."""

import http.server
import re
import threading
from dataclasses import fields, is_dataclass, replace

import numpy as np
import polars as pl
import pytest
from browser import QUICK, numbers_of, show

from cavity.report.analysis import analyse
from cavity.report.page import render
from cavity.tables.prepare import prepare
from cavity.tables.read import Table

PAYLOADS = {
    "script": "<script>window.owned=1</script>",
    "end of a script": "</script><script>window.owned=1</script>",
    "comment": "<!--<script>window.owned=1</script>-->",
    "event": "\"'><img src=x onerror=window.owned=1><svg onload=window.owned=1>",
    "attribute": '" autofocus onfocus="window.owned=1" x="',
    "address": '<a href="javascript:window.owned=1">x</a><iframe src="javascript:window.owned=1">',
    "style": "</style><style>*{background:url(//127.0.0.1/x)}</style>",
    "template": "{{7*7}}{% for x in y %}${window.owned=1}",
    "expression": "datum['constructor'].constructor('window.owned=1')()",
    "lines": "a\u2028window.owned=1\u2029\x00\x1b[2J",
}
FOREIGN = "[onerror],[onload],[onfocus],[onclick],iframe,img,object,embed,base,link,a[href^='java']"
WORD = re.compile(r"[\w.:+-]{0,30}")
"""What may be a name that the page decides by, and is left as it is."""


def table(text):
    rng = np.random.default_rng(3)
    x = rng.normal(size=24)
    labels = np.where(x + rng.normal(size=24) > 0, f"yes {text}", f"no {text}")
    colour = np.where(np.arange(24) % 2, f"red {text}", "blue")
    columns = {f"x {text}": x, f"colour {text}": colour, f"target {text}": labels}
    return Table(pl.DataFrame(columns), f"few {text}.csv", f"target {text}")


def injected(value, text):
    """Put the text behind every sentence of an analysis, wherever it is."""
    if is_dataclass(value):
        parts = {f.name: injected(getattr(value, f.name), text) for f in fields(value)}
        return replace(value, **parts)
    if isinstance(value, dict):
        return {key: injected(item, text) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(injected(item, text) for item in value)
    return f"{value} {text}" if isinstance(value, str) and not WORD.fullmatch(value) else value


@pytest.fixture(scope="module")
def analysis():
    return analyse(prepare(table("plain")), QUICK, command="cavity report 'few plain.csv'")


def check_inert(driver, path):
    """Require a page that is drawn, and in which nothing but its own two scripts is active."""
    assert show(driver, path) == []
    assert driver.get_log("browser") == []
    assert driver.execute_script("return window.owned === undefined")
    assert (
        driver.execute_script("return document.querySelectorAll('script:not([type])').length") == 2
    )
    assert driver.execute_script("return document.querySelectorAll('style').length") <= 3
    find = "return [...document.querySelectorAll(arguments[0])].map(e => e.outerHTML)"
    assert driver.execute_script(find, FOREIGN) == []
    assert "cavity" in driver.title


@pytest.mark.parametrize("names", [[n for n in PAYLOADS if n != "lines"], ["lines"]], ids=len)
def test_what_a_table_holds_is_text(driver, tmp_path, names):
    """File, columns, categories and labels with payloads: shown, and nothing else."""
    text = " ".join(PAYLOADS[name] for name in names)
    found = analyse(prepare(table(text)), QUICK, command=f"cavity {text}")
    path = tmp_path / "page.html"
    path.write_text(render(found), encoding="utf-8")
    check_inert(driver, path)
    assert text in numbers_of(path)["data"]["feature_names"][0] or names == ["lines"]


@pytest.mark.parametrize("name", PAYLOADS)
def test_every_sentence_of_a_report_is_text(driver, tmp_path, analysis, name):
    """Notes, warnings, kernels, checks and whatever else a report says: text, wherever it goes."""
    path = tmp_path / "page.html"
    whole = injected(analysis, PAYLOADS[name])
    path.write_text(render(whole), encoding="utf-8")
    assert path.read_bytes().count(b"owned") > 10 or name in ("style",)
    check_inert(driver, path)


class Counter(http.server.BaseHTTPRequestHandler):
    """Counts who asks."""

    asked: list[str] = []  # noqa: RUF012

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def test_the_policy_holds_where_the_template_would_not(driver, tmp_path, analysis):
    """Scripts, handlers and addresses written into the page itself neither run nor fetch."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        there = f"http://127.0.0.1:{server.server_port}/"
        evil = (
            "<script>window.owned=1</script><img src=x onerror=window.owned=1>"
            f"<img src='{there}img'><script src='{there}js'></script>"
            f"<link rel=stylesheet href='{there}css'><iframe src='{there}frame'></iframe>"
            f"<object data='{there}object'></object><base href='{there}'>"
        )
        text = render(analysis)
        assert text.index("Content-Security-Policy") < text.index("<style>")
        path = tmp_path / "page.html"
        path.write_text(text.replace("<header>", evil + "<header>", 1), encoding="utf-8")
        show(driver, path)
        assert driver.execute_script("return window.owned === undefined")
        fetched = driver.execute_async_script(
            "const done = arguments[1];"
            "fetch(arguments[0]).then(() => done('fetched'), () => done('refused'))",
            there + "fetch",
        )
        refused = [entry["message"] for entry in driver.get_log("browser")]
        server.shutdown()
    assert fetched == "refused"
    assert Counter.asked == []
    # Each of them is reported by the browser.
    assert sum("Content Security Policy" in message for message in refused) >= 5
