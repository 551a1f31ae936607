"""The check of names and sizes must be able to fail: each case is a small tree with one file."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = "int count(int i) {\n" + "  ++i;\n" * 61 + "  return i;\n}\n"
COMPLEX = "int nested(int i) {\n" + "".join("  " * depth + "if (i > 0)\n" for depth in range(1, 8)) + "    ++i;\n  return i;\n}\n"


@unittest.skipUnless(shutil.which("clang-tidy"), "needs clang-tidy")
class Tidy(unittest.TestCase):
    def check(self, text, known="", arguments=("src/a/a.cc",)):
        """(exit status, output) of tidy.sh on a file with this text."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copy(ROOT / ".clang-tidy", root)
            (root / "scripts").mkdir()
            for script in ("tidy.sh", "changed.sh"):
                shutil.copy(ROOT / "scripts" / script, root / "scripts")
            (root / "scripts" / "tidy_known.txt").write_text("# A comment.\n" + known)
            (root / "src" / "a").mkdir(parents=True)
            (root / "include").mkdir()
            (root / "src" / "a" / "a.cc").write_text(text)
            run = subprocess.run([root / "scripts" / "tidy.sh", *arguments], capture_output=True, text=True)
            return run.returncode, run.stdout + run.stderr

    def test_a_good_file_passes(self):
        self.assertEqual(self.check("int count(int i) { return i; }\n"), (0, ""))
        self.assertEqual(self.check("int count(int i) { return i; }\n", arguments=("--all",)), (0, ""))

    def test_a_function_has_sixty_lines(self):
        status, found = self.check(LONG)
        self.assertEqual(status, 1)
        self.assertIn("src/a/a.cc:1:5: error: function 'count' exceeds", found)
        self.assertIn("(threshold 60)", found)

    def test_names_are_written_alike(self):
        status, found = self.check("int Count(int i) { return i; }\n")
        self.assertEqual((status, found.count("\n")), (1, 1))
        self.assertIn("src/a/a.cc:1:5: error: invalid case style for function 'Count'", found)

    def test_a_known_function_may_stay_as_complex_as_it_is(self):
        status, found = self.check(COMPLEX)
        self.assertEqual((status, found.count("\n")), (1, 1))
        self.assertIn("src/a/a.cc:1:5: error: function 'nested' has cognitive complexity of 28", found)
        self.assertEqual(self.check(COMPLEX, "src/a/a.cc nested 28\n"), (0, ""))
        self.assertEqual(self.check(COMPLEX, "src/a/a.cc nested 27\n")[0], 1)

    def test_what_does_not_compile_fails(self):
        self.assertEqual(self.check("int count(int i) { return j; }\n")[0], 1)

    def test_without_a_main_branch_nothing_is_checked(self):
        self.assertEqual(self.check(LONG, arguments=()), (0, "tidy.sh: no main branch is known, so that no file counts as changed\n"))


if __name__ == "__main__":
    unittest.main()
