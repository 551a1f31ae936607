#!/usr/bin/env python3
"""Writes the tables in scenarios/. In README.md, daydream/README.md and packets/README.md: what each scenario shows and asserts, and its result.
In ci/README.md: the metrics of `check`.

    scripts/example_tables.py            checks that the tables are up to date; exit status 1 if not
    scripts/example_tables.py --write    shows them and asks whether to write them, between the two comments that mark their places;
                                         --write --yes does not ask

The program is $FORETRACE, or build/foretrace."""

import concurrent.futures
import functools
import json
import os
import pathlib
import subprocess
import sys

import keep

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FORETRACE", str(ROOT / "build" / "foretrace"))
FOLDER = ROOT / "scenarios"
BEGIN, END = "<!-- {}: written by scripts/example_tables.py -->", "<!-- end of {} -->"


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
    if ran.returncode not in (0, 1, 4):  # Tests check whether assertions hold.
        raise SystemExit(f"{path.name}: {ran.stderr.strip()}")
    answer = json.loads(ran.stdout)
    before, after = answer["baseline"], answer["predicted"]
    times = change(milliseconds(before["step_time_ns"]), milliseconds(after["step_time_ns"]))
    return f"| `{path.name}` | {scenario['$comment']} | {times} | {change(peak(before), peak(after))} | {demands(scenario)} |"


def examples(folder):
    """The scenarios that `predict` answers. Sweeps, which ask many questions, are left out."""
    paths = sorted(path for path in folder.glob("*.json") if path.name != "scenario.schema.json")
    return [path for path in paths if not {"sweep", "matrix"} & set(json.loads(path.read_text()))]


def table_of_examples(folder):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(row, examples(folder)))
    return "\n".join(["| file | what it shows | step | peak | asserts |", "|---|---|---|---|---|", *rows])


def table_of_metrics():
    """The metrics, from the end of the help, where each has a line."""
    text = subprocess.run([PROGRAM, "check", "--help"], capture_output=True, text=True, check=True).stdout
    lines = [line.split(maxsplit=1) for line in text.split("Metrics:\n")[1].splitlines()]
    return "\n".join(["| metric | is |", "|---|---|", *(f"| `{name}` | {says} |" for name, says in lines)])


def with_table(readme, name, table):
    text, begin, end = readme.read_text(), BEGIN.format(name), END.format(name)
    if text.count(begin) != 1 or text.count(end) != 1:
        raise SystemExit(f"{readme} must have {begin} and {end} once each")
    head, rest = text.split(begin)
    return f"{head}{begin}\n\n{table()}\n\n{end}{rest.split(end)[1]}"


def main():
    tables = {folder / "README.md": ("examples", functools.partial(table_of_examples, folder)) for folder in (FOLDER, FOLDER / "daydream", FOLDER / "packets")}
    tables[FOLDER / "ci" / "README.md"] = ("metrics", table_of_metrics)
    written = {readme: with_table(readme, *table) for readme, table in tables.items()}
    if sys.argv[1:2] == ["--write"]:
        return 0 if keep.keep(written, "--yes" in sys.argv) else 1
    stale = [readme for readme, text in written.items() if text != readme.read_text()]
    for readme in stale:
        print(f"{readme.relative_to(ROOT)}: its table is not up to date; run scripts/example_tables.py --write")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
