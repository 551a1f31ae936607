#!/usr/bin/env python3
"""Runs the commands that README.md and docs/ show with their output, and compares.

    scripts/readme.py [FILE]...  prints what differs; exit status 1 if anything does. Without a file: README.md and all of docs/
    scripts/readme.py --write    shows how the outputs changed, and asks whether to write them; --yes does not ask

A shown command is an indented line that begins with "$ ". The lines after it in its block are its output, in which "..." on a
line of its own stands for any lines. A command without output is run only if a command with output follows it in the block. Those of
a file run in one folder, which has traces and scenarios. --write keeps as many lines before the first "..." and after the last
one as there were. The program is $FORETRACE, or build/foretrace."""

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


def differences(path):
    """[(shown command, real output)] where they differ, from the end, so that line numbers stay true while outputs are replaced."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("traces", "scenarios"):
            (pathlib.Path(folder) / name).symlink_to(ROOT / name)
        ran = ((shown, output_of(shown.command, folder)) for shown in reversed(shown_commands(path.read_text().split("\n"))))
        return [(shown, real) for shown, real in ran if not agrees(shown.output, real)]


def with_outputs(path, differ):
    lines = path.read_text().split("\n")
    for shown, real in differ:
        lines[shown.first:shown.end] = [(INDENT + line).rstrip() for line in rewritten(shown.output, real)]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--yes", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path, default=[ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
    options = parser.parse_args()
    found = {path: differences(path) for path in options.files}
    if options.write:
        return 0 if keep.keep({path: with_outputs(path, differ) for path, differ in found.items()}, options.yes) else 1
    for path, differ in found.items():
        for shown, real in differ:
            print(f"{os.path.relpath(path)}:{shown.first}: {shown.command}")
            print("\n".join(difflib.unified_diff(shown.output, real, "shown", "now", lineterm="", n=1)))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
