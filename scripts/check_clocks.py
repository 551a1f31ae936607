#!/usr/bin/env python3
"""Checks that no test depends on how busy the machine is.

A test waits for events (tests/support/wait.h, processes.py) and limits work by counts, bytes or CPU time. Whatever reads a clock of
real time, sleeps or gives up after seconds needs its reason in the same line: `// clock: REASON`, in Python `# clock: REASON`.

    check_clocks.py [ROOT]     prints one line per violation; exit status 1 if there is any
"""

import re
import sys

import violations

# Folders and files below tests/ that may do so anywhere.
EXEMPT = {
    "bench/": "measures time, and no test compares what it measures",
    "collect/standin/": "plays a device, which works in real time",
    "fuzz/fuzz.py": "is run by hand, for as long as one likes",
    "scripts/check_clocks_test.py": "shows what is found",
    "third_party/": "is not ours",
}
CLOCK = re.compile(r"""
    (steady|system|high_resolution)_clock | gettimeofday | clock_gettime(?!\(CLOCK_\w*CPUTIME) | CLOCK_(MONOTONIC|REALTIME)
    | sleep(_for|_until)?\s*\((?!\)) | \bwait_(for|until)\(.*(milliseconds|seconds|\dm?s\b) | \balarm\( | setitimer\( | \btimerfd_
    | \btime\.(time|monotonic|perf_counter|sleep)(_ns)?\b | \btimeout=(?!PATIENCE) | \b(join|communicate|process\.wait)\(\d
    | Timer\( | \btimeout\ (-|\d) | ["'\s;]sleep\ [\d$] | TIMEOUT\s+\d{1,3}\b | Date\.now | performance\.now | setTimeout
""", re.VERBOSE)
REASON = re.compile(r"(//|#) clock: \S")


def check(root):
    for path in sorted((root / "tests").rglob("*")):
        name = path.relative_to(root / "tests").as_posix()
        if path.suffix not in (".cc", ".h", ".py", ".sh", ".txt") or "golden" in path.parts or name.startswith(tuple(EXEMPT)):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            found = CLOCK.search(line)
            if found and not REASON.search(line):
                yield (f"tests/{name}:{number}: \"{found.group().strip()}\" depends on real time: wait for an event or count work, "
                       "or give the reason behind `clock:`")


if __name__ == "__main__":
    sys.exit(violations.main(check))
