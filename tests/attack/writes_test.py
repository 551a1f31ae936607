"""Whatever happens while a file is written, either the old or the new file is complete afterwards.

Every writer of the program is tested with full disks, limits on the size of files, signals at the worst moment,
folders and files that may not be written, links, rights, pipes and devices."""

import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import unittest

import attacked
import written

NOBODY = 65534
BEFORE = b"what was here before\n" * 50


class Target:
    """A folder of its own with an old file in it."""

    def __init__(self, writer, folder, old):
        self.writer, self.inputs, self.old = writer, folder, old
        self.folder = folder / "out" / "target"  # Always the same, because some files contain their own path.
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.path = self.folder / writer.name
        self.path.write_bytes(old)

    def start(self, **options):
        return subprocess.Popen([attacked.FORETRACE, *self.writer.line(self.path)], cwd=self.inputs, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=written.environment(self.inputs), **options)

    def run(self, **options):
        process = self.start(**options)
        out, err = process.communicate()
        return process.returncode, out, err

    def state(self):
        """A value that changes as soon as anything is written."""
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in os.scandir(self.folder)]
        return sorted((name, data.st_size, data.st_ino, data.st_mtime_ns) for name, data in found)

    def left(self):
        return sorted(entry.name for entry in os.scandir(self.folder) if entry.name != self.writer.name)


class Writes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        cls.folder.chmod(0o755)
        written.make_inputs(cls.folder)
        (cls.folder / "out").mkdir()
        cls.writers = [(writer, *cls.contents(writer)) for writer in written.writers()]

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    @classmethod
    def contents(cls, writer):
        """The content of the target before a run, and after it."""
        old = (cls.folder / "ledger.json").read_bytes() if writer.goes_on else BEFORE
        target = Target(writer, cls.folder, old)
        code, _, err = target.run()
        assert code in (0, 1, 4), (str(writer), code, err)
        return old, target.path.read_bytes()

    def each(self, check):
        for writer, old, new in self.writers:
            with self.subTest(str(writer)):
                check(writer, Target(writer, self.folder, old), new)

    def check_whole(self, target, new, code):
        now = target.path.read_bytes()
        self.assertIn(now, (target.old, new), f"{len(now)} bytes after {code}; before {len(target.old)}, whole {len(new)}")

    def test_every_output_has_a_writer(self):
        outputs = {(command, name) for command, names in written.outputs_in_help().items() for name in names}
        covered = {(writer.command, writer.output) for writer, _, _ in self.writers}
        self.assertEqual(outputs, (covered - {("check", "--baseline")}) | set(written.ELSEWHERE))
        self.assertEqual([], written.undeclared_in_help())

    def test_a_limit_on_the_size_of_files(self):
        def check(_writer, target, new):
            most = max(1, len(new) // 2)
            code, _, err = target.run(preexec_fn=lambda most=most: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
            self.assertEqual(2, code, err)
            self.assertIn(b"cannot write", err.splitlines()[-1])
            self.assertEqual(target.old, target.path.read_bytes())
            self.assertEqual([], target.left())
        self.each(check)

    def test_a_full_disk(self):
        """Runs in a mount namespace of its own, where the target is a small disk in memory."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("only root can mount a small disk")
        done = subprocess.run(["unshare", "-m", sys.executable, __file__, "--full-disk", self.folder], check=False, capture_output=True)
        self.assertEqual(b"", done.stdout + done.stderr)
        self.assertEqual(0, done.returncode)

    def stop(self, number):
        """Sends the signal at the first sign of writing, again and again until it has ended some runs: on a busy machine most runs
        are over before it arrives. Returns how many it has ended."""
        ended = []

        def check(_writer, target, new):
            before = target.state()
            process = target.start(preexec_fn=attacked.no_signal_ignored)
            attacked.wait_until(lambda: process.poll() is not None or target.state() != before, every=0.0002)
            process.send_signal(number)
            process.communicate()
            if process.returncode == -number:
                ended.append(number)
            self.assertIn(process.returncode, (-number, 0, 1, 4))
            self.check_whole(target, new, process.returncode)
            if number == signal.SIGKILL:
                # Nothing can be deleted then, but the remains must not be taken for a trace of this folder.
                self.assertEqual([], [name for name in target.left() if not name.startswith(".")])
            else:
                self.assertEqual([], target.left())
        for _ in range(100):
            self.each(check)
            if len(ended) > 5:
                break
        return len(ended)

    def test_interrupted(self):
        self.assertGreater(self.stop(signal.SIGINT), 5)

    def test_terminated(self):
        self.assertGreater(self.stop(signal.SIGTERM), 5)

    def test_killed(self):
        self.assertGreater(self.stop(signal.SIGKILL), 5)

    def test_an_ignored_signal_stays_ignored(self):
        writer, old, new = self.writers[0]
        target = Target(writer, self.folder, old)
        process = target.start(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        process.communicate()
        self.assertEqual(0, process.returncode)
        self.assertEqual(new, target.path.read_bytes())

    def test_folders_and_files_that_may_not_be_written(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, who can become nobody")
        program = self.folder / "foretrace"
        shutil.copy(attacked.FORETRACE, program)
        try:
            subprocess.run([program, "--version"], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, check=False)
        except PermissionError:
            self.skipTest("nobody may not enter a folder above the temporary one")

        def check(writer, target, new):
            for folder, file in ((0o555, 0o666), (0o777, 0o444)):
                target.folder.chmod(folder)
                target.path.chmod(file)
                done = subprocess.run([program, *writer.line(target.path)], cwd=self.folder, user=NOBODY, group=NOBODY, extra_groups=[],
                                      capture_output=True, check=False, env={**written.environment(self.folder), "TMPDIR": "/tmp"})
                if writer.grows and file == 0o666:
                    self.assertEqual(new, target.path.read_bytes())
                    target.path.write_bytes(target.old)
                    continue
                self.assertEqual(2, done.returncode, done.stderr)
                self.assertIn(b"Permission denied", done.stderr)
                self.assertEqual(target.old, target.path.read_bytes())
                self.assertEqual([], target.left())
        self.each(check)

    def test_a_symbolic_link_stays(self):
        def check(writer, target, new):
            elsewhere = target.folder / "elsewhere"
            elsewhere.mkdir()
            real = elsewhere / ("real." + writer.name.split(".", 1)[1])
            target.path.rename(real)
            (target.folder / "second").symlink_to(os.path.relpath(real, target.folder))
            target.path.symlink_to("second")
            code, _, err = target.run()
            self.assertIn(code, (0, 1, 4), err)
            self.assertTrue(target.path.is_symlink())
            self.assertEqual(new, real.read_bytes())
            self.assertEqual(["elsewhere", "second"], target.left())
            self.assertEqual([real.name], os.listdir(elsewhere))
        self.each(check)

    def test_rights_and_owners_stay(self):
        def check(_writer, target, new):
            target.path.chmod(0o600)
            if os.geteuid() == 0:
                os.chown(target.path, NOBODY, NOBODY)
            before = target.path.stat()
            target.run(umask=0o022)
            after = target.path.stat()
            self.assertEqual(new, target.path.read_bytes())
            self.assertEqual((before.st_mode, before.st_uid, before.st_gid), (after.st_mode, after.st_uid, after.st_gid))
        self.each(check)

    def test_a_new_file_has_the_rights_of_the_umask(self):
        def check(_writer, target, _new):
            if target.writer.goes_on:
                return
            target.path.unlink()
            target.run(umask=0o027)
            self.assertEqual(0o640, stat.S_IMODE(target.path.stat().st_mode))
        self.each(check)

    def test_another_name_keeps_the_old_contents(self):
        def check(writer, target, new):
            other = target.folder / "other"
            other.hardlink_to(target.path)
            target.run()
            self.assertEqual(new, target.path.read_bytes())
            self.assertEqual(new if writer.grows else target.old, other.read_bytes())
        self.each(check)

    def test_a_pipe_gets_all(self):
        def check(writer, target, new):
            if writer.goes_on or writer.command == "check" and writer.output == "--baseline":
                return  # These files are read first.
            target.path.unlink()
            os.mkfifo(target.path)
            got = []
            reader = threading.Thread(target=lambda: got.append(target.path.read_bytes()), daemon=True)
            reader.start()
            code, _, err = target.run()
            self.assertIn(code, (0, 1, 4), err)
            reader.join(attacked.PATIENCE)
            self.assertEqual(len(new) - (len(target.old) if writer.grows else 0), len(got[0]))
            self.assertTrue(stat.S_ISFIFO(target.path.stat().st_mode))
            self.assertEqual([], target.left())
        self.each(check)

    def test_a_full_device_is_an_error_and_stays_a_device(self):
        def check(writer, target, _new):
            if writer.goes_on or writer.command == "check" and writer.output == "--baseline":
                return
            target.path.unlink()
            target.path.symlink_to("/dev/full")
            code, _, err = target.run()
            self.assertEqual(2, code)
            self.assertIn(b"No space left on device", err)
            self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))
            self.assertTrue(target.path.is_symlink())
        self.each(check)

    def test_standard_output_by_name_goes_on_where_it_is(self):
        log = self.folder / "log"
        for name in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
            log.write_bytes(BEFORE)
            with log.open("ab") as out:
                subprocess.run([attacked.FORETRACE, "info", "trace.json", "-o", name, "--no-cache"], cwd=self.folder, stdout=out, check=True)
            self.assertTrue(log.read_bytes().startswith(BEFORE))
            self.assertGreater(log.stat().st_size, len(BEFORE))


def on_a_full_disk(folder):
    """Prints what is wrong. The disk has room for the old file and for less than half of the new one."""
    out = folder / "out" / "disk"
    out.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", out], check=True)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    for writer in written.writers():
        old = (folder / "ledger.json").read_bytes() if writer.goes_on else BEFORE
        path = out / writer.name
        path.write_bytes(old)
        with (out / "filler").open("wb", buffering=0) as filler:
            try:
                while filler.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                pass
        if not writer.grows:  # The last block of its old file has room left.
            done = attacked.run(*writer.line(path), cwd=folder)
            left = sorted(set(os.listdir(out)) - {"filler", writer.name})
            now = path.read_bytes() if path.exists() else None
            if (done.returncode, now, left) != (2, old, []) or b"No space left" not in done.stderr and b"full" not in done.stderr:
                print(writer, "exit code", done.returncode, "old file kept", now == old, "left", left, done.stderr)
        for name in os.listdir(out):
            (out / name).unlink()


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--full-disk":
        on_a_full_disk(pathlib.Path(sys.argv[2]))
    else:
        unittest.main()
