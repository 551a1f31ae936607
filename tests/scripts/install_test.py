#!/usr/bin/env python3
"""Installs the build into a folder, and uses it from there: the program, its manuals and completion, and the library
from another CMake project. Also makes packages. Needs $FORETRACE, the program in its build folder."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["FORETRACE"]).resolve().parent
TRACE = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"

HOMEPAGE = "https://foretrace.dev"
MANUAL = "/".join((".", "usr", "share", "man", "man1", "foretrace-predict.1"))

CMAKE = """cmake_minimum_required(VERSION 3.22)
project(user CXX)
find_package(foretrace 0.2 REQUIRED)
add_executable(user main.cc)
target_link_libraries(user PRIVATE foretrace::foretrace)
"""

MAIN = """#include <iostream>

#include "foretrace/export.h"
#include "foretrace/import.h"
#include "foretrace/job.h"

int main(int, char** arguments) {
  foretrace::Scenario scenario;
  scenario.transforms.push_back(foretrace::read_transform_text("loader:workers=4"));
  scenario.uses.push_back("loader:workers=4");
  const foretrace::Prediction answer = foretrace::predict(foretrace::Job(arguments[1]), scenario);
  std::cout << answer.predicted.step_time.count() << '\\n';
  foretrace::export_trace(foretrace::import_trace(arguments[1]), arguments[2]);
}
"""


def run(*command, **options):
    """The output of a command. If the command fails, the output is the message of the failure."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix"
        shutil.rmtree(BUILD / "manuals", ignore_errors=True)  # As if only the program had been built.
        run("cmake", "--install", BUILD, "--prefix", cls.prefix)

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

    def test_the_readme_finds_what_it_refers_to(self):
        readme = self.prefix / "share" / "doc" / "foretrace" / "README.md"
        links = re.findall(r"\]\(([^)#]+)", readme.read_text())
        self.assertIn("docs/what-if.md", links)
        self.assertEqual([link for link in links if not (readme.parent / link).is_file()], [])

    def test_shells_find_their_completion(self):
        for path in ("bash-completion/completions/foretrace", "zsh/vendor-completions/_foretrace",
                     "fish/vendor_completions.d/foretrace.fish"):
            self.assertIn("predict", (self.prefix / "share" / path).read_text(), path)

    def test_the_library_is_found_by_cmake_and_answers_as_the_program_does(self):
        user = pathlib.Path(self.folder.name) / "user"
        user.mkdir()
        (user / "CMakeLists.txt").write_text(CMAKE)
        (user / "main.cc").write_text(MAIN)
        generator = [] if shutil.which("make") else ["-G", "Ninja"]
        run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", "-DCMAKE_BUILD_TYPE=Release", *generator)
        run("cmake", "--build", user / "build")
        step_time = run(user / "build" / "user", TRACE, user / "copy.ftrace").strip()
        program = self.prefix / "bin" / "foretrace"
        table = run(program, "predict", user / "copy.ftrace", "--with", "loader:workers=4", "--format", "csv", "--no-cache")
        heading, figures = (line.split(",") for line in table.splitlines()[:2])
        self.assertEqual(figures[heading.index("predicted_ns")], step_time)

    def test_packages_are_made_in_the_build_folder(self):
        if not (shutil.which("file") and shutil.which("dpkg-shlibdeps")):
            self.skipTest("packages cannot be made here (scripts/setup.sh all)")
        shutil.rmtree(BUILD / "packages", ignore_errors=True)  # Packages of another version may be there.
        with tempfile.TemporaryDirectory() as elsewhere:
            run("cpack", "--config", BUILD / "CPackConfig.cmake", cwd=elsewhere)
            self.assertEqual(list(pathlib.Path(elsewhere).iterdir()), [])
        packages = {path.name.split("_")[0]: path for path in (BUILD / "packages").glob("*.deb")}
        self.assertLessEqual({"foretrace", "libforetrace-dev"}, set(packages))
        self.assertIn("libsqlite3-0", run("dpkg-deb", "--field", packages["foretrace"], "Depends"))
        self.assertEqual(run("dpkg-deb", "--field", packages["foretrace"], "Homepage").strip(), HOMEPAGE)
        self.library_depends_on_what_its_targets_name(run("dpkg-deb", "--field", packages["libforetrace-dev"], "Depends"))
        if "python3-foretrace" in packages:
            self.assertIn("python3 (>= 3.", run("dpkg-deb", "--field", packages["python3-foretrace"], "Depends"))
        self.assertIn(MANUAL, run("dpkg-deb", "--contents", packages["foretrace"]))

    def library_depends_on_what_its_targets_name(self, depends):
        """Each library that the exported targets link is in a package that is depended on, so that find_package never misses one."""
        targets = (self.prefix / "lib").rglob("foretraceTargets.cmake")
        named = set(re.findall(r"LINK_ONLY:foretrace::(\w+)>", next(targets).read_text()))
        places = dict(re.findall(r"^(\w+)_LIBRARY:FILEPATH=(.*)$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE))
        self.assertLessEqual({"crypto", "fmt", "zstd"}, named)
        for library in named:
            if library.upper() in places:
                owner = run("dpkg-query", "-S", places[library.upper()]).split(":")[0]
                self.assertIn(owner, re.split(r",\s*|\s", depends), f"of {library}")

    def test_cpack_names_the_packages_that_it_needs(self):
        cpack = shutil.which("cpack")
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([cpack, "--config", BUILD / "CPackConfig.cmake", "-D", "CMAKE_FIND_ROOT_PATH=" + empty,
                                   "-D", "CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=ONLY"], capture_output=True, text=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("apt-get install file dpkg-dev", " ".join(done.stderr.split()))


if __name__ == "__main__":
    built_with_module = "FORETRACE_PYTHON:BOOL=ON" in (BUILD / "CMakeCache.txt").read_text()
    if built_with_module and not list(BUILD.glob("python/foretrace/_foretrace*")):
        print("the Python module was not built, without which there is no installation: cmake --build build")
        sys.exit(77)
    unittest.main()
