#!/usr/bin/env python3
"""Files that were cut off, had bits flipped, or were never what their names say: each is answered, or refused in one line that names
it. A file that was cut off is never answered as if it were whole."""

import gzip
import json
import os
import pathlib
import random
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest

import attacked
import small_inputs

MEMORY = 2 << 30  # Bytes of address space.
SECONDS = 20      # CPU time; the inputs have a few kB.
READING = [["info", "--format", "json"], ["doctor"], ["predict"], ["memory"], ["input"], ["validate"]]
# Messages of failed assertions and of the sanitizers, which exit with codes that a shell could take for an answer.
OURS = (b"Sanitizer", b"runtime error:", b"CHECK", b"terminate called")


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def works_within_limits():
    """Sets no limit under sanitizers, which use address space for shadow memory."""
    return attacked.run("--version", preexec_fn=limits).returncode == 0


def truncations(data, chance, count):
    """Lengths to cut to: those that formats are sensitive to, and some at random."""
    places = {0, 1, len(data) - 1, len(data) - 2, len(data) // 2}
    while len(places) < min(count, len(data)):
        places.add(chance.randrange(len(data)))
    return [(f"cut at {place} of {len(data)}", data[:place]) for place in sorted(places) if place >= 0]


def changed(data, chance, count):
    for _ in range(count):
        place, bit = chance.randrange(len(data)), chance.randrange(8)
        yield f"bit {bit} of byte {place}", data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1:]
    for _ in range(max(1, count // 6)):
        begin, size = chance.randrange(len(data)), chance.randrange(1, 64)
        yield f"{size} zeros at {begin}", data[:begin] + bytes(size) + data[begin + size:]
        yield f"{size} bytes at {begin} lost", data[:begin] + data[begin + size:]
        yield f"{size} bytes at {begin} twice", data[:begin + size] + data[begin:]
        yield f"{size} bytes of 0xff at {begin}", data[:begin] + b"\xff" * size + data[begin + size:]


def odd_values(text, chance, count):
    """A JSON text in which one number, text or value is replaced by something that no proper tool writes, though some do."""
    numbers = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 1000, "0." + "9" * 1000, "-0", "9223372036854775808",
               "-9223372036854775809", "18446744073709551616", "1e-400", "4611686018427387904", "0x10", "01", "null", "[]", '"x"', "true"]
    strings = ['"\\ud800"', '"\\udc00\\ud800"', '"' + "x" * 3_000_000 + '"', '"\udcff\udcfe"', '"\\u0000"', '""', "5", "null",
               "[" * 500 + "]" * 500, "[" * 100_000, '{"a":' * 2_000 + "1" + "}" * 2_000]
    number = [m.span() for m in re.finditer(r"-?\b\d+(\.\d+)?\b", text)]
    string = [m.span() for m in re.finditer(r'"[^"\\]*"', text)]
    for _ in range(count):
        for places, values in ((number, numbers), (string, strings)):
            if not places:
                continue
            begin, end = chance.choice(places)
            value = chance.choice(values)
            yield f"{value[:20]} for {text[begin:end][:20]} at {begin}", text[:begin] + value + text[end:]
    key = re.search(r'"[^"\\]+":', text)
    yield "a key twice", text[:key.start()] + key.group() + "5, " + text[key.start():]
    yield "byte order mark", "\ufeff" + text
    yield "line ends of Windows", text.replace(", ", ",\r\n")
    yield "twice", text + "\n" + text


def places_in(value, place=()):
    """The places of all values in a JSON value, itself included; of a list, those in its first two elements."""
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places_in(one, (*place, key))


def with_value(whole, place, value):
    if not place:
        return value
    whole = whole.copy()
    whole[place[0]] = with_value(whole[place[0]], place[1:], value)
    return whole


NOTHING = [("empty", b""), ("one zero", b"\0"), ("zeros", bytes(100_000)), ("blanks", b" \n" * 1000), ("null", b"null"), ("list", b"[]"),
           ("object", b"{}"), ("number", b"1"), ("text", b'"x"'), ("deep lists", b"[" * 1_000_000), ("deep objects", b'{"a":' * 200_000),
           ("deep events", b'{"traceEvents":' + b"[" * 200_000), ("UTF-16", "{}".encode("utf-16")),
           ("no end of a text", b'{"a": "' + b"x" * 1_000_000),
           ("gzip of nothing", gzip.compress(b"")), ("half a gzip header", b"\x1f\x8b\x08"),
           ("a database without tables", b"SQLite format 3\0" + bytes(84))]


def zstd(data):
    """One frame with raw blocks."""
    assert 256 <= len(data) < 65536 + 256
    return b"\x28\xb5\x2f\xfd\x60" + struct.pack("<H", len(data) - 256) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


class Damage(unittest.TestCase):
    """Random numbers seeded by the name of the case, so that another case does not change the others."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.environ["XDG_CACHE_HOME"] = str(cls.folder / "cache")
        cls.within = {"preexec_fn": limits} if works_within_limits() else {}
        cls.inputs = small_inputs.of_every_importer(cls.convert)
        cls.inputs["kineto"].append(("job.json.zst", zstd(small_inputs.kineto())))
        cls.job = cls.folder / "job.ftrace"
        cls.job.write_bytes(cls.inputs["native"][0][1])
        cls.runs = 0

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.runs} runs")

    @classmethod
    def convert(cls, kineto, name):
        (cls.folder / "whole.json").write_bytes(kineto)
        converted = attacked.run("convert", cls.folder / "whole.json", cls.folder / name, "--no-cache")
        assert converted.returncode == 0, converted.stderr
        return (cls.folder / name).read_bytes()

    def ask(self, what, name, *command, is_named=True):
        """Runs the program, and checks that it only does what a program may do with a damaged file."""
        type(self).runs += 1
        try:
            done = attacked.run(*command, **self.within)
        except subprocess.TimeoutExpired:
            self.fail(f"{what}: no end of {command}")
        said = f"{name}, {what}: {' '.join(map(str, command))}: {done.returncode} {done.stderr[:500]}"
        self.assertIn(done.returncode, attacked.HONEST, said)
        for word in OURS:
            self.assertNotIn(word, done.stderr, said)
        if done.returncode in (2, 3) and done.stderr:
            self.assertEqual(done.stderr.count(b"\n"), 1, said)
            if is_named:
                self.assertIn(name.encode(), done.stderr, said)
        return done

    def rotten(self, name, data, commands, is_trace=True):
        """Does every kind of damage to one file; `commands(path)` are the possible commands on it, used in turn. An error about a
        trace must name it. A damaged text of a user's that can still be read may ask for something else, such as another file."""
        chance = random.Random(name)
        path = self.folder / "damaged" / name
        path.parent.mkdir(exist_ok=True)
        asked = 0
        for what, bytes_ in [*truncations(data, chance, 12), *changed(data, chance, 24)]:
            path.write_bytes(bytes_)
            choices = commands(path)
            with self.subTest(name=name, what=what):
                self.ask(what, name, *choices[asked % len(choices)], is_named=is_trace or what.startswith("cut"))
            asked += 1
        path.unlink()

    def test_no_importer_is_without_a_case(self):
        listed = attacked.run("list", "importers").stdout.decode()
        importers = {line.split()[0] for line in listed.splitlines() if line.strip()}
        self.assertEqual(importers, set(self.inputs))

    def test_whole_inputs_are_read_without_a_note_of_damage(self):
        for importer, files in self.inputs.items():
            for name, data in files:
                with self.subTest(name=name):
                    path = self.folder / name
                    path.write_bytes(data)
                    done = self.ask("whole", name, "info", path, "--format", "json", "--no-cache")
                    self.assertEqual(done.returncode, 0, done.stderr)
                    formats = {"native": "kineto", "spool": "collect", "rocpd": "rpd" if name.endswith("rpd") else "rocpd"}
                    self.assertEqual(json.loads(done.stdout)["format"], formats.get(importer, importer), name)

    def test_damaged_traces(self):
        for files in self.inputs.values():
            for name, data in files:
                self.rotten(name, data, lambda path: [[*command, path, "--no-cache"] for command in [READING[0], *READING]])

    def notes(self, path):
        """The notes of a trace, with their counts; None if the trace is refused."""
        done = self.ask("cut", path.name, "info", path, "--format", "json", "--no-cache")
        return {note["text"]: note["count"] for note in json.loads(done.stdout)["notes"]} if done.returncode == 0 else None

    def test_what_is_cut_off_is_never_answered_as_if_it_were_whole(self):
        for files in self.inputs.values():
            for name, data in files:
                path = self.folder / name
                path.write_bytes(data)
                whole = self.notes(path)
                chance = random.Random(name)
                for what, part in truncations(data, chance, 16):
                    with self.subTest(name=name, what=what):
                        path.write_bytes(part)
                        notes = self.notes(path)
                        self.assertNotEqual(notes, whole, "nothing says that it is not whole")

    def test_no_traces_at_all(self):
        for name in ("x.json", "x.json.gz", "x.ftrace", "x.sqlite", "x.db", "x.pickle", "x.et", "x.pftrace", "x.spool", "x.tar.gz",
                     "x.json.zst", "x"):
            path = self.folder / name
            for what, data in NOTHING if name in ("x.json", "x") else NOTHING[:3]:
                with self.subTest(name=name, what=what):
                    path.write_bytes(data)
                    done = self.ask(what, name, "predict", path, "--no-cache")
                    self.assertEqual(done.returncode, 3, done.stdout)
                    self.assertEqual(done.stdout, b"")
            path.unlink()
        for folder in (self.folder / "no traces", self.folder / "only rubbish"):
            folder.mkdir()
            (folder / "notes.txt").write_text("nothing here")
            if folder.name == "only rubbish":
                (folder / "rank0.json").write_bytes(bytes(5000))
            self.assertEqual(self.ask("folder", folder.name, "predict", folder, "--no-cache").returncode, 3)

    def test_a_trace_that_cannot_be_used_is_named_whichever_place_it_has(self):
        job = [self.job, "--no-cache"]
        prediction = self.folder / "predicted.json"
        prediction.write_bytes(self.ask("whole", "", "predict", *job, "--format", "json").stdout)
        for name, data in (("et.json", small_inputs.pytorch_et()), ("nothing recorded.spool", small_inputs.spool()[:4096])):
            path = self.folder / name
            path.write_bytes(data)
            for command in (["input", path], ["input", *job, "--cached", path], ["validate", *job, "--against", path], ["diff", path, *job],
                            ["diff", *job, path], ["verify", prediction, path], ["verify", prediction, *job, "--trace", path],
                            ["predict", *job, "--with", f"kernel_from:trace={path}"], ["advise", path], ["convert", path, self.folder / "x.graph"],
                            ["check", path, "--baseline", self.folder / "x", "--bless"]):
                with self.subTest(name=name, command=command):
                    self.assertIn(self.ask("no times", name, *command).returncode, (2, 3))

    def test_odd_values_in_traces(self):
        for importer in ("kineto", "rocprof", "pytorch_et"):
            name, data = self.inputs[importer][0]
            chance = random.Random(importer)
            for i, (what, text) in enumerate(odd_values(data.decode(), chance, 14)):
                with self.subTest(importer=importer, what=what):
                    path = self.folder / name
                    path.write_bytes(text.encode("utf-8", "surrogateescape"))
                    self.ask(what, name, *READING[i % len(READING)], path, "--no-cache")

    def files_of_users(self):
        """{file name: (its text, the commands that read it)}"""
        golden = attacked.ROOT / "tests/golden"
        made = lambda *command: self.ask("whole", "", *command)
        trace = [self.job, "--no-cache"]
        baseline = self.folder / "baseline.json"
        made("check", *trace, "--baseline", baseline, "--bless")
        prediction = made("predict", *trace, "--with", "amp", "--format", "json").stdout.decode()
        scenario = {"version": 1, "trace": str(self.job), "transforms": [{"use": "scale", "where": {"kind": "kernel"}, "factor": 0.5},
                                                                        {"use": "prefetch", "buffers": 2}],
                    "assert": [{"step_time": "<= 120ms"}]}
        swept = {"trace": str(self.job), "transforms": [{"use": "scale"}], "sweep": {"scale.factor": [0.5, 1, 2], "memory.limit": ["8GB"]}}
        pairs = {"schema": "foretrace.pairs/1", "pairs": [{"name": "a", "before": str(self.job), "after": str(self.job), "with": ["amp"],
                                                          "compare": "step_time", "class": "amp", "fitted": False}]}
        machine = {"name": "mine", "fp32": "15TFLOPS", "fp16": "100TFLOPS", "memory_bandwidth": "900GB/s", "memory": "16GB",
                   "host_link": "12GB/s", "launch_latency": "5us", "source": "me"}
        residuals = {"nodes": 1, "ranks_per_node": 8, "residuals": [[1024, 1.5], [4096, 0.5]]}
        numbers = dict.fromkeys(["base_us", "within_hop_us", "across_hop_us", "within_gbps", "across_gbps", "mixed"], 1)
        calibration = {"schema": "foretrace.calibration/2", "rows": 2, "spread_of_sizes": 0.1, "spread_of_shapes": 0.1,
                       "spread_of_kinds": 0.1, "operations": {"all_reduce": {"rows": 2, **numbers, "shapes": [residuals]}}}
        jobs = {"jobs": [{"name": "a", "count": 2, "least": 1, "most": 4, "up": "18s", "samples": 1e4, "rates": {"1": 2831, "8": 20379}}]}
        layers = {"samples": 5, "batches": [{"size": 2, "layers": [{"algorithms": [{"time": "5ms", "memory": "1MB"}]}]}]}
        system = {"settings": {"n": 2}, "tasks": [{"name": "a", "time": "n", "count": "n"}, {"name": "b", "after": ["a"]}],
                  "asks": [{"question": "collective", "settings": {"name": "all_reduce", "machine": "dgx-h100", "bytes": "{n}MB"},
                            "take": {"t": "/rows/0/time_ns"}}],
                  "search": {"n": "1..4"}, "figures": ["x = time"], "rows": [{"n": 1}],
                  "published": [{"figure": "x", "value": 1.5, "within": 0.1, "why": "because"}], "assumed": ["little"]}
        against = lambda path: [["collective", "auto", "--machine", "dgx-h100", "--against", path]]
        return {
            "calibration.json": (json.dumps(calibration), lambda path: [["collective", "all_reduce", "--machine", "dgx-h100", "--bytes", "1MB",
                                                                        "--calibrate", path]]),
            "cluster.json": (made("list", "machines", "dgx-h100", "--format", "json").stdout.decode(),
                             lambda path: [["collective", "all_reduce", "--machine", path, "--bytes", "1MB"]]),
            "inspector.jsonl": (small_inputs.inspector(), against), "inspector.prom": (small_inputs.inspector_text(), against),
            "jobs.json": (json.dumps(jobs), lambda path: [["plan", "allocate", path, "--nodes", "4"]]),
            "layers.json": (json.dumps(layers), lambda path: [["plan", "size", "--layers", path, "--memory", "1GB"]]),
            "system.json": (json.dumps(system), lambda path: [["plan", "system", path]]),
            "scenario.json": (json.dumps(scenario), lambda path: [["predict", "--scenario", path, "--no-cache"],
                                                                  ["check", *trace, "--scenario", path, "--baseline", baseline]]),
            "sweep.json": (json.dumps(swept), lambda path: [["sweep", path, "--quiet", "--no-cache", "--output",
                                                            self.folder / "x.jsonl", "--fresh"]]),
            "damaged baseline.json": (baseline.read_text(), lambda path: [["check", *trace, "--baseline", path]]),
            "ledger.json": ((golden / "predict-ledger/ledger.json").read_text(),
                            lambda path: [["predict", *trace, "--with", "amp", "--ledger", path]]),
            "pairs.json": (json.dumps(pairs), lambda path: [["validate", "--pairs", path, "--no-cache"]]),
            "prediction.json": (prediction, lambda path: [["verify", path, *trace]]),
            "machine.json": (json.dumps(machine), lambda path: [["predict", *trace, "--machine", path]]),
            "program.txt": ((golden / "memory-replay/program.txt").read_text(), lambda path: [["memory", "replay", path]]),
            "et.json": (self.inputs["pytorch_et"][0][1].decode(), lambda path: [["info", *trace, "--execution-trace", path]]),
        }

    def test_damaged_files_of_users(self):
        for name, (text, commands) in self.files_of_users().items():
            path = self.folder / name
            path.write_text(text)
            self.assertIn(self.ask("whole", name, *commands(path)[0]).returncode, (0, 1, 4), name)
            self.rotten(name, text.encode(), commands, is_trace=False)
            odd = list(odd_values(text, random.Random(name), 8)) if name.endswith(".json") else []
            for what, data in NOTHING + [(what, value.encode("utf-8", "surrogateescape")) for what, value in odd]:
                with self.subTest(name=name, what=what):
                    path.write_bytes(data)
                    self.ask(what, name, *commands(path)[0], is_named=False)


    def test_values_of_another_type(self):
        for name, (text, commands) in self.files_of_users().items():
            if not name.endswith(".json"):
                continue
            whole, chance = json.loads(text), random.Random(name)
            tries = [(place, value) for place in places_in(whole) for value in (5, -1.5, "x", None, [], {}, True, [[]], {"a": 1})]
            for place, value in chance.sample(tries, min(len(tries), 30)):
                with self.subTest(name=name, place=place, value=value):
                    (self.folder / name).write_text(json.dumps(with_value(whole, place, value)))
                    done = self.ask("another type", name, *commands(self.folder / name)[0], is_named=False)
                    self.assertNotIn(b"json.exception", done.stderr)


SWEEP = {"transforms": [{"use": "scale", "where": {"kind": "kernel"}}, {"use": "prefetch"}],
         "sweep": {"method": "random", "samples": 60, "seed": 3, "settings": {"scale.factor": "0.1..2", "prefetch.buffers": "1..4"}}}


class Plans(unittest.TestCase):
    """A killed search over layouts is continued from its file, and damage to the file gives an error or an answer, nothing worse."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def plan(self, kept):
        return attacked.run("plan", "mpt-125m", "--machine", "dgx-a100", "--gpus", "4", "--global-batch", "8", "--quiet", "--keep", self.folder / kept)

    def whole(self):
        done = self.plan("whole.jsonl")
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / "whole.jsonl").read_bytes(), done.stdout

    def test_torn_anywhere_it_ends_with_the_same_bytes(self):
        whole, answer = self.whole()
        for what, part in truncations(whole, random.Random(7), 14):
            with self.subTest(what=what):
                (self.folder / "torn.jsonl").write_bytes(part)
                done = self.plan("torn.jsonl")
                self.assertEqual((done.returncode, done.stdout), (0, answer), done.stderr)
                self.assertEqual((self.folder / "torn.jsonl").read_bytes(), whole)

    def test_damaged_bounds_are_refused_or_found_again(self):
        whole, _ = self.whole()
        odd = [(str(value), whole.replace(b'"bounds":[[', b'"bounds":[[' + value + b",", 1)) for value in (b"1e300", b'"x"', b"[]", b"-1", b"true")]
        for what, data in [*changed(whole, random.Random(8), 12), *odd]:
            with self.subTest(what=what):
                (self.folder / "damaged.jsonl").write_bytes(data)
                merged = attacked.run("plan", "merge", self.folder / "damaged.jsonl", "--output", self.folder / "merged.jsonl")
                self.assertIn(merged.returncode, attacked.HONEST, merged.stderr)
                done = self.plan("damaged.jsonl")
                self.assertIn(done.returncode, attacked.HONEST, done.stderr)


class Sweeps(unittest.TestCase):
    """A killed sweep is continued from its file, wherever the last line is torn."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        job = self.folder / "job.json"
        job.write_bytes(small_inputs.kineto())
        (self.folder / "sweep.json").write_text(json.dumps(SWEEP | {"trace": str(job)}))

    def command(self, results):
        return ["sweep", self.folder / "sweep.json", "--quiet", "--no-cache", "--jobs", "2", "--output", self.folder / results]

    def sweep(self, results):
        done = attacked.run(*self.command(results))
        self.assertEqual(done.returncode, 0, done.stderr)
        return (self.folder / results).read_bytes()

    def test_torn_anywhere_it_ends_with_the_same_bytes(self):
        for form in ("jsonl", "csv"):
            whole = self.sweep(f"whole.{form}")
            chance = random.Random(form)
            for what, part in truncations(whole, chance, 14):
                with self.subTest(form=form, what=what):
                    if form == "csv":
                        shutil.copy(self.folder / "whole.csv.sweep.json", self.folder / "torn.csv.sweep.json")
                    (self.folder / f"torn.{form}").write_bytes(part)
                    self.assertEqual(self.sweep(f"torn.{form}"), whole)

    def test_zeros_behind_what_was_written_are_not_taken_for_answers(self):
        whole = self.sweep("whole.jsonl")
        lines = whole.splitlines(keepends=True)
        (self.folder / "zeros.jsonl").write_bytes(b"".join(lines[:20]) + bytes(4096))
        self.assertEqual(self.sweep("zeros.jsonl"), whole)

    def test_killed_at_any_time_it_ends_with_the_same_bytes(self):
        chance = random.Random(5)
        for form in ("jsonl", "csv"):
            whole = self.sweep(f"whole.{form}")
            for kill in range(8):
                written = self.folder / f"killed.{form}"
                enough = chance.randrange(len(whole))
                process = subprocess.Popen([attacked.FORETRACE, *map(str, self.command(f"killed.{form}"))], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                attacked.wait_until(lambda: process.poll() is not None or written.exists() and written.stat().st_size >= enough)
                process.kill()
                process.wait()
                if written.exists():
                    part = written.read_bytes()
                    self.assertTrue(whole.startswith(part[:part.rfind(b"\n") + 1]), f"kill {kill}: what is written is not what is to be")
            self.assertEqual(self.sweep(f"killed.{form}"), whole)

    def test_damaged_answers_are_refused_or_asked_again(self):
        whole = self.sweep("whole.jsonl")
        chance = random.Random(6)
        for what, data in changed(whole, chance, 12):
            with self.subTest(what=what):
                path = self.folder / "damaged.jsonl"
                path.write_bytes(data)
                merged = attacked.run("sweep", "merge", path, "--output", self.folder / "merged.jsonl")
                self.assertIn(merged.returncode, attacked.HONEST, merged.stderr)
                done = attacked.run(*self.command("damaged.jsonl"))
                self.assertIn(done.returncode, attacked.HONEST, done.stderr)
                if done.returncode == 0:
                    self.assertEqual(path.read_bytes().count(b"\n"), whole.count(b"\n"))


if __name__ == "__main__":
    unittest.main()
