#!/usr/bin/env python3
"""Files of a release where nothing else is: the static program in an empty root, that of arm64 in QEMU, the Debian packages in a bare Debian.
Prints megabytes and seconds to the first answer. FORETRACE_RELEASE names the folder that scripts/release.py made; FORETRACE_ROOT a folder that `debootstrap
--variant=minbase bookworm FOLDER` made, of which a copy is used."""

import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import tempfile
import time
import unittest

from install_test import CMAKE, MAIN

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASE = pathlib.Path(os.environ.get("FORETRACE_RELEASE", "/nowhere"))
DEBIAN = pathlib.Path(os.environ.get("FORETRACE_ROOT", "/nowhere"))
ARM64 = next(RELEASE.glob("foretrace-*-linux-aarch64.tar.gz"), None)
QEMU = shutil.which("qemu-aarch64-static")
TRACE = ROOT / "traces" / "resnet18-v100-loader0.pt.trace.json.gz"


def inside(root, command):
    """What a command prints whose whole file system is `root`, and the seconds that it takes."""
    begin = time.monotonic()  # clock: measured for people, not compared
    done = subprocess.run(["chroot", root, *command], capture_output=True, text=True, check=False, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                                                                                                 "DEBIAN_FRONTEND": "noninteractive"})
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, time.monotonic() - begin  # clock: measured for people, not compared


@unittest.skipUnless(RELEASE.is_dir() and os.geteuid() == 0, "FORETRACE_RELEASE names no folder of a release, or this is not root")
class Bare(unittest.TestCase):
    def test_the_static_program_answers_in_an_empty_root(self):
        archive = next(RELEASE.glob(f"foretrace-*-linux-{platform.machine()}.tar.gz"))
        with tempfile.TemporaryDirectory() as root:
            subprocess.run(["tar", "-xzf", archive, "-C", root, "--strip-components=1"], check=True)
            shutil.copy(TRACE, f"{root}/trace.json.gz")
            answer, seconds = inside(root, ["/bin/foretrace", "advise", "/trace.json.gz", "--no-cache"])
        self.assertIn("Bound by", answer)
        print(f"\n{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, first answer after {seconds:.1f} s")

    @unittest.skipUnless((DEBIAN / "usr" / "bin" / "apt-get").exists(), "FORETRACE_ROOT names no bare Debian")
    def test_debian_packages_bring_what_they_need(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder) / "root"
            subprocess.run(["cp", "-a", DEBIAN, root], check=True)
            packages = sorted(RELEASE.glob("*.deb"))
            for file in (*packages, TRACE, "/etc/resolv.conf"):
                shutil.copy(file, root / "etc" if file == "/etc/resolv.conf" else root)
            (root / "user").mkdir()
            (root / "user" / "CMakeLists.txt").write_text(CMAKE)
            (root / "user" / "main.cc").write_text(MAIN)
            inside(root, ["apt-get", "update", "-qq"])
            asked = f"apt-get install -y -qq --no-install-recommends /foretrace_*.deb && foretrace advise /{TRACE.name} --no-cache"
            answer, seconds = inside(root, ["sh", "-c", asked])
            self.assertIn("Bound by", answer)
            print(f"\nfirst answer after {seconds:.1f} s; " + ", ".join(f"{path.name} {path.stat().st_size / 1e6:.1f} MB" for path in packages))
            inside(root, ["sh", "-c", "apt-get install -y -qq --no-install-recommends /*foretrace*.deb g++ cmake make"])
            answer, _ = inside(root, ["sh", "-c", f"cmake -S user -B user/b && cmake --build user/b && user/b/user /{TRACE.name} /copy.ftrace"])
            self.assertIn("48911139", answer)
            asked = f"import foretrace; print(foretrace.predict('/{TRACE.name}', 'loader:workers=4'))"
            self.assertIn("48.91 ms", inside(root, ["python3", "-c", asked])[0])
            inside(root, ["apt-get", "remove", "-y", "-qq", "foretrace", "libforetrace-dev", "python3-foretrace"])
            self.assertFalse((root / "usr" / "bin" / "foretrace").exists())


@unittest.skipUnless(ARM64 and QEMU, "FORETRACE_RELEASE has no program for arm64, or there is no QEMU (scripts/setup.sh arm64)")
class Arm64(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        subprocess.run(["tar", "-xzf", ARM64, "-C", self.folder, "--strip-components=1"], check=True)

    def test_every_program_and_library_is_for_arm64(self):
        for file in (self.folder / "bin" / "foretrace", *(self.folder / "lib" / "foretrace" / f"libforetrace_{name}.so" for name in ("collect", "preload"))):
            self.assertEqual(file.read_bytes()[18:20], b"\xb7\0", file)  # ELF's number for AArch64.

    def test_answers_are_the_same_to_the_byte(self):
        for case in sorted(path.parent for path in (ROOT / "tests" / "golden").glob("*/cmd")):
            with self.subTest(case.name):
                done = subprocess.run([QEMU, self.folder / "bin" / "foretrace", *shlex.split((case / "cmd").read_text())], cwd=ROOT, capture_output=True,
                                      text=True, check=False, env={"XDG_CACHE_HOME": str(self.folder)})
                told = f"-- on stderr:\n{done.stderr}" if done.stderr else ""
                self.assertEqual(f"{done.stdout}{told}-- exit code {done.returncode}\n", (case / "expected.txt").read_text())


if __name__ == "__main__":
    unittest.main()
