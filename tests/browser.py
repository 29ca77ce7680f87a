"""Pages of reports, how to open them in a browser, and what to look for."""

import base64
import json
import re

import numpy as np
import polars as pl

from cavity.report.analysis import analyse
from cavity.report.page import render
from cavity.tables.model import Settings
from cavity.tables.prepare import prepare
from cavity.tables.read import Table, read_table

WIDTHS = {"wide": 1280, "phone": 390}
# What a spreadsheet may hold, and a page must not obey.
NASTY = "<script>document.title='owned'</script>\"'&{{7*7}}</script> ✓ é"
# One length scale is tuned in a tenth of the time that thirty take.
QUICK = Settings("rbf")
ROWS = 80
NAMES = ("breast_cancer", "wine", "boston", "insurance", "arthritis", "outliers", "small", "nasty")


def small_table(name="few.csv", label="yes", column="x"):
    rng = np.random.default_rng(3)
    x = rng.normal(size=20)
    classes = np.where(x + rng.normal(size=20) > 0, label, "no")
    frame = pl.DataFrame({column: x, "colour": ["red", "blue"] * 10, "target": classes})
    return Table(frame, name, "target")


def table_of(name):
    if name == "small":
        return small_table()
    if name == "nasty":
        return small_table(NASTY, NASTY, NASTY)
    return read_table(name)


def page_of(name):
    return render(analyse(prepare(table_of(name), max_rows=ROWS), QUICK, command="cavity"))


def show(driver, path, scheme="light", width="wide"):
    """Open a page, wait for its charts, and return what it asked for besides itself."""
    from selenium.webdriver.support.ui import WebDriverWait

    scheme = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": WIDTHS[width], "height": 900, "deviceScaleFactor": 1}
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**size, "mobile": width == "phone"}
    )
    driver.get_log("browser"), driver.get_log("performance")
    driver.get(path.as_uri())
    drawn = "return document.documentElement.hasAttribute('data-drawn')"
    WebDriverWait(driver, 20).until(lambda d: d.execute_script(drawn))
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [p["request"]["url"] for p in sent if p["request"]["url"] != path.as_uri()]


def keep(driver, request, name):
    folder = request.config.rootpath / "tests" / "screenshots"
    folder.mkdir(exist_ok=True)
    taken = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True})
    (folder / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


def charts_without_marks(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('.chart')].filter(c => !c.querySelector("
        "'svg .mark-symbol path, svg .mark-rect path, svg .mark-line path')).map(c => c.id)"
    )


def numbers_of(path):
    text = path.read_text("utf-8")
    return json.loads(re.search(r'id="numbers">(.*?)</script>', text, re.S)[1])


def check_whole(driver, path, **look):
    assert show(driver, path, **look) == []
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.querySelectorAll('.chart').length") >= 6
    assert charts_without_marks(driver) == []
    wide, room = driver.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert wide <= room
