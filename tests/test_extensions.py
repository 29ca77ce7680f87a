"""What one adds in one file is covered by the contract tests, none of which is edited."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The module, the tests that shall cover it, how they name it, and how many of them at least.
TOYS = [
    # By quadrature alone: on the strict arrays that takes as long as all the rest.
    ("counts", ["test_likelihoods.py", "test_inference.py"], "toy_counts and not strict", 30),
    ("slope", ["test_kernels.py"], "ToySlope", 1),
    ("one_step", ["test_inference.py", "test_gradients.py"], "toy_one_step", 30),
    ("independent", ["test_inducing.py"], "toy_independent", 1),
    ("folder", ["test_inducing.py"], "toy_folder", 1),
]


@pytest.mark.parametrize(("module", "files", "name", "least"), TOYS, ids=[toy[0] for toy in TOYS])
def test_contracts_cover_a_newcomer(module, files, name, least):
    """Loaded as a plugin of the tests, a module that registers something finds itself tested."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-p", f"toys.{module}", "-k", name, *(str(HERE / file) for file in files)]
    places = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    ran = subprocess.run(
        command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed, ran.stdout
    assert int(passed[1]) >= least, ran.stdout
