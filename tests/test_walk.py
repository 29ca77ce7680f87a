"""From a public function to the first factorisation it is a short walk."""

import re
import sys
from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import cavity
from cavity import GaussianProcessClassifier, learning_curve

ROOT = str(Path(cavity.__file__).parent)


def walk(call):
    """Functions of this package on the way from a call to its first Cholesky factorisation."""
    ways = []

    def look(frame, event, _):
        if event != "call" or frame.f_code.co_name != "cholesky" or ways:
            return
        way = []
        while frame is not None:
            if frame.f_code.co_filename.startswith(ROOT):
                way.insert(0, f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")
            frame = frame.f_back
        ways.append(way)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(before)
    return ways[0]


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    return X, X[:, 0] + rng.standard_normal(40) > 0.3


def as_written(call):
    """The walk that the page about the architecture describes from this function on."""
    page = Path(__file__).parents[1] / "docs" / "architecture.md"
    [block] = re.findall(rf"^```text\n({call}\b.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    return [line.split()[0] for line in block.splitlines()]


def test_learning_curve():
    """From `learning_curve` to the first factorisation there are at most ten functions."""
    X, y = data()
    clf = GaussianProcessClassifier(1.0 * RBF(1.0), optimizer=None).fit(X, y)
    way = walk(lambda: learning_curve(clf, X, y, train_sizes=[10, 20]))
    assert way[0] == "learning.learning_curve"
    assert len(way) <= 10, " -> ".join(way)
    assert way == as_written("learning.learning_curve")


def test_fit():
    """From `fit` to the first factorisation there are at most sixteen functions."""
    X, y = data()
    way = walk(lambda: GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, y))
    assert way[0] == "classifier.fit"
    assert len(way) <= 16, " -> ".join(way)
    assert way == as_written("classifier.fit")
