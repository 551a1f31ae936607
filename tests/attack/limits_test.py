"""Small files that would take all memory, all of the disk or unlimited time; numbers that no machine has.

Each bomb is made here, cheaply, and read with an address space of a few GB and a temporary folder of its own.
"""

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import pathlib
import resource
import signal
import sqlite3
import struct
import subprocess
import tarfile
import tempfile
import unittest
import zlib

import attacked

MB = 1 << 20
GB = 1 << 30
ADDRESSES = 6 * GB
UNPACKS = "unpacks to more than"
# CPU time. Several times what each case needs on a quiet machine; without the limits of the program they would take minutes.
SOON = 20


class Outcome:
    """The result of a run: its exit code, its output, its CPU time in seconds and its peak memory in bytes."""

    def __init__(self, arguments, temporary, addresses=ADDRESSES, data=None):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
            resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
            if data is not None:
                resource.setrlimit(resource.RLIMIT_DATA, (data, data))

        command = [attacked.FORETRACE, *map(str, arguments)]
        environment = {**os.environ, "TMPDIR": str(temporary), "NO_COLOR": "1"}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, preexec_fn=limit)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = self.code = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read().decode(errors="replace"), err.read().decode(errors="replace")
        self.seconds = usage.ru_utime + usage.ru_stime
        self.bytes = usage.ru_maxrss * 1024
        if os.environ.get("FORETRACE_SHOW_FIGURES"):
            shown = (self.err or self.out).replace("\n", " ")[:150]
            print(f"  {' '.join(command[1:])[-60:]:60} exit {self.code:3} {self.seconds:6.2f} s {self.bytes // MB:6} MB  {shown}")


def deflated(parts):
    """Raw deflate data of a sequence of (bytes, times). Repeated bytes are compressed only once."""
    out = bytearray()
    for unit, times in parts:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)
        out += packed * times
    return bytes(out) + b"\x03\x00"


def gzipped(*parts):
    """The checksum is wrong: a reader that notices this has read everything."""
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + deflated(parts) + b"\0" * 8


def zstandard(start, blanks):
    """A frame of `start` followed by this many blanks, of which 128 KiB take 4 bytes."""
    block = lambda kind, size, last: ((size << 3) | (kind << 1) | last).to_bytes(3, "little")
    repeated = block(1, 1 << 17, 0) + b" "
    return b"\x28\xb5\x2f\xfd\x00\x38" + block(0, len(start), 0) + start + repeated * (blanks >> 17) + block(0, 0, 1)


def tar_header(name, size, kind=b"0", extra=None):
    header = bytearray(512)
    header[0 : len(name)] = name.encode()
    header[100:108] = b"0000644\0"
    header[124:136] = b"%011o\0" % size if size < 1 << 33 else b"\x80" + size.to_bytes(11, "big")
    header[136:148] = b"%011o\0" % 0
    header[156:157] = kind
    header[257:265] = b"ustar  \0" if kind == b"S" else b"ustar\00000"
    for at, value in (extra or {}).items():
        header[at : at + len(value)] = value
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def tar(members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def event(name="kernel", **more):
    return {"ph": "X", "cat": "kernel", "name": name, "ts": 1, "dur": 2, "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7}, **more}


def kineto(*events):
    return json.dumps({"traceEvents": list(events)}).encode()


def database(pages=None):
    """A small database of Nsight Systems' tables, and the size that its header states."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.sqlite")
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER)")
        connection.commit()
        connection.close()
        content = bytearray(pathlib.Path(path).read_bytes())
    if pages is not None:
        content[28:32] = struct.pack(">I", pages)
    return bytes(content)


class Attack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="limits-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def foretrace(self, *arguments, **options):
        outcome = Outcome([*arguments, "--no-cache"], self.temporary, **options)
        self.assertEqual(list(self.temporary.iterdir()), [], "temporary files are left")
        return outcome

    def expect_refused(self, path, *words, seconds=SOON, memory=2 * GB, command="info", **options):
        """Expects a refusal with exit code 3, in one sentence that names the file, and soon."""
        outcome = self.foretrace(command, path, **options)
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertEqual(outcome.err.count("\n"), 1, outcome.err)
        self.assertIn(path.name, outcome.err)
        for word in words:
            self.assertIn(word, outcome.err)
        self.assertLess(outcome.seconds, seconds)
        self.assertLess(outcome.bytes, memory)
        return outcome


class Compressed(Attack):
    def test_pickles(self):
        for name, unit in (("lists", b"]"), ("strings", b"\x8c\xff" + b"s" * 255), ("numbers", b"K\x01"), ("marks", b"(")):
            unit = unit * (MB // len(unit))
            bomb = self.write(f"{name}.pickle.gz", gzipped((b"\x80\x04(", 1), (unit, 10_000)))
            self.assertLess(bomb.stat().st_size, 50 * MB)
            self.expect_refused(bomb)

    def test_a_pickle_of_empty_lists_that_is_not_packed_much(self):
        self.expect_refused(self.write("x.pickle", b"\x80\x04(" + b"]" * (100 * MB) + b"l."), "more and smaller values")

    def test_a_pickle_that_repeats_one_event(self):
        event_of = lambda key, value: b"\x8c" + bytes([len(key)]) + key + value
        one = b"}(" + event_of(b"action", b"\x8c\x05alloc") + event_of(b"addr", b"K\x05") + event_of(b"size", b"K\x05") + b"uq\x01"
        history = b"](" + one + b"h\x01" * (30 * MB) + b"e"
        snapshot = b"\x80\x02}(" + event_of(b"segments", b"]") + event_of(b"device_traces", b"](" + history + b"e") + b"u."
        outcome = self.foretrace("info", self.write("x.pickle", snapshot))
        self.assertIn(outcome.code, (0, 3), outcome.err)
        self.assertLess(outcome.seconds, SOON)
        self.assertLess(outcome.bytes, 2 * GB)

    def test_events(self):
        unit = json.dumps(event()).encode() + b","
        bomb = self.write("x.json.gz", gzipped((b'{"traceEvents":[', 1), (unit * (MB // len(unit)), 10_000)))
        self.expect_refused(bomb, UNPACKS, "--max-unpacked")

    def test_blanks(self):
        start = b'{"traceEvents":['
        self.expect_refused(self.write("x.json.zst", zstandard(start, 100 * GB)), UNPACKS)
        blanks = bz2.compress(b" " * (8 * MB))
        self.expect_refused(self.write("x.json.bz2", bz2.compress(start) + blanks * 1000), UNPACKS)
        blanks = lzma.compress(b" " * (32 * MB), preset=0)
        self.expect_refused(self.write("x.json.xz", lzma.compress(start) + blanks * 1000), UNPACKS)

    def test_the_user_may_allow_less_or_more(self):
        unit = json.dumps(event()).encode() + b","
        bomb = self.write("x.json.gz", gzipped((b'{"traceEvents":[', 1), (unit * (MB // len(unit)), 20), (json.dumps(event()).encode() + b"]}", 1)))
        self.assertEqual(self.foretrace("info", bomb).code, 0)
        refused = self.foretrace("info", bomb, "--max-unpacked", "10MiB")
        self.assertEqual(refused.code, 3)
        self.assertIn("unpacks to more than 10MiB, the most that is allowed; --max-unpacked 20MiB allows more", refused.err)
        self.assertEqual(self.foretrace("info", bomb, "--max-unpacked", "lots").code, 2)


class Databases(Attack):
    def test_one_that_claims_16_terabytes(self):
        bomb = self.write("x.sqlite.gz", gzipped((database(pages=2**32 - 1), 1), (b"\0" * MB, 10_000)))
        self.expect_refused(bomb, UNPACKS)

    def test_one_that_goes_on_behind_its_end(self):
        bomb = self.write("x.sqlite.gz", gzipped((database(), 1), (b"\0" * MB, 10_000)))
        self.expect_refused(bomb, UNPACKS)

    def test_one_without_room_on_the_disk(self):
        bomb = self.write("x.sqlite.gz", gzipped((database(pages=2**31), 1), (b"\0" * MB, 10_000)))
        outcome = self.foretrace("info", bomb, "--max-unpacked", "100TiB")
        self.assertEqual(outcome.code, 3)
        self.assertIn("of disk", outcome.err)
        self.assertLess(outcome.seconds, SOON)

    def test_whoever_is_killed_leaves_nothing(self):
        bomb = self.write("x.sqlite.gz", gzipped((database(pages=0), 1), (b"\0" * MB, 10_000)))
        for how in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            command = [attacked.FORETRACE, "info", str(bomb), "--no-cache", "--max-unpacked", "3GiB"]
            process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(self.temporary)}, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, preexec_fn=attacked.no_signal_ignored)
            attacked.wait_until(lambda: self.has_temporary_file(process), "a temporary file")
            process.send_signal(how)
            self.assertEqual(process.wait(), -how)
            self.assertEqual(list(self.temporary.iterdir()), [])

    def has_temporary_file(self, process):
        """Also one without a name."""
        self.assertIsNone(process.poll(), "it ended without one")
        for entry in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):  # Closed since.
                if os.readlink(entry).startswith(str(self.temporary)):
                    return True
        return False


class Archives(Attack):
    def test_many_members(self):
        content = kineto(*[event(f"kernel {i}", ts=i) for i in range(300)])
        self.assertGreater(len(content), 36_000)
        members = tar([(f"rank{i}.json", content) for i in range(2000)])
        outcome = self.foretrace("info", self.write("x.tar.gz", gzip.compress(members, 1)), "--format", "json")
        self.assertEqual(outcome.code, 0, outcome.err)
        self.assertLess(outcome.seconds, SOON)

    def test_bombs_in_members(self):
        start = b'{"traceEvents":['
        inner = gzipped((start, 1), (b" " * MB, 300))
        bombs = {
            "one.tar.gz": gzipped((tar_header("a.json", 1 << 40) + start, 1), (b" " * MB, 10_000)),
            "last.tar.gz": gzipped((tar([("a.json", kineto(event()))])[:1024] + tar_header("b.bin", 1 << 40), 1), (b"\0" * MB, 10_000)),
            "packed.tar": tar_header("a.json.gz", 1 << 34) + gzipped((start, 1), (b" " * MB, 10_000)),
            "many.tar.gz": gzip.compress(tar([(f"{i}.json.gz", inner) for i in range(100)]), 1),
            "x.zip": struct.pack("<IHHHIIIIHH", 0x04034B50, 20, 8, 8, 0, 0, 0, 0, 6, 0) + b"a.json" + deflated([(start, 1), (b" " * MB, 10_000)]),
            "other.zip": struct.pack("<IHHHIIIIHH", 0x04034B50, 20, 8, 8, 0, 0, 0, 0, 5, 0) + b"a.bin" + deflated([(b"\1" * MB, 10_000)]),
        }
        for name, content in bombs.items():
            with self.subTest(name):
                self.expect_refused(self.write(name, content))

    def test_holes(self):
        hole = {386: b"%011o\0" % 0, 398: b"%011o\0" % 512, 483: b"\x80" + (1 << 42).to_bytes(11, "big")}
        bomb = tar_header("a.json", 512, b"S", hole) + b'{"traceEvents":['.ljust(512) + b"\0" * 1024
        self.expect_refused(self.write("holes.tar", bomb))

    def test_names_links_and_lies(self):
        good = tar([("good.json", kineto(event()))])[:1024]
        outside = self.folder / "outside"
        members = [
            tar_header("/absolute.json", 0),
            tar_header("../../up.json", 0),
            tar_header("link.json", 0, b"2", {157: b"/etc/passwd"}),
            tar_header("hard.json", 0, b"1", {157: str(outside).encode()[:99]}),
            tar_header("device", 0, b"3"),
            tar_header("fifo", 0, b"6"),
            tar_header("long", 1 << 62, b"L"),
            tar_header("pax", 1 << 40, b"x"),
            tar_header("size.json", (1 << 63) - 1),
            tar_header("size.json", (1 << 88) - 1),
        ]
        for lie in members:
            path = self.write("x.tar", good + lie + b"\0" * 2048)
            outcome = self.foretrace("info", path)
            self.assertIn(outcome.code, (0, 3), outcome.err)
            self.assertLess(outcome.bytes, GB)
            self.assertLess(outcome.seconds, SOON)
        self.assertFalse(outside.exists())

    def test_archives_in_archives(self):
        content = kineto(event())
        for depth in range(20):
            content = gzip.compress(tar([(f"{depth}.tar.gz", content)]))
        self.expect_refused(self.write("x.tar.gz", content), "must contain a trace")


class Numbers(Attack):
    def memory_event(self, ts, size, **more):
        arguments = {"Bytes": size, "Addr": 1, "Device Type": 1, "Device Id": 0, **more}
        return {"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "ts": ts, "pid": 0, "tid": 1, "args": arguments}

    def test_sizes_that_no_memory_has(self):
        huge = [self.memory_event(i, sign * number) for i, number in enumerate((2**62, 2**63 - 1, 2**47)) for sign in (1, -1)]
        many = [self.memory_event(i, 2**46, Addr=i + 1) for i in range(3000)]
        fine = [self.memory_event(10, 4096), self.memory_event(20, -4096), event(ts=12)]
        ops = [{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 0, "dur": 5000, "pid": 0, "tid": 1, "args": {}}]
        for name, events in (("huge", huge + fine), ("many", many + fine)):
            path = self.write(f"{name}.json", kineto(*ops, *events))
            for command in (["info", path], ["predict", path], ["memory", path]):
                outcome = self.foretrace(*command)
                self.assertIn(outcome.code, attacked.HONEST, outcome.err)
                self.assertNotIn("-2", outcome.out.replace(str(path), ""))
            self.assertIn("impossible sizes", self.foretrace("info", path).out)

    def test_threads_and_streams_at_the_end_of_the_numbers(self):
        for number in (2**63 - 1, -(2**63), 2**64 - 1, 2**31, -1):
            events = [event(pid=number, tid=number, args={"device": number, "stream": number, "correlation": number, "bytes": number})]
            events += [{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1, "dur": 9, "pid": number, "tid": number, "args": {"External id": number}}]
            outcome = self.foretrace("predict", self.write("x.json", kineto(*events)))
            self.assertIn(outcome.code, attacked.HONEST, outcome.err)


class Memory(Attack):
    def test_more_than_there_is(self):
        """A valid trace for which there is too little memory is refused by name, and not reported as a bug."""
        events = b",".join(json.dumps(event(f"kernel {i}", ts=i)).encode() for i in range(1000))
        path = self.write("x.json", b'{"traceEvents":[' + (events + b",") * 400 + events + b"]}")
        self.expect_refused(path, "needs more memory than there is", data=30 * MB)
        self.expect_refused(path, "needs more memory than there is", command="predict", data=30 * MB)
        self.assertEqual(self.foretrace("info", path).code, 0)

    def test_large_traces_are_announced(self):
        """The memory that reading needs is stated before anything is read, and the free memory if that is less."""
        path = self.write("x.json", b'{"traceEvents":[}')
        os.truncate(path, 1100 * MB)
        plenty = self.foretrace("predict", path, addresses=64 * GB)
        self.assertIn("x.json is large: this may take up to", plenty.err)
        self.assertIn("--steps 3-5 or --window 0s-2s reads only a part of it", plenty.err)
        little = self.foretrace("predict", path, addresses=64 * GB, data=2 * GB)
        self.assertIn(" are free; --steps", little.err)
        self.assertNotIn("is large", self.foretrace("predict", path, "--quiet", addresses=64 * GB).err)
        self.assertNotIn("is large", self.foretrace("predict", path, "--window", "0s-1s", addresses=64 * GB).err)
        os.truncate(path, 800 * MB)
        self.assertNotIn("is large", self.foretrace("predict", path, addresses=64 * GB).err)


class Patterns(Attack):
    def test_long_names(self):
        path = self.write("x.json", kineto(*[event("L" * 100_000 + str(i), ts=10 * i) for i in range(5)]))
        for pattern in ("L+x", "(L+)+x", "L*L*L*x$", "(L|LL)*x", "(.*)(.*)(.*)x"):
            outcome = self.foretrace("predict", path, "--with", f"scale:where.name=/{pattern}/,factor=0.5")
            self.assertEqual(outcome.code, 2, outcome.err)
            self.assertIn("no task matches", outcome.err)
            self.assertLess(outcome.seconds, SOON)

    def test_what_is_no_pattern(self):
        path = self.write("x.json", kineto(event()))
        for pattern, reason in (("(a)\\1", "back-references are not supported"), ("a(?=b)", "no lookahead"), ("(a{900}){900}", "repetitions")):
            outcome = self.foretrace("predict", path, "--with", f"scale:where.name=/{pattern}/,factor=0.5")
            self.assertEqual(outcome.code, 2)
            self.assertIn("name: must be a regular expression", outcome.err)
            self.assertIn(reason, outcome.err)


if __name__ == "__main__":
    unittest.main()
