"""What one adds in one file is covered by the contract tests, none of which is edited."""

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# How the tests name each module's newcomer, and how many shall cover it at least.
TOYS = {
    "counts": ("toy_counts", 20),
    "slope": ("ToySlope", 1),
    "one_step": ("toy_one_step", 30),
    "independent": ("toy_independent", 1),
    "folder": ("toy_folder", 1),
}
FILES = ["test_likelihoods", "test_inference", "test_kernels", "test_gradients", "test_inducing"]
# Each newcomer with what is there already, not with another newcomer; and counts by quadrature
# alone: on the strict arrays that takes as long as all the rest.
WANTED = (
    "(toy_counts and not (strict or toy_one_step or test_gradients))"
    " or (toy_one_step and not toy_counts) or ToySlope"
    " or (toy_independent and not toy_folder) or (toy_folder and not toy_independent)"
)


def test_contracts_cover_newcomers():
    """Loaded as plugins of the tests, modules that register something find themselves tested."""
    # One process for all: most of the time of five would be spent on importing the same libraries.
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider"]
    command += ["-p", "no:xdist", "-k", WANTED, *(f"{HERE / name}.py" for name in FILES)]
    command += [argument for module in TOYS for argument in ("-p", f"toys.{module}")]
    places = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    ran = subprocess.run(
        command, cwd=HERE.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    passed = re.findall(r"^PASSED (.+)$", ran.stdout, re.M)
    for module, (name, least) in TOYS.items():
        assert sum(name in test for test in passed) >= least, module
