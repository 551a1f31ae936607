#!/usr/bin/env python3
"""Installs what was built into a folder, and uses it from there: the program, its manuals and completion, and the library
from a CMake project of somebody else. Needs $FORETRACE, the program in its build folder; skipped where that holds no more
than the program."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["FORETRACE"]).resolve().parent
TRACE = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"

CMAKE = """cmake_minimum_required(VERSION 3.22)
project(user CXX)
find_package(foretrace 0.1 REQUIRED)
add_executable(user main.cc)
target_link_libraries(user PRIVATE foretrace::foretrace)
"""

MAIN = """#include <iostream>

#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/scenario.h"

int main(int, char** arguments) {
  foretrace::Scenario scenario;
  scenario.transforms.push_back(foretrace::read_transform_text("loader:workers=4"));
  scenario.uses.push_back("loader:workers=4");
  const foretrace::Prediction answer = foretrace::predict(arguments[1], scenario);
  std::cout << answer.predicted.step_time.count() << '\\n';
  foretrace::export_trace(foretrace::import_trace(arguments[1]), arguments[2]);
}
"""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True, **options).stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix"
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_program_answers_from_where_it_was_installed(self):
        program = self.prefix / "bin" / "foretrace"
        answer = run(program, "predict", TRACE, "--with", "loader:workers=4", "--no-cache")
        self.assertIn("What if       loader:workers=4", answer)

    def test_every_command_has_a_manual(self):
        program = self.prefix / "bin" / "foretrace"
        for line in run(program, "list", "commands").splitlines():
            page = self.prefix / "share" / "man" / "man1" / f"foretrace-{line.split()[0]}.1"
            self.assertTrue(page.read_text().startswith(".TH "), page)
        self.assertIn("amp", (self.prefix / "share" / "man" / "man7" / "foretrace-transforms.7").read_text())

    def test_shells_find_their_completion(self):
        for path in ("bash-completion/completions/foretrace", "zsh/vendor-completions/_foretrace",
                     "fish/vendor_completions.d/foretrace.fish"):
            self.assertIn("predict", (self.prefix / "share" / path).read_text(), path)

    def test_the_library_is_found_by_cmake_and_answers_as_the_program_does(self):
        user = pathlib.Path(self.folder.name) / "user"
        user.mkdir()
        (user / "CMakeLists.txt").write_text(CMAKE)
        (user / "main.cc").write_text(MAIN)
        run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", user / "build")
        step_time = run(user / "build" / "user", TRACE, user / "copy.ftrace").strip()
        program = self.prefix / "bin" / "foretrace"
        table = run(program, "predict", user / "copy.ftrace", "--with", "loader:workers=4", "--format", "csv", "--no-cache")
        heading, figures = (line.split(",") for line in table.splitlines()[:2])
        self.assertEqual(figures[heading.index("predicted_ns")], step_time)


if __name__ == "__main__":
    if not (BUILD / "manuals" / "stamp").exists():
        print("only the program was built, nothing to install")
        sys.exit(77)
    unittest.main()
