#!/usr/bin/env python3
"""Plants the bugs of mutants.toml one by one and reports which unit test notices each.

The tree and its build are left as they are: the changed source is a temporary file, its object is
linked in front of the libraries of a test program, and that program runs the tests.

    run.py [--only WORD]... [--quick] [--jobs N] [--build FOLDER]     plants, and prints a table
    run.py --missing --write                           plants the bugs that the table of README.md lacks, and adds them
    run.py --list [--only WORD]...                                    prints the list
    run.py --check                                     only checks that every entry applies and has its row

Exit status: 0 if every bug is noticed, 1 if one survives, 2 if the list or the build is wrong.
"""

import argparse
import concurrent.futures
import pathlib
import re
import sys
import tempfile

import limited
import planted
import table
from linked import Build, BuildError, PROGRAMS

SILENCE_SECONDS = 180  # No test takes half as long, even where all processors are busy.
MOST_BYTES = 16 << 30  # Address space, so that a loop that allocates ends.

# These tests compare with texts that one command rewrites, so they would not stop a wrong answer.
NOT_UNIT_TESTS = ["Golden*", "*/Golden*"]

FAILED = re.compile(r"^\[  FAILED  \] (\S+?)(?:,| \(|$)")
STARTED = re.compile(r"^\[ RUN      \] (\S+)")


class Verdict:
    """The result of one planted bug."""

    def __init__(self, mutant, by="", how=""):
        self.mutant, self.by, self.how = mutant, by, how

    @property
    def killed(self):
        return bool(self.by)

    def row(self):
        by = f"{self.by}{self.how and f' ({self.how})'}" if self.killed else f"**{self.how or 'SURVIVED'}**"
        return f"| {table.place(self.mutant)} | {by} |"


def first_failure(program, wanted, unwanted, environment, folder):
    """(test, how) of the first test that fails, or None."""
    chosen = f"--gtest_filter={wanted}-{':'.join(NOT_UNIT_TESTS + unwanted)}"
    command = [str(program), "--gtest_fail_fast", "--gtest_color=no", chosen]
    status, written = limited.run(command, folder, environment, SILENCE_SECONDS, MOST_BYTES)
    running = "no test at all"
    for line in written.splitlines():
        failed = FAILED.match(line)
        if failed:
            return failed.group(1), ""
        started = STARTED.match(line)
        running = started.group(1) if started else running
    if status == 0:
        return None
    return running, "hangs" if status == limited.HANGS else "crashes"


class Planting:
    """One bug: its object, and the programs that are linked with it."""

    def __init__(self, build, mutant, folder):
        self.build, self.mutant, self.folder = build, mutant, pathlib.Path(folder)
        self.objects = build.compile(mutant.file, mutant.applied(), self.folder)

    def killer(self, name, wanted):
        """(test, how) of the first unit test of a program that fails with the bug and passes without."""
        program = self.build.link(name, self.objects, self.folder)
        if program is None:
            return None
        environment = self.build.environment(self.folder)
        unwanted = []
        while True:
            found = first_failure(program, wanted, unwanted, environment, self.folder)
            if found is None:
                return None
            plain = first_failure(self.build.program(name), found[0], [], self.build.environment(None), self.folder)
            if plain is None:
                return found
            unwanted.append(found[0])

    def verdict(self, is_quick):
        named = [(program, wanted or "*") for program, _, wanted in (test.partition("/") for test in self.mutant.tests)]
        whole = [(program, "*") for program, _ in named]
        if not is_quick:
            whole += [(program, "*") for program in PROGRAMS]
        for name, wanted in dict.fromkeys(named + whole):
            found = self.killer(name, wanted)
            if found is not None:
                return Verdict(self.mutant, *found)
        return Verdict(self.mutant)


def plant(build, mutant, is_quick):
    with tempfile.TemporaryDirectory(prefix="foretrace-mutant-") as folder:
        try:
            verdict = Planting(build, mutant, folder).verdict(is_quick)
        except BuildError as error:
            print(error, file=sys.stderr)
            verdict = Verdict(mutant, how="DOES NOT COMPILE")
    outcome = f"killed by {verdict.by}" if verdict.killed else verdict.how or "SURVIVED"
    print(f"{mutant.name}: {outcome}", file=sys.stderr, flush=True)
    return verdict


def report(verdicts):
    print("| place | planted | killed by |\n|---|---|---|")
    for verdict in verdicts:
        print(verdict.row())
    killed = sum(verdict.killed for verdict in verdicts)
    print(f"\n{killed} of {len(verdicts)} killed ({100 * killed / max(len(verdicts), 1):.1f} %)")
    return 0 if killed == len(verdicts) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="only bugs with this text in their name or file")
    parser.add_argument("--quick", action="store_true", help="run no other programs than those that the entries name")
    parser.add_argument("--jobs", type=int, default=1, help="so many at the same time")
    parser.add_argument("--build", type=pathlib.Path, default=planted.ROOT / "build",
                        help="a folder that CMake configured for Ninja")
    parser.add_argument("--list", action="store_true", help="print the list and plant nothing")
    parser.add_argument("--check", action="store_true", help="only check that every entry applies and has its row")
    parser.add_argument("--missing", action="store_true", help="only bugs that the table of README.md lacks")
    parser.add_argument("--write", action="store_true", help="write the rows into that table, too")
    options = parser.parse_args()
    try:
        mutants = planted.read()
    except planted.ListError as error:
        print(error, file=sys.stderr)
        return 2
    rows = table.read()
    if options.check:
        faults = list(table.faults(mutants, rows))
        print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
        return 2 if faults else 0
    chosen = [m for m in mutants if not options.only or any(word in m.name or word in m.file for word in options.only)]
    if options.missing:
        chosen = [m for m in chosen if table.place(m) not in rows]
    if options.list:
        for mutant in chosen:
            print(f"{mutant.name:32} {mutant.file:44} {mutant.breaks}")
        return 0
    if not chosen:
        print("no bug is left to plant", file=sys.stderr)
        return 2
    build = Build(options.build)
    build.make({test.partition("/")[0] for mutant in chosen for test in mutant.tests})
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda mutant: plant(build, mutant, options.quick), chosen))
    if options.write:
        table.write(mutants, rows | {table.place(verdict.mutant): verdict.row() for verdict in verdicts})
    return report(verdicts)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BuildError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
