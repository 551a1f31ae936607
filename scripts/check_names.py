#!/usr/bin/env python3
"""Checks that no two types of one namespace have the same name.

The linker would treat them as one type and keep one function, such as one of two destructors, for both.
Types in anonymous namespaces belong to their file and may have any name.

    check_names.py [ROOT]     prints one line per violation; exit status 1 if there is any
"""

import collections
import re
import sys

import violations

OPENS = re.compile(r"(?:inline )?namespace\s*([\w:]*)\s*\{")
CLOSES = re.compile(r"\}\s*// namespace")
TYPE = re.compile(r"(?:struct|class|enum class|enum)\s+(\w+)(?:\s+final)?\s*(?::[^:;{][^;{]*)?\{")


def types(path):
    """Names of the types that a file defines outside anonymous namespaces. Relies on the layout of the formatter."""
    around = []
    for line in path.read_text(encoding="utf-8").splitlines():
        opened = OPENS.match(line)
        if opened:
            around.append(opened.group(1))
        elif CLOSES.match(line):
            around.pop()
        elif "" not in around:
            defined = TYPE.match(line)
            if defined:
                yield "::".join([*around, defined.group(1)])


def check(root):
    homes = collections.defaultdict(list)
    for folder in ("include", "src"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cc", ".h"):
                for name in types(path):
                    homes[name].append(str(path.relative_to(root)))
    for name, files in sorted(homes.items()):
        if len(files) > 1:
            yield f"{name}: is defined in {' and '.join(files)}"


if __name__ == "__main__":
    sys.exit(violations.main(check))
