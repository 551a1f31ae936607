"""The table of README.md: a row for each planted bug, in the order of the list."""

import pathlib
import re

README = pathlib.Path(__file__).with_name("README.md")
_HEAD = "| place | planted | killed by |\n|---|---|---|\n"
_COUNT = re.compile(r"All \d+ bugs of the list|\d+ of the \d+ bugs of the list")


def place(mutant):
    """The beginning of the bug's row."""
    return f"`{mutant.file.removeprefix('src/')}` | {mutant.breaks}"


def read():
    """The rows, by place."""
    lines = README.read_text(encoding="utf-8").partition(_HEAD)[2].splitlines()
    return {line[2:].rpartition(" | ")[0]: line for line in lines}


def faults(mutants, rows):
    """The differences between list and table, one line each."""
    places = {place(mutant) for mutant in mutants}
    for mutant in mutants:
        row = rows.get(place(mutant), "")
        if not row:
            yield f"README.md: the table lacks {mutant.name}; run.py --missing --write plants it"
    for gone in rows.keys() - places:
        yield f"README.md: the table has a row that is not in the list: {gone}"


def write(mutants, rows):
    kept = [rows[place(mutant)] for mutant in mutants if place(mutant) in rows]
    killed = sum("**" not in row for row in kept)
    count = f"{killed} of the {len(mutants)} bugs of the list"
    text = README.read_text(encoding="utf-8").partition(_HEAD)[0]
    README.write_text(_COUNT.sub(count, text) + _HEAD + "".join(row + "\n" for row in kept), encoding="utf-8")
