#!/usr/bin/env python3
"""Plants one mistake at a time in a copy of the cores; the simulator must catch each.

Every invariant has a mutation that breaks it. A rule that no mutation can break checks nothing, and
a mutation that nothing catches shows a hole. Each runs in a copy of the tree, built beside it.

    tests/sim/mutations.py [--build-dir DIR] [--seeds 1000] [--only WORD]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["CMakeLists.txt", "src", "launcher", "rendezvous", "worker", "scripts", "tests/sim"]


class Mutation(NamedTuple):
    """What is planted: `new` in place of `old`, which stands once in `file`."""

    rule: str
    file: str
    old: str
    new: str


MUTATIONS = [
    Mutation("generations only grow", "rendezvous/membership.cpp",
             "  last_ = last_.next();\n  Forming forming;",
             "  if (last_.value != 2) last_ = last_.next();\n  Forming forming;"),
    Mutation("one rank each", "rendezvous/membership.cpp",
             "if (is_training(worker) && !is_member(worker)) {",
             "if (is_training(worker)) {"),
]


def planted(mutation: Mutation, tree: Path) -> str:
    """Changes the file and returns what it was."""
    path = tree / mutation.file
    text = path.read_text()
    if text.count(mutation.old) != 1:
        sys.exit(f"{mutation.file}: '{mutation.old.strip()}' does not stand there once; "
                 f"the mutation for '{mutation.rule}' must follow the code")
    path.write_text(text.replace(mutation.old, mutation.new))
    return text


def build(folder: Path) -> bool:
    """Builds the simulator alone; what it printed is shown when that fails."""
    done = subprocess.run(["cmake", "--build", folder, "--target", "simulate"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stdout[-3000:])
    return done.returncode == 0


def broken_rules(folder: Path, seeds: int) -> dict[str, int]:
    """The rules that broke over the seeds, with how often."""
    done = subprocess.run([folder / "bin" / "simulate", "--rules", "1", str(seeds)],
                          capture_output=True, text=True, check=False, timeout=1200)
    rules = {}
    for line in done.stdout.splitlines()[:-1]:
        name, count = line.rsplit(": ", 1)
        rules[name] = int(count)
    if done.returncode not in (0, 1):  # the mutation ran into a check of the cores
        rules[f"the simulator ended with {done.returncode}"] = 1
    return rules


def copy_tree(target: Path) -> None:
    """The sources the simulator is built from."""
    for name in SOURCES:
        source = ROOT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        copy(source, target / name)
    (target / "tests" / "CMakeLists.txt").write_text("add_subdirectory(sim)\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="elasticrun-mutations-") as place:
        tree, folder = Path(place) / "tree", Path(place) / "build"
        copy_tree(tree)
        subprocess.run(["cmake", "-S", tree, "-B", folder, "-G", "Ninja"], check=True,
                       stdout=subprocess.DEVNULL)
        for mutation in MUTATIONS:
            if options.only not in mutation.rule:
                continue
            text = planted(mutation, tree)
            if not build(folder):
                return 1
            rules = broken_rules(folder, options.seeds)
            (tree / mutation.file).write_text(text)
            caught = mutation.rule in rules
            missed += not caught
            print(f"{'caught' if caught else 'MISSED'}  {mutation.rule}: {rules}", flush=True)
    print(f"{missed} of {len(MUTATIONS)} mutations missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
