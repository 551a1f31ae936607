#!/usr/bin/env python3
"""Shows which lines of files would change, and asks before they do.

    scripts/keep.py FOUND KEPT [--yes]     each file below FOUND would replace the file of the same name below KEPT

--yes keeps the changes without asking; without it and without a terminal, nothing is changed. Exit status 1 if changes
were not kept, 0 if they were or if there are none."""

import difflib
import pathlib
import sys


def differences(name, before, after):
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"{name} (kept)", f"{name} (now)", lineterm="", n=1)
    return "\n".join(lines)


def keep(changes, yes):
    """Writes `changes` (texts by path) if the user agrees. Returns True if all files then have these texts."""
    changed = {path: text for path, text in changes.items() if not path.exists() or path.read_text() != text}
    if not changed:
        print("nothing changes")
        return True
    for path, text in changed.items():
        print(differences(path.name if len(changed) == 1 else f"{path.parent.name}/{path.name}",
                          path.read_text() if path.exists() else "", text))
    if not yes and not agreed(len(changed)):
        return False
    for path, text in changed.items():
        path.write_text(text)
    return True


def agreed(files):
    question = f"Keep these lines, in {files} file{'s' if files > 1 else ''}?"
    if not sys.stdin.isatty():
        print(f"{question} Nothing was changed, as there is no terminal to ask on; --yes keeps them.", file=sys.stderr)
        return False
    try:
        answer = input(f"{question} (y/N) ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("Nothing was changed.", file=sys.stderr)
    return False


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--yes"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    found, kept = map(pathlib.Path, arguments)
    changes = {kept / path.relative_to(found): path.read_text() for path in sorted(found.rglob("*")) if path.is_file()}
    return 0 if keep(changes, "--yes" in sys.argv) else 1


if __name__ == "__main__":
    sys.exit(main())
