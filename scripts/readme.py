#!/usr/bin/env python3
"""Runs the commands that README.md shows with their output, and compares.

    scripts/readme.py            prints what differs; exit status 1 if anything does
    scripts/readme.py --write    shows how the outputs changed, and asks whether to write them; --yes does not ask

A shown command is an indented line that begins with "$ ". The lines after it in its block are its output, in which "..." on a
line of its own stands for any lines. A command without output is run only if a command with output follows it in the block. All
run in a folder that has traces and scenarios. --write keeps as many lines before the first "..." and after the last one as there
were. The program is $FORETRACE, or build/foretrace."""

import argparse
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import keep

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = pathlib.Path(os.environ.get("FORETRACE", ROOT / "build" / "foretrace"))
INDENT = "    "
ELISION = "..."


class Shown:
    """A command with its output, and their place in the text."""

    def __init__(self, command, first):
        self.command, self.first, self.output = command, first, []

    @property
    def end(self):
        return self.first + len(self.output)


def shown_commands(lines):
    found, current = [], None
    for number, line in enumerate(lines):
        if line.startswith(INDENT + "$ "):
            before = f"{current.command} >/dev/null && " if current and not current.output else ""
            current = Shown(before + line[len(INDENT) + 2:], number + 1)
            found.append(current)
        elif line.startswith(INDENT) and current:
            current.output.append(line[len(INDENT):])
        elif not line.strip() and current and number + 1 < len(lines) and lines[number + 1].startswith(INDENT) \
                and not lines[number + 1].startswith(INDENT + "$ "):
            current.output.append("")
        else:
            current = None
    return [shown for shown in found if shown.output and "foretrace" in shown.command]


def output_of(command, folder):
    environment = {**os.environ, "PATH": f"{PROGRAM.resolve().parent}:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{folder}/cache", "NO_COLOR": "1"}
    ran = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode not in (0, 1, 4) or not ran.stdout:
        return [f"exit status {ran.returncode}", *ran.stderr.splitlines()]
    return [line.rstrip() for line in ran.stdout.rstrip("\n").split("\n")]


def agrees(shown, real):
    """True if the lines of `real` are those shown, with any lines at each elision."""
    pattern = "".join("(?:.*\n)*?" if line == ELISION else re.escape(line) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in real)) is not None


def rewritten(shown, real):
    if ELISION not in shown:
        return real
    first = shown.index(ELISION)
    behind = len(shown) - 1 - max(i for i, line in enumerate(shown) if line == ELISION)
    return real[:first] + [ELISION] + (real[-behind:] if behind else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("file", nargs="?", type=pathlib.Path, default=ROOT / "README.md")
    options = parser.parse_args()
    lines = options.file.read_text().split("\n")
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("traces", "scenarios"):
            (pathlib.Path(folder) / name).symlink_to(ROOT / name)
        for shown in reversed(shown_commands(lines)):  # From the end, so that line numbers stay true.
            real = output_of(shown.command, folder)
            if agrees(shown.output, real):
                continue
            differ += 1
            if options.write:
                lines[shown.first:shown.end] = [(INDENT + line).rstrip() for line in rewritten(shown.output, real)]
            else:
                print(f"{options.file.name}:{shown.first}: {shown.command}")
                print("\n".join(difflib.unified_diff(shown.output, real, "shown", "now", lineterm="", n=1)))
    if options.write:
        return 0 if keep.keep({options.file: "\n".join(lines)}, options.yes) else 1
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
