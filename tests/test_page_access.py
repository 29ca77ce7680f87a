"""A report on paper, and for readers who do not see it."""

import base64
import re
import shutil
import subprocess

import pytest
from browser import QUICK, show

from cavity.report.analysis import analyse
from cavity.report.page import render
from cavity.tables.prepare import prepare
from cavity.tables.read import read_table

TABLES = ("pima", "wine", "boston", "nasty")
# Contrast as in the Web Content Accessibility Guidelines, of each text with what is behind it.
CONTRAST = r"""
const channel = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function over(colors) {
  canvas.clearRect(0, 0, 1, 1);
  for (const color of colors) { canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((c) => c / 255);
}
const behind = (e) => (e ? [...behind(e.parentElement), getComputedStyle(e).backgroundColor] : []);
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const e = node.parentElement, style = getComputedStyle(e);
  if (!node.textContent.trim() || e.closest("script, style") || !e.checkVisibility()) continue;
  const inside = e.closest("svg") ? style.fill : style.color;
  const [a, b] = [light(over([...behind(e), inside])), light(over(behind(e)))];
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.outerHTML.slice(0, 120)]);
}
return found;
"""
MARKS = r"""
return [...document.querySelectorAll(".chart svg .mark-line path, .chart svg .mark-rect path")]
  .map((e) => getComputedStyle(e)).flatMap((s) => [s.stroke, s.fill])
  .filter((c) => /^rgb\(/.test(c));
"""


def luminance(colour):
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", TABLES)
def test_text_has_contrast(driver, pages, name, scheme):
    """Every text, also in charts, has a contrast of at least 4.5 with what is behind it."""
    show(driver, pages(name), scheme=scheme)
    found = driver.execute_script(CONTRAST)
    assert len(found) > 200
    assert not [line for line in found if line[0] < 4.5]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_bars_have_contrast(driver, pages, scheme):
    """Lines and bars of charts have a contrast of at least 3 with the page."""
    show(driver, pages("pima"), scheme=scheme)
    paper = "return getComputedStyle(document.body).backgroundColor"
    background = luminance(driver.execute_script(paper))
    # Bars are drawn with a thin line of the page's own colour between them.
    colours = {c for c in driver.execute_script(MARKS) if luminance(c) != background}
    assert len(colours) >= 2
    for colour in colours:
        ends = sorted([luminance(colour), background])
        assert (ends[1] + 0.05) / (ends[0] + 0.05) >= 3.0, colour


@pytest.mark.parametrize("name", TABLES)
def test_a_screen_reader_finds_names_and_tables(driver, pages, name):
    """One h1, ids once, captions, scopes of heads, named controls, a table for each chart."""
    show(driver, pages(name))
    wrong = driver.execute_script(
        """
        const all = (what) => [...document.querySelectorAll(what)];
        const ids = all("[id]").map((e) => e.id);
        const name = (e) => e.labels?.length || e.ariaLabel || e.textContent.trim();
        return {
          h1: all("h1").length - 1,
          language: document.documentElement.lang === "en" ? [] : ["lang"],
          ids: ids.filter((id, k) => ids.indexOf(id) !== k),
          captions: all("table").filter((t) => !t.caption?.textContent.trim()).map((t) => t.id),
          heads: all("th:not([scope])").map((e) => e.outerHTML),
          charts: all(".chart").filter((c) => c.role !== "img" || c.ariaLabel.length < 20),
          tables: all(".chart").filter((c) => !c.closest("section").querySelector("table"))
            .map((c) => c.id),
          controls: all("input, select, button, summary").filter((e) => !name(e))
            .map((e) => e.outerHTML),
          sections: all("main section").filter((s) => !s.querySelector("h2")).map((s) => s.id),
        };
        """
    )
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("name", ["pima", "boston"])
def test_the_table_behind_a_chart_has_its_numbers(driver, pages, name):
    """A closed table behind a chart opens, and has a row for each point of the chart's data."""
    show(driver, pages(name))
    found = driver.execute_script(
        """
        return [...document.querySelectorAll("figure:has(details)")].map((figure) => {
          const spec = JSON.parse(figure.querySelector("script").textContent);
          const counts = spec.layer.map((layer) => layer.data.values.length);
          const table = figure.querySelector("details table");
          figure.querySelector("summary").click();
          return [table.tBodies[0].rows.length, Math.max(...counts), table.checkVisibility()];
        });
        """
    )
    assert len(found) >= 6
    for rows, points, visible in found:
        assert visible
        assert rows == points


def printed(driver, path, folder, scheme="light"):
    """Return the path of a PDF of the page."""
    show(driver, path, scheme=scheme)
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    pdf = folder / "page.pdf"
    made = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": False})
    pdf.write_bytes(base64.b64decode(made["data"]))
    return pdf


@pytest.fixture(scope="session")
def poppler():
    for name in ("pdftotext", "pdftoppm"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("name", TABLES)
def test_paper_has_the_answers_and_no_controls(driver, pages, poppler, tmp_path, name):
    """Each headline is whole on one page, tables are not cut, and nothing asks to be clicked."""
    pdf = printed(driver, pages(name), tmp_path)
    done = subprocess.run(["pdftotext", "-layout", pdf, "-"], capture_output=True, check=True)
    leaves = [re.sub(r"\s+", "", leaf) for leaf in done.stdout.decode().split("\f")]
    assert len(leaves) <= 20
    for headline in driver.find_elements("class name", "headline"):
        text = re.sub(r"\s+", "", headline.text)
        assert any(text in leaf for leaf in leaves), headline.text
    whole = "".join(leaves)
    for text in ("Usethecheapest", "Tableofthischart", "Skiptotheanswers", "↕"):
        assert text not in whole
    assert "loglossaboveours" in whole


def test_a_dark_page_is_printed_light(driver, pages, poppler, tmp_path):
    """Paper is white, whatever the screen."""
    pdf = printed(driver, pages("pima"), tmp_path, scheme="dark")
    driver.execute_script("document.documentElement.dataset.theme = 'dark'")
    command = ["pdftoppm", "-r", "20", "-f", "1", "-l", "1", "-gray", pdf]
    picture = subprocess.run(command, capture_output=True, check=True).stdout
    pixels = picture[-165 * 200 :]
    assert sum(pixel > 200 for pixel in pixels) > 0.7 * len(pixels)
    assert pixels[0] > 250


def test_what_checks_mean_is_on_paper(driver, pages, poppler, tmp_path):
    """Paper cannot be clicked: the meaning of each code that has found something is written out."""
    pdf = printed(driver, pages("nasty"), tmp_path)
    text = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, check=True).stdout.decode()
    assert "the columns say nothing about the target" in re.sub(r"\s+", " ", text)


def test_the_largest_shipped_table_has_a_small_page():
    """All rows of abalone, of which 2,000 are drawn: less than a megabyte and a half."""
    data = prepare(read_table("abalone"))
    settings = QUICK.__class__("rbf", inducing=20)
    page = render(analyse(data, settings, skip=["baselines"]))
    assert len(data.y) > 4000
    assert len(page.encode()) < 1_500_000
