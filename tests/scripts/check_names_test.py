"""The check of names must be able to fail: each case is a small tree with or without a fault."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_names.py"


def in_namespace(text, name="foretrace"):
    return f"namespace {name} {{\n{text}\n}}  // namespace {name}\n"


def violations(files):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        run = subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True)
        assert (run.returncode == 1) == bool(run.stdout), run
        return run.stdout


class CheckNames(unittest.TestCase):
    def test_two_types_of_one_name_are_told(self):
        found = violations({
            "src/report/plan.h": in_namespace("struct Plan {\n  int cost = 0;\n};"),
            "src/transform/plan.h": in_namespace("class Plan final : public Described {\n};"),
        })
        self.assertEqual(found, "foretrace::Plan: is defined in src/report/plan.h and src/transform/plan.h\n")

    def test_other_namespaces_are_other_names(self):
        found = violations({
            "include/foretrace/plan.h": in_namespace("struct Plan {\n};"),
            "src/infer/plan.h": in_namespace("struct Plan {\n};", "foretrace::infer_detail"),
        })
        self.assertEqual(found, "")

    def test_a_file_may_have_types_of_its_own(self):
        local = in_namespace("namespace {\nstruct Plan {\n};\n}  // namespace\nstruct Other {\n};")
        self.assertEqual(violations({"src/a/a.cc": local, "src/a/b.h": in_namespace("struct Plan {\n};")}), "")

    def test_declaring_defines_nothing(self):
        found = violations({
            "src/a/a.h": in_namespace("struct Plan;\nenum class Kind : char;"),
            "src/a/b.h": in_namespace("struct Plan {\n};\nenum class Kind : char { one };"),
        })
        self.assertEqual(found, "")


if __name__ == "__main__":
    unittest.main()
