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


@unittest.skipUnless(shutil.which("dpkg-query") and (BUILD / "build.ninja").exists(), "needs dpkg-query, and a build by Ninja")
class Release(unittest.TestCase):
    def made(self, folder):
        subprocess.run([sys.executable, ROOT / "scripts" / "release.py", "--build", BUILD, "--out", folder], check=True, capture_output=True)
        return sorted(path.name for path in pathlib.Path(folder).iterdir())

    def test_it_holds_a_program_its_sums_and_what_it_is_made_of(self):
        with tempfile.TemporaryDirectory() as folder:
            sums, bill, archive = self.made(folder)
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


if __name__ == "__main__":
    unittest.main()
