"""The common part of the checks of the tree: a root, a line for each violation, an exit status."""

import pathlib
import sys


def main(check):
    """check(root) yields violations; the root is the first argument, or this repository."""
    default = pathlib.Path(__file__).resolve().parent.parent
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    violations = list(check(root))
    for violation in violations:
        print(violation)
    return 1 if violations else 0
