#!/usr/bin/env python3
"""The files of a release, made from the existing build, whose program is $FORETRACE."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["FORETRACE"]).resolve().parent
NODE = ROOT / "build-explorer" / "node"
TRACE = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"


def output(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@unittest.skipUnless(shutil.which("dpkg-query") and (BUILD / "build.ninja").exists(), "needs dpkg-query, and a build by Ninja")
class Release(unittest.TestCase):
    def made(self, folder, *more):
        subprocess.run([sys.executable, ROOT / "scripts" / "release.py", "--build", BUILD, "--out", folder, *more], check=True, capture_output=True)
        return sorted(path.name for path in pathlib.Path(folder).iterdir())

    def test_it_holds_a_program_its_sums_and_what_it_is_made_of(self):
        with tempfile.TemporaryDirectory() as folder:
            sums, bill, archive, _ = self.made(folder)
            self.assertEqual(sums, "SHA256SUMS")
            for line in (pathlib.Path(folder) / sums).read_text().splitlines():
                digest, name = line.split()
                self.assertEqual(hashlib.sha256((pathlib.Path(folder) / name).read_bytes()).hexdigest(), digest)
            described = json.loads((pathlib.Path(folder) / bill).read_text())
            names = {package["name"] for package in described["packages"]}
            self.assertLessEqual({"foretrace", "libsqlite3-dev", "zlib1g-dev", "nlohmann-json3-dev"}, names)
            self.assertEqual(len(described["relationships"]), len(described["packages"]))
            with tarfile.open(pathlib.Path(folder) / archive) as packed:
                members = {member.name.partition("/")[2]: member for member in packed}
            self.assertTrue(members["bin/foretrace"].mode & 0o100)
            self.assertIn("lib/foretrace/libforetrace_collect.so", members)
            self.assertEqual({(member.uid, member.mtime) for member in members.values()}, {(0, 0)})

    def test_the_same_build_gives_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            self.made(one), self.made(other)
            self.assertEqual((pathlib.Path(one) / "SHA256SUMS").read_text(), (pathlib.Path(other) / "SHA256SUMS").read_text())

    def test_the_wheel_gives_the_command_and_the_module(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if subprocess.run([sys.executable, "-m", "venv", folder / "venv"], capture_output=True, check=False).returncode != 0:
                self.skipTest("there is no venv (scripts/setup.sh all)")
            wheel = next(made for made in self.made(folder / "out") if made.endswith(".whl"))
            done = subprocess.run([folder / "venv" / "bin" / "pip", "install", "--no-index", folder / "out" / wheel], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            shutil.copy(TRACE, folder / "trace.json.gz")
            bare = {"PATH": "/nowhere", "HOME": name}
            self.assertIn("Bound by", output(folder / "venv" / "bin" / "foretrace", "advise", "trace.json.gz", cwd=folder, env=bare))
            asked = 'import foretrace; print(foretrace.ask("predict", trace="trace.json.gz", **{"with": ["loader:workers=4"]}))'
            self.assertIn("48.91 ms", output(folder / "venv" / "bin" / "python", "-c", asked, cwd=folder, env=bare))

    @unittest.skipIf(shutil.which("aarch64-linux-gnu-g++"), "there is a cross compiler, and a build takes half an hour")
    def test_without_a_cross_compiler_it_says_how_to_get_it(self):
        done = subprocess.run([sys.executable, ROOT / "scripts" / "release.py", "--arch", "arm64"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("scripts/setup.sh arm64", done.stderr)

    @unittest.skipUnless((NODE / "foretrace.wasm").exists() and shutil.which("npx"), "the program for Node is not built (scripts/explorer.py --node)")
    def test_the_npm_package_answers_as_the_program_does(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            package = next(made for made in self.made(folder, "--node", NODE) if made.endswith(".tgz"))
            shutil.copy(TRACE, folder / "trace.json.gz")
            command = ("advise", "trace.json.gz", "--no-cache")
            answer = output("npx", "--yes", "--offline", f"./{package}", *command, cwd=folder, env={**os.environ, "npm_config_cache": f"{name}/npm"})
            self.assertEqual(answer, output(os.environ["FORETRACE"], *command, cwd=folder))


if __name__ == "__main__":
    unittest.main()
