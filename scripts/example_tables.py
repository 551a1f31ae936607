#!/usr/bin/env python3
"""Writes the table of examples in scenarios/README.md: what each scenario asks, what it asserts, and what comes of it.

    scripts/example_tables.py            says whether the table is as it would be written; exit status 1 if not
    scripts/example_tables.py --write    shows it and asks whether to write it, between the two comments that mark its place;
                                         --write --yes does not ask

The program is $FORETRACE, or build/foretrace."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

import keep

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FORETRACE", str(ROOT / "build" / "foretrace"))
FOLDER = ROOT / "scenarios"
BEGIN, END = "<!-- examples: written by scripts/example_tables.py -->", "<!-- end of examples -->"


def milliseconds(nanoseconds):
    return f"{nanoseconds / 1e6:.4g} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.4g} s"


def change(before, after):
    return before if before == after else f"{before} -> {after}"


def peak(side):
    levels = [device["peak_allocated_bytes"] for device in side["memory"] if device["device"] >= 0]
    return f"{max(levels) / 1e9:.4g} GB" if levels else ""


def demands(scenario):
    return ", ".join(f"`{name} {demand}`" for one in scenario.get("assert", []) for name, demand in one.items() if name != "$comment")


def row(path):
    scenario = json.loads(path.read_text())
    command = [PROGRAM, "predict", "--scenario", str(path), "--format", "json", "--no-cache", "--quiet"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1, 4):  # Whether assertions hold is for the tests to say.
        raise SystemExit(f"{path.name}: {ran.stderr.strip()}")
    answer = json.loads(ran.stdout)
    before, after = answer["baseline"], answer["predicted"]
    times = change(milliseconds(before["step_time_ns"]), milliseconds(after["step_time_ns"]))
    return f"| `{path.name}` | {scenario['$comment']} | {times} | {change(peak(before), peak(after))} | {demands(scenario)} |"


def examples():
    """Those that `predict` answers; sweeps are many questions in one."""
    paths = sorted(path for path in FOLDER.glob("*.json") if path.name != "scenario.schema.json")
    return [path for path in paths if not {"sweep", "matrix"} & set(json.loads(path.read_text()))]


def table():
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(row, examples()))
    return "\n".join(["| file | what it shows | step | peak | asserts |", "|---|---|---|---|---|", *rows])


def main():
    readme = FOLDER / "README.md"
    text = readme.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise SystemExit(f"{readme.name} must have {BEGIN} and {END} once each")
    head, rest = text.split(BEGIN)
    written = f"{head}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"
    if sys.argv[1:2] == ["--write"]:
        return 0 if keep.keep({readme: written}, "--yes" in sys.argv) else 1
    if written != text:
        print(f"{readme.name}: the table of examples is not up to date; run scripts/example_tables.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
