"""Shared by the attacks: the program under attack, and the exit codes that it may answer with."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from processes import PATIENCE, no_signal_ignored, wait_until  # noqa: E402, F401
FORETRACE = os.environ.get("FORETRACE", str(ROOT / "build" / "foretrace"))
# Answered, a check found a regression, wrong use, unusable trace, undecided; never a signal, never 70 (a bug).
HONEST = {0, 1, 2, 3, 4}


def run(*arguments, **options):
    """The finished process, with its output as bytes."""
    command = [FORETRACE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, input=options.pop("input", b""), timeout=PATIENCE, check=False, **options)
