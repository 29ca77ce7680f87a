"""What several files of tests share: written pages, and a browser to open them."""

import shutil

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def pages(tmp_path_factory):
    """Write each page once; Pima's by the command itself."""
    # What the command needs may not be installed.
    from browser import page_of

    from cavity.cli import main

    folder, written = tmp_path_factory.mktemp("pages"), {}

    def page(name):
        if name not in written:
            path = folder / f"{name}.html"
            if name == "pima":
                assert main(["report", "pima", "--quiet", "-o", str(path)]) == 0
            else:
                path.write_text(page_of(name), encoding="utf-8")
            written[name] = path
        return written[name]

    return page


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Start Chromium."""
    for name in ("chromium", "chromedriver"):
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
    webdriver = pytest.importorskip("selenium.webdriver")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=service.Service(shutil.which("chromedriver")))
    yield found
    found.quit()
