"""The table of collectives in logs of NCCL Inspector equals what is computed here from their lines; its bus bandwidth is the one that
Inspector gives the fastest rank. FORETRACE names the program, FORETRACE_CORPUS a folder with published examples."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
sys.dont_write_bytecode = True

import inspector_logs  # noqa: E402

FORETRACE = os.environ.get("FORETRACE", "")
CORPUS = os.environ.get("FORETRACE_CORPUS", "")


def run(*arguments):
    return subprocess.run([FORETRACE, "collective", "auto", *map(str, arguments)], capture_output=True, text=True)


def asked(*arguments):
    done = run(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@unittest.skipUnless(FORETRACE, "needs FORETRACE")
class Logs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def log(self, *lines, name="a.jsonl"):
        path = self.folder / name
        path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
        return path

    def eight(self, **more):
        """The records of one collective of eight ranks."""
        communicator = ("0x1", "", 8, 1)
        return [inspector_logs.record(communicator, rank, "AllReduce", 1, 900 + rank, **more) for rank in range(8)]

    def notes(self, *lines):
        return [(note["text"], note["count"], note["example"].rpartition(", ")[2]) for note in asked("--against", self.log(*lines))["notes"]]

    def test_a_job_of_64_ranks(self):
        inspector_logs.write(self.folder / "logs", 64, 60)
        expected = inspector_logs.table_of(one for rank in inspector_logs.logs(64, 60) for one in rank)
        report = asked("--against", self.folder / "logs", "--machine", "dgx-h100")
        self.assertEqual(report["notes"], [])
        rows = {(row["operation"], row["group"], row["bytes"]): row for row in report["recorded"]}
        self.assertEqual(rows.keys(), expected.keys())
        self.assertEqual(len(rows), 3 + 8)
        for key, truth in expected.items():
            row = rows[key]
            for name in ("count", "kernels", "kernel_total_ns", "kernel_ns", "matched"):
                self.assertEqual(row[name], truth[name], (key, name))
            self.assertEqual(row["transfer"]["typical_ns"], truth["transfer"], key)
            self.assertEqual((row["skew"]["typical_ns"], row["skew"]["most_ns"]), (truth["skew"], truth["most"]), key)
            self.assertAlmostEqual(row["busbw_bytes_per_second"] / truth["rate"], 1, delta=1e-5)
            self.assertEqual(row["last"]["times"], truth["last"], key)
            self.assertGreater(row["priced_ns"], 0)
            self.assertEqual((row["ranks"], row["nodes"]), (64, 8) if key[1] == "world" else (8, 1))
            if key[1] == "world":
                self.assertEqual(row["last"]["rank"], inspector_logs.LATE)
                self.assertGreater(row["skew"]["most_ns"], 1000 * (inspector_logs.LATENESS - 500))
        totals = [row["kernel_total_ns"] for row in report["recorded"]]
        self.assertEqual(totals, sorted(totals, reverse=True))

    def test_every_form_has_the_table(self):
        path = self.log(*self.eight())
        text = run("--against", path).stdout
        self.assertRegex(text, r"all_reduce +0x1 +67108864 +1 .* 7\.00 .* 0, 100 % +900\.00")
        self.assertIn("all_reduce,", run("--against", path, "--format", "csv").stdout.replace('"', ""))
        page = self.folder / "a.html"
        self.assertEqual(run("--against", path, "--html", page, "-o", self.folder / "a.txt").returncode, 0)
        self.assertIn("0, 100 %", page.read_text())

    def test_calibrates_and_compares(self):
        inspector_logs.write(self.folder / "logs", 16, 20)
        report = asked("--machine", "dgx-h100", "--calibrate", self.folder / "logs", "--against", self.folder / "logs")
        for row in report["recorded"]:
            self.assertAlmostEqual(row["error"], 0, delta=0.02)
        one = json.loads(subprocess.run([FORETRACE, "collective", "all_gather", "--machine", "dgx-h100", "--against", self.folder / "logs",
                                         "--format", "json"], capture_output=True, text=True, check=True).stdout)
        row = one["rows"][0]
        self.assertEqual((row["bytes"], row["ranks"], row["nodes"]), (16 * 1048576, 16, 2))
        self.assertAlmostEqual(row["measured_ns"], 625_000, delta=25_000)

    def test_packed_logs(self):
        (self.folder / "a.jsonl.gz").write_bytes(gzip.compress(self.log(*self.eight()).read_bytes()))
        self.assertEqual(asked("--against", self.folder / "a.jsonl.gz")["recorded"], asked("--against", self.folder / "a.jsonl")["recorded"])

    def test_odd_lines_are_noted_with_their_number(self):
        good = self.eight()
        missing = json.loads(json.dumps(good[0]))
        del missing["coll_perf"]["coll_exec_time_us"]
        host = json.loads(json.dumps(good[0]))
        host["coll_perf"]["coll_timing_source"] = "collective_cpu"
        other = "lines that are no record of NCCL Inspector are left out"
        self.assertEqual(self.notes(*good, json.dumps(good[0])[:200]), [("the last line is cut off and left out", 1, "line 9")])
        self.assertEqual(self.notes(*good, {"a": 1}, "nonsense\n"), [(other, 2, "line 9")])
        self.assertEqual(self.notes(*good, good[3], good[3]), [("records that come twice are left out", 2, "")])
        (text, count, example), = self.notes(*good, missing)
        self.assertEqual((count, example), (1, "line 9"))
        self.assertIn("coll_exec_time_us", text)
        (text, _, _), = self.notes(*good, host)
        self.assertIn("collective_cpu", text)
        (text, count, _), = self.notes(*self.eight(version="v9.0"))
        self.assertIn("another version", text)
        self.assertEqual(count, 8)
        self.assertEqual(self.notes(*self.eight(version="v4.0")), [])

    def test_impossible_numbers_are_left_out(self):
        for part, name, value in (("header", "rank", 8), ("header", "n_ranks", -1), ("header", "n_ranks", 2**40), ("header", "nnodes", 9),
                                  ("header", "id", 7), ("coll_perf", "coll_exec_time_us", 1e300), ("coll_perf", "coll_msg_size_bytes", -5),
                                  ("coll_perf", "coll_sn", "x"), ("coll_perf", "coll_exec_time_us", 2**63), ("coll_perf", "coll", None)):
            odd = json.loads(json.dumps(self.eight()[0]))
            odd[part][name] = value
            (text, count, _), = self.notes(*self.eight(), odd)
            self.assertEqual(count, 1, (name, value))
            self.assertIn("impossible", text)

    def test_ranks_that_are_missing_leave_no_transfer(self):
        report = asked("--against", self.log(*self.eight()[:7]))
        row, = report["recorded"]
        self.assertEqual((row["count"], row["kernels"], row["matched"]), (1, 7, 0))
        self.assertIsNone(row["transfer"])
        self.assertTrue(any("all ranks" in text for text in report["assumptions"]))
        done = run("--machine", "dgx-h100", "--calibrate", self.folder / "a.jsonl", "--ranks", 8)
        self.assertEqual(done.returncode, 2)
        self.assertIn("record all ranks", done.stderr)

    def test_refuses_in_one_sentence(self):
        for content, part in (("", "no measured collective"), ('{"a": 1}\n', ""), (json.dumps(self.eight()[0])[:190], "has no collective")):
            (self.folder / "a.jsonl").write_text(content)
            done = run("--against", self.folder / "a.jsonl")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(part, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        told = subprocess.run([FORETRACE, "info", self.log(*self.eight())], capture_output=True, text=True)
        self.assertIn("collective auto --against", told.stderr)

    def test_a_folder_may_hold_other_files(self):
        self.log(*self.eight())
        (self.folder / "notes.txt").write_text("x")
        report = asked("--against", self.folder)
        self.assertEqual(len(report["recorded"]), 1)
        self.assertIn("files that are no log", report["notes"][0]["text"])

    @unittest.skipUnless(CORPUS, "needs FORETRACE_CORPUS")
    def test_published_examples(self):
        folder = pathlib.Path(CORPUS) / "nccl-inspector"
        reduce, scatter = asked("--against", folder / "v4.0.jsonl")["recorded"]
        self.assertEqual((reduce["operation"], reduce["bytes"], reduce["kernel_ns"], reduce["ranks"]), ("all_reduce", 17179869184, 61_974_000, 8))
        # A reduce-scatter of 32 ranks that each receive 64 KiB. Inspector says 19.065018 GB/s in 110 us.
        self.assertEqual((scatter["bytes"], scatter["nodes"]), (32 * 65536, 4))
        self.assertAlmostEqual(scatter["bytes"] / 110e-6 / 19.065018e9, 1, delta=1e-6)
        named, = asked("--against", folder / "v4.2.jsonl")["recorded"]
        self.assertEqual(named["group"], "DP Group 0")
        received, = asked("--against", folder / "v4.0-p2p.jsonl", "--machine", "dgx-h100")["recorded"]
        self.assertEqual((received["operation"], received["bytes"], received["kernel_ns"], received["ranks"]), ("recv", 1048576, 4000, 2))
        both = {row["operation"]: row for row in asked("--against", folder / "inspector.prom")["recorded"]}
        # 678.263 GB/s of bus bandwidth in 9498.47 us, of 4 GiB.
        self.assertAlmostEqual(both["all_reduce"]["bytes"] / 2**32, 1, delta=1e-5)
        self.assertEqual(both["all_reduce"]["kernel_ns"], 9_498_470)
        self.assertAlmostEqual(both["send"]["bytes"] / 2**29, 1, delta=1e-4)
        everything = asked("--against", folder)
        self.assertEqual(len(everything["recorded"]), 5)


if __name__ == "__main__":
    unittest.main()
