#!/usr/bin/env python3
"""Checks every #include under src/ and include/ against src/LAYERS.

A module may include its own public headers and those of the modules behind its arrow, and no private
header of another module. Every public header and every folder of src/ must be listed, and each module
may only name modules above it in the list, so that there can be no cycle. The folders inside a module
may not include each other in a cycle either; lists of registrations (.def) include nothing and do not
count. A folder holds at most 30 files.

    check_layers.py [ROOT]     prints one line per violation; exit status 1 if there is any
"""

import re
import sys

import violations

MOST_FILES = 30
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)


class Layers:
    """The modules and permissions that src/LAYERS states."""

    def __init__(self, text):
        self.owner = {}  # public header -> module
        self.allowed = {}  # module -> modules it may include, itself among them
        self.problems = []
        module = None
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].rstrip()
            if line[:1].isspace() and module:
                self._own(number, line.split(), module)
            elif line:
                module = self._read(number, line)

    def _read(self, number, line):
        match = re.fullmatch(r"(\w+):([^<]*)(?:<-(.*))?", line)
        if not match:
            self.problems.append(f"src/LAYERS:{number}: must be \"module: headers <- modules\"")
            return None
        module, headers, below = match.group(1), match.group(2).split(), (match.group(3) or "").split()
        for other in below:
            if other not in self.allowed:
                self.problems.append(f"src/LAYERS:{number}: {other} is not listed above {module}")
        self.allowed[module] = {module, *below}
        self._own(number, headers, module)
        return module

    def _own(self, number, headers, module):
        for header in headers:
            if header in self.owner:
                self.problems.append(f"src/LAYERS:{number}: {header} belongs to {self.owner[header]} too")
            self.owner[header] = module

    def check_include(self, module, included):
        """The reason why `module` may not include `included`, or None."""
        folder, _, name = included.partition("/")
        owner = self.owner.get(name if folder == "foretrace" else included)
        if owner is not None and owner not in self.allowed[module]:
            return f"{module} may not see {included}, which belongs to {owner}"
        if folder == "foretrace" and owner is None:
            return f"{included} is not listed in src/LAYERS"
        if folder in self.allowed and folder != module and owner is None:
            return f"{included} is private to another module"
        return None


def sources(folder):
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.rglob("*") if path.suffix in (".cc", ".h", ".def"))


def check_file(layers, root, path, module):
    for included in INCLUDE.findall(path.read_text(encoding="utf-8")):
        why = layers.check_include(module, included)
        if why:
            yield f"{path.relative_to(root)}: {why}"


def check_source_tree(layers, root):
    for folder in sorted(path for path in (root / "src").iterdir() if path.is_dir()):
        module = folder.name
        if module not in layers.allowed:
            yield f"src/{module}: is not listed in src/LAYERS"
            continue
        for path in sources(folder):
            yield from check_file(layers, root, path, module)


def check_public_headers(layers, root):
    public = root / "include" / "foretrace"
    for path in sources(public):
        module = layers.owner.get(path.relative_to(public).as_posix())
        if module is None:
            yield f"{path.relative_to(root)}: is not listed in src/LAYERS"
            continue
        yield from check_file(layers, root, path, module)
    for header, module in layers.owner.items():
        if not any((place / header).is_file() for place in (public, root / "src")):
            yield f"src/LAYERS: {header} of {module} does not exist"


def check_places(root):
    """Checks that include/ contains only public headers."""
    places = [root / "include" / "foretrace" / place for place in (".", "answer", "question")]
    for path in sorted((root / "include").rglob("*")):
        if path.is_file() and path.parent not in places:
            yield f"{path.relative_to(root)}: public headers live in include/foretrace, answer/ and question/"


def folders_below(root, module):
    """{folder: {folders that its files include}}, all as paths below src/."""
    source = root / "src"
    included = {}
    for path in sources(source / module):
        inside = included.setdefault(path.parent.relative_to(source).as_posix(), set())
        for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
            if name.endswith(".h") and (source / name).is_file() and name.split("/")[0] == module:
                inside.add(name.rpartition("/")[0])
    return included


def cycle_from(start, included):
    """The folders of a shortest cycle through `start`, or None if there is no cycle."""
    paths = [[start]]
    seen = set()
    for path in paths:
        for folder in sorted(included.get(path[-1], ())):
            if folder == start and len(path) > 1:
                return path
            if folder != start and folder not in seen:
                seen.add(folder)
                paths.append([*path, folder])
    return None


def check_folders(layers, root):
    for module in layers.allowed:
        included = folders_below(root, module)
        for folder in sorted(included):
            cycle = cycle_from(folder, included)
            if cycle and folder == min(cycle):
                yield f"src/{folder}: includes itself through " + ", ".join(cycle[1:])
    for folder in sorted({path.parent for place in ("src", "include") for path in sources(root / place)}):
        count = sum(path.suffix in (".cc", ".h") for path in folder.iterdir())
        if count > MOST_FILES:
            yield f"{folder.relative_to(root)}: {count} files, where {MOST_FILES} are allowed"


def check(root):
    layers = Layers((root / "src" / "LAYERS").read_text(encoding="utf-8"))
    yield from layers.problems
    if layers.problems:
        return
    yield from check_source_tree(layers, root)
    yield from check_public_headers(layers, root)
    yield from check_places(root)
    yield from check_folders(layers, root)


if __name__ == "__main__":
    sys.exit(violations.main(check))
