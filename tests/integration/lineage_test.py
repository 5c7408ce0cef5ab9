#!/usr/bin/env python3
"""Tests of the lineage checker: a good record passes, and each damage is named."""
import os
import subprocess
import sys
import tempfile

LINEAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lineage.py")

# Two epochs of six samples. a and b begin; step 1 of generation 1 is computed by both, b dies in it
# after the reduction; a commits it. c joins in generation 4; step 3 fails there, is repeated in 5.
GOOD = {
    "a": ["computed 0 1 0 0 2 4 5 0", "applied 0 1 0 0 2 4 5 0", "computed 1 1 0 0 2 2 2",
          "applied 1 1 0 0 2 2 2", "computed 2 3 1 0 1 2 4 1", "applied 2 3 1 0 1 2 4 1",
          "computed 3 4 1 0 2 4 0 2", "computed 3 5 1 0 2 4 0 2", "applied 3 5 1 0 2 4 0 2",
          "finished 4 5 00ff"],
    "b": ["computed 0 1 0 1 2 4 1 3", "applied 0 1 0 1 2 4 1 3", "computed 1 1 0 1 2 2 4",
          "applied 1 1 0"],
    "c": ["computed 3 4 1 1 2 4 3", "computed 3 4 1 1 2 4 5", "computed 3 5 1 1 2 4 3",
          "computed 3 5 1 1 2 4 5", "applied 3 5 1 1 2 4 3 5", "finished 4 5 00ff"],
}

# what: (file, {line: its new text, or None to drop it}, words of the violation, or None for none)
DAMAGE = {
    "other samples committed": ("a", {4: "computed 2 3 1 0 1 2 4 2"}, "committed other samples"),
    "a sample twice": ("b", {2: "computed 1 1 0 1 2 2 5"}, "sample 5 is used for the second"),
    "a share is missing": ("b", {2: None}, "1 samples were computed of a global batch of 2"),
    "a step is missing": ("a", {4: None, 5: None}, "step 2 was never committed"),
    "a rank twice": ("c", {2: "computed 3 5 1 0 2 4 3"}, "two processes"),
    "ranks disagree on the size": ("c", {2: "computed 3 5 1 1 3 4 3"}, "inside the step"),
    "a rank outside its world": ("c", {2: "computed 3 5 1 2 2 4 3"}, "no such rank"),
    "an epoch is skipped": ("a", {4: "computed 2 3 2 0 1 2 4 1", 5: "applied 2 3 2 0 1 2 4 1"},
                            "epoch 2 follows epoch 0"),
    "a commit twice": ("a", {5: "applied 2 3 1 0 1 2 4 1\napplied 2 4 1 0 1 2"},
                       "has committed this step before"),
    "back in time": ("a", {5: "applied 2 3 1 0 1 2 4 1\ncomputed 2 2 1 0 1 2"}, "went backwards"),
    "other weights at the end": ("c", {5: "finished 4 5 00fe"}, "different weights"),
    "more steps at the end": ("c", {5: "finished 5 5 00ff"}, "the final world says 5"),
    "more after the end": ("a", {9: "finished 4 5 00ff\ncomputed 4 5 1 0 2 4 0"},
                           "goes on after its end"),
    "a commit is undone under a living worker": (
        "c", {1: "computed 3 4 1 1 2 4 5\napplied 3 4 1 1 2 4 3 5", 4: None}, "which lives on"),
    "killed before its end": ("c", {4: None, 5: None}, None),
    "died after a commit that was lost with it": (
        "d", {0: "computed 3 2 1 0 1 4 0", 1: "applied 3 2 1 0 1 4 0"}, None),
}


def run(files, *more):
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in files.items():
            # The last line of b is cut off, as by a kill: it must be ignored.
            end = "" if name == "b" else "\n"
            with open(os.path.join(folder, f"r.host.{ord(name)}"), "w", encoding="ascii") as file:
                file.write("\n".join(lines) + end)
        done = subprocess.run([sys.executable, LINEAGE, os.path.join(folder, "r"), *more],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


def damaged(name, edits):
    files = {key: list(lines) for key, lines in GOOD.items()}
    lines = dict(enumerate(files.get(name, []))) | edits
    files[name] = [lines[number] for number in sorted(lines) if lines[number] is not None]
    return files


def main():
    failures = []
    code, text = run(GOOD, "--samples", "6", "--epochs", "2")
    if code != 0 or "4 steps in 2 epochs of 6 samples" not in text or "1 discarded" not in text:
        failures.append(f"a good record: exit {code}: {text}")
    for options, words in ((["--samples", "7"], "were not used"), (["--epochs", "3"], "3 epochs"),
                           (["--samples", "5"], "there is no sample 5")):
        code, text = run(GOOD, *options)
        if code != 1 or words not in text:
            failures.append(f"{options}: exit {code}: {text}")
    for what, (name, edits, words) in DAMAGE.items():
        code, text = run(damaged(name, edits))
        if code != (1 if words else 0) or (words and words not in text):
            failures.append(f"{what}: exit {code}: {text}")
    print("\n".join(failures) or f"{len(DAMAGE) + 4} records judged as they should be")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
