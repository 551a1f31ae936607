#!/usr/bin/env python3
"""Lists the tests that were skipped and why, one line for each reason: skipped.py RESULTS

RESULTS is the file that `ctest --output-junit` writes; if it is missing, nothing is printed. A test can be skipped whole (GTEST_SKIP, or exit
status 77 with the reason as its last line) or in part (tests of unittest that ran with -v)."""

import ast
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

GTEST = re.compile(r": Skipped\n(.*)")
UNITTEST = re.compile(r"\.\.\. skipped ('.*'|\".*\")$", re.MULTILINE)
NO_REASON = "no reason given"


def reasons_of(case):
    """The reasons why a test, or parts of it, were skipped; empty if the test ran as a whole."""
    output = case.findtext("system-out") or ""
    parts = [ast.literal_eval(reason) for reason in UNITTEST.findall(output)]
    skipped = case.find("skipped")
    if parts or skipped is None or not skipped.get("message", "").startswith("SKIP_"):
        return parts  # Tests that ctest could not start have such an entry, too.
    gtest = GTEST.search(output)
    if gtest:
        return [gtest.group(1).strip() or NO_REASON]
    lines = output.split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), NO_REASON)
    return [last.removeprefix("skipped: ")]


def report(document):
    reasons = collections.Counter(" ".join(reason.split()) for case in document.iter("testcase") for reason in reasons_of(case))
    if not reasons:
        return []
    lines = [f"  {count:3}  {reason}" for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))]
    return [f"\nSkipped, with the number of tests ({sum(reasons.values())} in all; tests/README.md says what they need):", *lines]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = pathlib.Path(sys.argv[1])
    if results.exists():
        for line in report(xml.etree.ElementTree.parse(results)):
            print(line)


if __name__ == "__main__":
    main()
