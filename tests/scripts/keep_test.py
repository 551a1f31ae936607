#!/usr/bin/env python3
"""No expected output is rewritten unseen: tests scripts/keep.py, which scripts/bless.sh and readme.py --write use."""

import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
KEEP = SCRIPTS / "keep.py"


class Keep(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.found, self.kept = (pathlib.Path(folder.name) / name for name in ("found", "kept"))
        for root, text in ((self.found, "same\nnow\n"), (self.kept, "same\nbefore\n")):
            (root / "case").mkdir(parents=True)
            (root / "case" / "expected.txt").write_text(text)
        self.file = self.kept / "case" / "expected.txt"

    def run_keep(self, *options, answer=None):
        """The output of a run and its exit status. Types `answer` on a terminal if it is given."""
        command = [sys.executable, "-B", str(KEEP), str(self.found), str(self.kept), *options]
        if answer is None:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            return done.stdout + done.stderr, done.returncode
        ours, theirs = pty.openpty()
        with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            os.write(ours, answer.encode())
            said, _ = process.communicate()
        os.close(ours)
        os.close(theirs)
        return said, process.returncode

    def test_the_lines_that_change_are_shown(self):
        said, _ = self.run_keep()
        self.assertIn("-before\n+now\n", said)
        self.assertIn("expected.txt", said)

    def test_without_a_terminal_nothing_changes(self):
        said, status = self.run_keep()
        self.assertEqual((status, self.file.read_text()), (1, "same\nbefore\n"))
        self.assertIn("--yes keeps them", said)

    def test_yes_keeps_without_asking(self):
        self.assertEqual(self.run_keep("--yes")[1], 0)
        self.assertEqual(self.file.read_text(), "same\nnow\n")

    def test_only_a_yes_is_one(self):
        try:
            for end in pty.openpty():
                os.close(end)
        except OSError as error:
            self.skipTest(f"there is no pseudo-terminal: {error}")
        for answer in ("n\n", "\n", "perhaps\n", "\x04"):
            with self.subTest(repr(answer)):
                said, status = self.run_keep(answer=answer)
                self.assertEqual((status, self.file.read_text()), (1, "same\nbefore\n"))
                self.assertIn("Nothing was changed.", said)
        self.assertEqual(self.run_keep(answer="y\n")[1], 0)
        self.assertEqual(self.file.read_text(), "same\nnow\n")

    def test_what_is_the_same_is_no_question(self):
        self.file.write_text("same\nnow\n")
        self.assertEqual(self.run_keep(), ("nothing changes\n", 0))

    def test_a_new_file_is_shown_whole_and_written(self):
        self.file.unlink()
        said, _ = self.run_keep("--yes")
        self.assertIn("+same\n+now\n", said)
        self.assertEqual(self.file.read_text(), "same\nnow\n")

    def test_outputs_in_a_readme_are_asked_for_as_well(self):
        program = self.kept / "foretrace"
        program.write_text("#!/bin/sh\necho now\n")
        program.chmod(0o755)
        page = self.kept / "page.md"
        page.write_text("    $ foretrace\n    before\n")
        command = [sys.executable, "-B", str(SCRIPTS / "readme.py"), "--write", str(page)]
        for options, text, status in (([], "    $ foretrace\n    before\n", 1), (["--yes"], "    $ foretrace\n    now\n", 0)):
            done = subprocess.run([*command, *options], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                                  env={**os.environ, "FORETRACE": str(program)})
            self.assertIn("-    before\n+    now\n", done.stdout)
            self.assertEqual((done.returncode, page.read_text()), (status, text))


if __name__ == "__main__":
    unittest.main()
