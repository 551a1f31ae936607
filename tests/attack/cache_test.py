"""The cache of traces reveals nothing about them to other users, and trusts nothing that other users could have written."""

import os
import pathlib
import shutil
import stat
import tempfile
import time
import unittest

import attacked

NOBODY = 65534


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


class Cache(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.TemporaryDirectory()
        self.addCleanup(self.place.cleanup)
        self.folder = pathlib.Path(self.place.name)
        self.cache = self.folder / "cache"
        self.trace = self.folder / "trace.json"
        sample = attacked.ROOT / "traces" / "gpt-a100-gpu-bound.pt.trace.json.gz"
        attacked.run("convert", sample, self.trace, "--steps", "3-4", "--no-cache")
        self.trace.chmod(0o600)

    def ask(self, folder=None):
        done = attacked.run("info", self.trace, "--cache-dir", folder or self.cache, umask=0o002)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def entries(self):
        return sorted(path for path in self.cache.iterdir() if path.name.endswith(".ftrace"))

    def other_answer(self):
        """Replaces the existing entry by one of another trace."""
        entry, = self.entries()
        attacked.run("convert", self.trace, self.folder / "part.ftrace", "--steps", "4", "--no-cache")
        mode = mode_of(entry)
        entry.unlink()
        shutil.copy(self.folder / "part.ftrace", entry)
        entry.chmod(mode)
        return entry

    def test_nobody_else_can_read_it(self):
        self.ask()
        entry, = self.entries()
        self.assertEqual((0o700, 0o600), (mode_of(self.cache), mode_of(entry)))

    def test_it_is_used_at_all(self):
        """Checks that the cache is used; otherwise the tests below would prove nothing."""
        right = self.ask()
        self.other_answer()
        self.assertNotEqual(right, self.ask())

    def test_a_folder_that_others_can_read_is_closed(self):
        self.ask()
        entry, = self.entries()
        self.cache.chmod(0o755)
        entry.chmod(0o644)
        self.ask()
        self.assertEqual((0o700, 0o600), (mode_of(self.cache), mode_of(entry)))

    def test_what_others_could_have_written_is_not_used(self):
        right = self.ask()
        for folder, file in ((0o777, 0o600), (0o775, 0o600), (0o700, 0o666), (0o700, 0o620)):
            entry = self.other_answer()
            self.cache.chmod(folder)
            entry.chmod(file)
            self.assertEqual(right, self.ask())
            self.assertEqual(0o700, mode_of(self.cache))

    def test_a_folder_of_other_things_is_not_touched(self):
        right = self.ask()
        self.other_answer()
        (self.cache / "thesis.tex").write_text("years of work")
        self.cache.chmod(0o777)
        self.assertEqual(right, self.ask())
        self.assertEqual(0o777, mode_of(self.cache))
        self.assertEqual("years of work", (self.cache / "thesis.tex").read_text())

    @unittest.skipIf(os.geteuid() != 0, "needs root, who can give files away")
    def test_what_is_of_others_is_not_used(self):
        right = self.ask()
        entry = self.other_answer()
        os.chown(entry, NOBODY, NOBODY)
        self.assertEqual(right, self.ask())
        self.other_answer()
        os.chown(self.cache, NOBODY, NOBODY)
        self.assertEqual(right, self.ask())

    def test_links_are_not_followed(self):
        right = self.ask()
        entry = self.other_answer()
        elsewhere = self.folder / "elsewhere.ftrace"
        for make in (elsewhere.symlink_to, elsewhere.hardlink_to):
            make(self.folder / "part.ftrace")
            entry.unlink()
            if make == elsewhere.symlink_to:
                entry.symlink_to(elsewhere)
            else:
                entry.hardlink_to(elsewhere)
            before = (self.folder / "part.ftrace").read_bytes()
            self.assertEqual(right, self.ask())
            self.assertEqual(before, (self.folder / "part.ftrace").read_bytes())
            self.assertFalse(entry.is_symlink())
            elsewhere.unlink()

    def test_a_file_that_changed_is_read_again(self):
        """Changes a trace but keeps its size and time: at both ends and in between, in place and as a new file."""
        text = bytearray(self.trace.read_bytes())
        names = [at for at in range(len(text) - 20) if text.startswith(b'"name": "', at) or text.startswith(b'"name":"', at)]
        self.assertGreater(len(names), 100)
        for at in (names[3], names[len(names) // 3], names[len(names) // 2], names[-3]):
            for in_place in (True, False):
                self.ask()
                before = self.trace.stat()
                end = text.index(b'"', at + 9)
                text[end - 1] = ord("Z") if text[end - 1] != ord("Z") else ord("Y")
                if not in_place:
                    self.trace.unlink()
                self.trace.write_bytes(text)
                os.utime(self.trace, ns=(before.st_atime_ns, before.st_mtime_ns))
                count = len(self.entries())
                self.ask()
                self.assertEqual(count + 1, len(self.entries()))

    def test_what_killed_writers_left_goes_and_counts(self):
        self.cache.mkdir(mode=0o700)
        stem = "0123456789abcdef" * 2 + ".ftrace"
        old, young, legacy = (self.cache / name for name in (f".{stem}.abcdefgh", f".{stem}.bcdefghi", f"{stem}.XyZ123"))
        for path, age in ((old, 7200), (young, 60), (legacy, 7200)):
            path.touch()
            os.truncate(path, 3 << 30)
            os.utime(path, (time.time() - age,) * 2)  # clock: the limit is an hour
        used = self.cache / stem
        used.touch()
        os.utime(used, (time.time() - 60,) * 2)  # clock: any time before the next entry's
        self.ask()
        self.assertEqual((False, True, False), (old.exists(), young.exists(), legacy.exists()))
        self.assertFalse(used.exists())  # The newer entry alone is beyond the limit.

    def test_recordings_of_the_user_are_no_copies(self):
        self.cache.mkdir()
        for name in ("mine.ftrace", "0123.ftrace", "rank0.ftrace.backup"):
            (self.cache / name).touch()
            os.truncate(self.cache / name, 3 << 30)
            os.utime(self.cache / name, (1, 1))
        self.ask()
        for name in ("mine.ftrace", "0123.ftrace", "rank0.ftrace.backup"):
            self.assertTrue((self.cache / name).exists())


if __name__ == "__main__":
    unittest.main()
