#!/usr/bin/env python3
"""The output of scripts/skipped.py for results of ctest with tests that are skipped in every possible way."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

UNITTEST = '''import unittest
class Tests(unittest.TestCase):
    @unittest.skip("there is no 'fish'")
    def test_one(self):
        """With a sentence."""
    @unittest.skip("no\\nbread")
    def test_two(self): pass
    def test_three(self): pass
unittest.main()
'''

CTEST = """
add_test(gtest.one sh -c "printf 'a_test.cc:7: Skipped\\\\nno bread\\\\n\\\\n[  SKIPPED ] A.B (0 ms)\\\\n'")
set_tests_properties(gtest.one PROPERTIES SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]")
add_test(gtest.without_a_reason sh -c "printf 'a_test.cc:7: Skipped\\\\n\\\\n\\\\n[  SKIPPED ] A.B (0 ms)\\\\n'")
set_tests_properties(gtest.without_a_reason PROPERTIES SKIP_REGULAR_EXPRESSION "\\\\[  SKIPPED \\\\]")
add_test(status sh -c "echo a line; echo 'skipped: no bread'; exit 77")
add_test(silent sh -c "exit 77")
set_tests_properties(status silent PROPERTIES SKIP_RETURN_CODE 77)
add_test(passes sh -c "echo no bread; echo skipped: nothing")
add_test(fails false)
add_test(absent /nowhere/no-such-program)
"""


class Skipped(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.results = self.folder / "results.xml"

    def run_ctest(self, tests):
        (self.folder / "CTestTestfile.cmake").write_text(tests)
        subprocess.run(["ctest", "--output-junit", self.results, "--test-output-size-passed", "100000"], cwd=self.folder,
                       capture_output=True, check=False)

    def said(self):
        return subprocess.run([ROOT / "scripts" / "skipped.py", self.results], capture_output=True, text=True, check=True).stdout

    def test_each_reason_is_one_line_with_its_number(self):
        script = self.folder / "parts.py"
        script.write_text(UNITTEST)
        self.run_ctest(CTEST + f'add_test(unittest.parts {sys.executable} {script} -v)\n')
        self.assertEqual(self.said(), "\nSkipped, with the number of tests (6 in all; tests/README.md says what they need):\n"
                                      "    3  no bread\n"
                                      "    2  no reason given\n"
                                      "    1  there is no 'fish'\n")

    def test_where_nothing_is_skipped_nothing_is_said(self):
        self.run_ctest("add_test(passes true)\n")
        self.assertEqual(self.said(), "")

    def test_without_results_nothing_is_said(self):
        self.assertEqual(self.said(), "")


if __name__ == "__main__":
    if not shutil.which("ctest"):
        print("there is no ctest")
        sys.exit(77)
    unittest.main()
