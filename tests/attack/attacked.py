"""Shared by the attacks: the program under attack, and the exit codes that it may answer with."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE", str(ROOT / "build" / "foretrace"))
# Answered, a check found a regression, wrong use, unusable trace, undecided; never a signal, never 70 (a bug).
HONEST = {0, 1, 2, 3, 4}


def run(*arguments, timeout=120, **options):
    """The finished process, with its output as bytes."""
    command = [FORETRACE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, input=options.pop("input", b""), timeout=timeout, check=False, **options)
