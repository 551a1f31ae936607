"""Where there is no apt-get, scripts/setup.sh names the missing packages as the system calls them, and fails until they are installed."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "setup.sh"


class Setup(unittest.TestCase):
    def run_on(self, installed, *managers, what="tests"):
        """Exit status and message on a system with these package managers, of which each says whether something is installed."""
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("awk", "true", "false"):
                os.symlink(shutil.which(tool), pathlib.Path(folder) / tool)
            for manager in managers:
                os.symlink(shutil.which("true" if installed else "false"), pathlib.Path(folder) / manager)
            done = subprocess.run(["/bin/sh", SCRIPT, what], env={"PATH": folder}, capture_output=True, text=True)
            return done.returncode, done.stderr

    def test_the_packages_have_the_names_of_the_system(self):
        for managers, begin, others in ((["dnf", "rpm"], "sudo dnf install gcc-c++ ", ("json-devel", "muParser-devel", "gtest-devel")),
                                        (["pacman"], "sudo pacman -S gcc ", ("nlohmann-json", "muparser", "gtest")),
                                        (["brew"], "brew install cmake ", ("nlohmann-json", "muparser", "googletest"))):
            status, told = self.run_on(False, *managers)
            self.assertEqual((status, told.count("\n")), (1, 1))
            self.assertIn(f": {begin}", told)
            self.assertLessEqual(set(others), set(told.split()))
            self.assertNotIn(" - ", told + " ")

    def test_where_all_are_installed_it_succeeds(self):
        self.assertEqual(self.run_on(True, "dnf", "rpm"), (0, ""))

    def test_what_has_no_known_name_is_told_too(self):
        status, told = self.run_on(True, "pacman", what="release")
        self.assertEqual(status, 1)
        self.assertIn("names are only known on Debian for: libacl1-dev ", told)

    def test_any_other_system_gets_the_names_of_debian(self):
        status, told = self.run_on(False)
        self.assertEqual(status, 1)
        self.assertIn("Debian's packages g++ cmake ", told)


if __name__ == "__main__":
    unittest.main()
