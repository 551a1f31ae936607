"""The list of planted bugs must stay valid, and the result of a planted bug must be reported correctly."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutants"))
import limited  # noqa: E402
import planted  # noqa: E402
import run  # noqa: E402

ENTRY = {"name": "notes-forget", "file": "src/base/notes.cc", "before": "note->count += count;", "after": "",
         "breaks": "Notes are not counted", "tests": ["base_tests/Notes*"]}


def listed(*entries):
    """The result of reading a list with these entries."""
    def text(value):
        return "[" + ", ".join(map(text, value)) + "]" if isinstance(value, list) else f"'''{value}'''"

    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        for entry in entries:
            file.write("[[mutant]]\n" + "".join(f"{key} = {text(value)}\n" for key, value in entry.items()))
        file.flush()
        return planted.read(pathlib.Path(file.name))


class List(unittest.TestCase):
    def refused(self, why, *entries):
        with self.assertRaises(planted.ListError) as refused:
            listed(*entries)
        self.assertIn(why, str(refused.exception))

    def test_every_entry_applies_to_the_sources_as_they_are(self):
        self.assertGreater(len(planted.read()), 100)

    def test_the_text_is_replaced(self):
        mutant, = listed(ENTRY)
        self.assertNotIn(ENTRY["before"], mutant.applied())

    def test_a_text_that_is_gone_or_there_twice_is_refused(self):
        self.refused("is there 0 times", {**ENTRY, "before": "no such text"})
        self.refused("must be in src/base/notes.cc exactly once", {**ENTRY, "before": "count"})

    def test_what_cannot_be_planted_is_refused(self):
        self.refused("is the same as before", {**ENTRY, "after": ENTRY["before"]})
        self.refused("does not exist", {**ENTRY, "file": "src/base/nothing.cc"})
        self.refused("must be a source", {**ENTRY, "file": "include/foretrace/notes.h"})
        self.refused("there is no test program notes_tests", {**ENTRY, "tests": ["notes_tests"]})
        self.refused("must have", {key: value for key, value in ENTRY.items() if key != "breaks"})
        self.refused("is that of another, too", ENTRY, ENTRY)


class Outcome(unittest.TestCase):
    """Tests with programs that print the same as GoogleTest."""

    def first_failure(self, script, silence=run.SILENCE_SECONDS):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "tests")
            program.write_text("#!/bin/sh\n" + script, encoding="utf-8")
            program.chmod(0o700)
            run.SILENCE_SECONDS, kept = silence, run.SILENCE_SECONDS
            try:
                return run.first_failure(program, "*", [], None, folder)
            finally:
                run.SILENCE_SECONDS = kept

    def test_nothing_failed(self):
        self.assertIsNone(self.first_failure("echo '[ RUN      ] A.B'; echo '[       OK ] A.B (0 ms)'"))

    def test_the_first_failure_is_named(self):
        self.assertEqual(self.first_failure("echo '[  FAILED  ] A.B (3 ms)'; echo '[  FAILED  ] C.D (1 ms)'; exit 1"),
                         ("A.B", ""))
        self.assertEqual(self.first_failure("echo '[  FAILED  ] A/B.C/1, where GetParam() = 2 (3 ms)'; exit 1"),
                         ("A/B.C/1", ""))

    def test_a_crash_is_of_the_test_that_ran(self):
        self.assertEqual(self.first_failure("echo '[ RUN      ] A.B'; kill -SEGV $$"), ("A.B", "crashes"))

    def test_a_program_that_says_nothing_any_more_hangs(self):
        self.assertEqual(self.first_failure("echo '[ RUN      ] A.B'; exec sleep 3600", silence=5), ("A.B", "hangs"))  # clock: a shell takes 5 ms

    def test_a_program_that_wants_all_memory_is_ended(self):
        status, _ = limited.run([sys.executable, "-c", "b'x' * (1 << 32)"], None, None, 60, 1 << 30)
        self.assertNotEqual(status, 0)


if __name__ == "__main__":
    unittest.main()
