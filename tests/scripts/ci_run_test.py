#!/usr/bin/env python3
""".ci/run sees nothing of the environment of the shell that starts it, except what a clean machine would set, too."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUBS = {"setup.sh": "", "test.sh": "env -0 >seen", "explorer.py": "", "check_headers.sh": "", "tidy.sh": "", "format.sh": ""}

KEPT = {"HOME": "/home/somebody", "FORETRACE_CORPUS": "/a folder/of \"$things\"", "http_proxy": "http://proxy:1", "CCACHE_DIR": "/cache",
        "CI": "true", "SSL_CERT_FILE": "/etc/ssl/own.crt"}
DROPPED = {"PYTHONPATH": "/a", "PYTHONDONTWRITEBYTECODE": "1", "TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8", "LIBRARY_PATH": "/lib",
           "CUDA_HOME": "/cuda", "CXXFLAGS": "-O0", "CMAKE_GENERATOR": "Unix Makefiles", "CTEST_PARALLEL_LEVEL": "64"}


class Environment(unittest.TestCase):
    def test_only_the_listed_variables_are_kept(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / ".ci").mkdir()
            (folder / "scripts").mkdir()
            shutil.copy(ROOT / ".ci" / "run", folder / ".ci" / "run")
            for stub, command in STUBS.items():
                (folder / "scripts" / stub).write_text(f"#!/bin/sh\n{command}\n")
                (folder / "scripts" / stub).chmod(0o755)
            environment = {**KEPT, **DROPPED, "PATH": f"{folder}:{os.environ['PATH']}", "LANG": "C"}
            subprocess.run([folder / ".ci" / "run"], env=environment, check=True)
            seen = dict(item.split("=", 1) for item in (folder / "seen").read_text().split("\0") if item)
        self.assertEqual(seen.pop("PATH"), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        self.assertEqual(seen.pop("LANG"), "C.UTF-8")
        for of_the_shell in ("PWD", "OLDPWD", "SHLVL", "_"):
            seen.pop(of_the_shell, None)
        self.assertEqual(seen, KEPT)


if __name__ == "__main__":
    unittest.main()
