"""The list of planted bugs, and the check of its entries."""

import pathlib
import re
import tomllib

from linked import PROGRAMS

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = pathlib.Path(__file__).with_name("mutants.toml")
KEYS = {"name", "file", "before", "after", "breaks", "tests"}


class ListError(Exception):
    """One line for each entry that is wrong."""


class Mutant:
    def __init__(self, entry):
        self.name, self.file, self.breaks = entry["name"], entry["file"], entry["breaks"]
        self.before, self.after, self.tests = entry["before"], entry["after"], entry["tests"]

    def applied(self):
        """The text of the file with the bug."""
        return (ROOT / self.file).read_text(encoding="utf-8").replace(self.before, self.after)

    def faults(self):
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            yield "name: must be lower-case words with dashes between them"
        if not self.file.startswith("src/") or not self.file.endswith(".cc"):
            yield "file: must be a source, src/.../*.cc"
        elif not (ROOT / self.file).exists():
            yield f"file: {self.file} does not exist"
        else:
            found = (ROOT / self.file).read_text(encoding="utf-8").count(self.before)
            if found != 1:
                yield f"before: must be in {self.file} exactly once, but is there {found} times"
        if self.before == self.after:
            yield "after: is the same as before"
        if not self.tests:
            yield "tests: must name at least one test program"
        for test in self.tests:
            program = test.partition("/")[0]
            if program not in PROGRAMS:
                yield f"tests: there is no test program {program}; there are {', '.join(PROGRAMS)}"


def read(path=LIST):
    """The bugs, in the order of the list."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    faults, names, mutants = [], set(), []
    for number, entry in enumerate(entries, 1):
        place = f"{path.name}: mutant {number} ({entry.get('name', 'no name')})"
        if set(entry) != KEYS:
            faults.append(f"{place}: must have {', '.join(sorted(KEYS))}, but has {', '.join(sorted(entry))}")
            continue
        mutant = Mutant(entry)
        faults += [f"{place}: {fault}" for fault in mutant.faults()]
        if mutant.name in names:
            faults.append(f"{place}: name: is that of another, too")
        names.add(mutant.name)
        mutants.append(mutant)
    if faults:
        raise ListError("\n".join(faults))
    return mutants
