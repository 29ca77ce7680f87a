"""Put 200 small faults into the core, one by one, and see whether the tests notice.

    python -m benchmarks.mutants [--count N] [--seed S] [--jobs J] [--only TEXT] [--quick]

writes results/mutants.json after each fault, and results/mutants.md. A run that was cut short goes
on where it stopped. Faults that no test noticed are listed with the reason that is given for them
in benchmarks/mutants/reasons.json, if there is one.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mutants.faults import Fault, faults
from benchmarks.tables import markdown

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "mutants.json"
REASONS = Path(__file__).with_name("reasons.json")
SECONDS = 420.0
"""After this long a fault counts as noticed: a loop has no end."""
_COMMON = "golden frozen pima gradients oracle limits"
ROOMS: dict[str, tuple[float, str]] = {
    "likelihoods": (
        0.22,
        "likelihoods likelihood_moments likelihood_extremes further_likelihoods multinomial "
        "targets further_targets parameters",
    ),
    "sites.py": (0.05, "sites inference limits"),
    "priors": (
        0.18,
        "priors inducing multinomial multinomial_classifier class_draws class_inducing large "
        "input_gradients prediction",
    ),
    "inference": (
        0.2,
        "inference limits sites hard_inputs krylov inducing multinomial sample_weight "
        "heavy_weights",
    ),
    "evidence": (0.15, "tuning hyperpriors leave_one_out auto inducing multinomial_classifier"),
    "resampling": (
        0.15,
        "curves class_curves target_curves block_curves groups pairs repeats scores known_curves "
        "price",
    ),
    "storage": (0.05, "storage stored tampered writing"),
}
"""The share of the faults that each room gets, and the tests that look at it first."""


def chosen(count: int, seed: int) -> list[tuple[str, Fault]]:
    """Return so many faults of the core, drawn at random from each room."""
    rng, found = np.random.default_rng(seed), []
    for room, (share, _) in ROOMS.items():
        base = ROOT / "src" / "cavity" / room
        files = [base] if base.is_file() else sorted(base.rglob("*.py"))
        names = [str(path.relative_to(ROOT)) for path in files]
        every = [(n, f) for n in names for f in faults((ROOT / n).read_text(encoding="utf-8"))]
        picked = rng.choice(len(every), min(round(share * count), len(every)), replace=False)
        found += [every[k] for k in sorted(picked)]
    return found


def those_for(name: str) -> list[str]:
    """Return the tests to run for a file, those of its room first, and its own examples."""
    room = name.removeprefix("src/cavity/").split("/")[0]
    first = ROOMS[room][1].split()
    order = [name, *(f"tests/test_{each}.py" for each in dict.fromkeys([*first, *_COMMON.split()]))]
    return [each for each in order if (ROOT / each).exists()]


def noticed(name: str, fault: Fault) -> dict[str, Any]:
    """Run the tests with one fault, in a copy of the sources; return what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        for each in ("tests", "benchmarks", "pyproject.toml", "docs", "README.md"):
            (copy / each).symlink_to(ROOT / each)
        target = copy / name
        target.write_text(fault.into(target.read_text(encoding="utf-8")), encoding="utf-8")
        threads = dict.fromkeys(("OMP", "OPENBLAS", "MKL"), "1")
        environment = os.environ | {f"{key}_NUM_THREADS": one for key, one in threads.items()}
        environment |= {"PYTHONPATH": f"{copy / 'src'}:{copy}", "PYTHONDONTWRITEBYTECODE": "1"}
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no"]
        command = [sys.executable, "-m", "pytest", *options, *those_for(name)]
        try:
            done = subprocess.run(
                command,
                cwd=copy,
                env=environment,
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"noticed": True, "by": "no end"}
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {
        "noticed": done.returncode != 0,
        "by": failed[0][:120] if failed else done.stdout[-120:],
    }


def key(name: str, fault: Fault) -> str:
    """Return what a fault is called."""
    text = (ROOT / name).read_text(encoding="utf-8").splitlines()[fault.line - 1].strip()
    return f"{name.removeprefix('src/cavity/')}: {fault.old!r} -> {fault.new!r} in {text!r}"


def page(found: dict[str, Any]) -> str:
    """Return how many were noticed in each room, and those that were not."""
    reasons = json.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    rows = []
    for room in ROOMS:
        own = [v["noticed"] for k, v in found.items() if k.startswith(room.removesuffix(".py"))]
        if own:
            rows.append([room, str(len(own)), str(sum(own)), f"{np.mean(own):.0%}"])
    every = [value["noticed"] for value in found.values()]
    rows.append(["all", str(len(every)), str(sum(every)), f"{np.mean(every):.1%}"])
    left = [[k, reasons.get(k, "")] for k, value in found.items() if not value["noticed"]]
    lines = [f"- `{name}`" + (f": {why}" if why else "") for name, why in left]
    parts = [
        "# Faults that the tests notice",
        "Each fault changes one operator, number, sign, condition or function of the core; by "
        "`python -m benchmarks.mutants`.",
        markdown(["room", "faults", "noticed", "share"], rows),
        "Not noticed:",
        "\n".join(lines) or "None.",
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Go through the faults, and write down which were noticed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="faults whose name contains this, again")
    parser.add_argument("--quick", action="store_true", help="fourteen faults; nothing is written")
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if options.quick:
        found = {}
    faulty = {
        key(*one): one for one in chosen(14 if options.quick else options.count, options.seed)
    }
    again = {k: v for k, v in faulty.items() if options.only and options.only in k}
    todo = again or {k: v for k, v in faulty.items() if k not in found}

    def run(name: str) -> None:
        found[name] = noticed(*todo[name])
        print("noticed" if found[name]["noticed"] else "MISSED ", name, flush=True)
        if not options.quick:
            RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, todo))
    text = page({k: found[k] for k in faulty if k in found})
    if not options.quick:
        RESULTS.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
