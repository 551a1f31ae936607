"""The file of every exporter, read by the format's own tool and by foretrace: the same steps, the same answer, the same job for `check`.
Uses the samples, and two recordings from the folder FORETRACE_CORPUS if it is set; FORETRACE names the program."""

import gzip
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORETRACE = os.environ.get("FORETRACE")
CORPUS = os.environ.get("FORETRACE_CORPUS")

SAMPLES = [ROOT / "traces" / f"{name}.pt.trace.json.gz" for name in ("resnet18-v100-loader0", "gpt-a100-gpu-bound")]
OF_CORPUS = ("hta-ddp-v100-mem/df_index_resolver.json.gz", "nanogpt-8rank/rank3.json.gz")
ENDINGS = ("json", "json.gz", "pftrace", "pftrace.gz", "ftrace", "sqlite")


def traces():
    return SAMPLES + [pathlib.Path(CORPUS) / name for name in OF_CORPUS if CORPUS]


def run(*arguments, code=0):
    done = subprocess.run([FORETRACE, *map(str, arguments), "--quiet", "--no-cache"], capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"{arguments}: exit code {done.returncode}: {done.stderr}{done.stdout[:2000]}")
    return done.stdout


def predicted(path, *arguments):
    return json.loads(run("predict", path, *arguments, "--format", "json"))


def tool(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout


class RoundTrip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.kernels = {trace: cls.kernels_of(trace) for trace in SAMPLES}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def kernels_of(trace):
        with gzip.open(trace, "rt") as file:
            return sum(event.get("cat") == "kernel" for event in json.load(file)["traceEvents"])

    def written(self, name):
        return pathlib.Path(self.folder.name) / name

    def assert_close(self, found, expected):
        found, expected = (one if isinstance(one, list) else [one] for one in (found, expected))
        self.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            self.assertLess(abs(one / other - 1), 1e-4)

    def test_foretrace_reads_the_same_steps_and_the_gate_the_same_job(self):
        for trace in traces():
            baseline = self.written("baseline.json")
            baseline.unlink(missing_ok=True)
            run("check", trace, "--baseline", baseline, "--bless")
            answer = predicted(trace)
            for ending in ENDINGS:
                for way in ("convert", "predict"):
                    with self.subTest(trace=trace.name, ending=ending, way=way):
                        path = self.written(f"x.{ending}")
                        run(*(("convert", trace, path) if way == "convert" else ("predict", trace, "--perfetto", path)))
                        again = predicted(path)
                        # The last step ends with its last event, which may be one that the format cannot store.
                        self.assertEqual(again["measured"]["steps"][:-1], answer["measured"]["steps"][:-1])
                        for key in ("steps", "step_time_ns"):
                            self.assert_close(again["measured"][key], answer["measured"][key])
                        run("check", path, "--baseline", baseline)
                        path.unlink()

    def test_a_predicted_timeline_has_the_predicted_step(self):
        for ending in ENDINGS:
            with self.subTest(ending=ending):
                path = self.written(f"y.{ending}")
                answer = predicted(SAMPLES[0], "--with", "loader:workers=4", "--perfetto", path)
                again = predicted(path)
                self.assertEqual(len(again["measured"]["steps"]), len(answer["predicted"]["steps"]))
                off = again["measured"]["step_time_ns"] / answer["predicted"]["step_time_ns"] - 1
                self.assertLess(abs(off), 1e-3)

    def test_no_file_says_where_it_was_written(self):
        for ending in ENDINGS + ("pickle",):
            with self.subTest(ending=ending):
                path = self.written(f"a_telling_name.{ending}")
                run("convert", SAMPLES[1], path)
                data = gzip.open(path).read() if ending.endswith("gz") else path.read_bytes()
                self.assertNotIn(b"a_telling_name", data)

    @unittest.skipUnless(shutil.which("sqlite3"), "there is no sqlite3 (scripts/setup.sh all)")
    def test_sqlite3_finds_the_kernels(self):
        for trace, kernels in self.kernels.items():
            path = self.written("x.sqlite")
            run("convert", trace, path)
            count = tool("sqlite3", "-readonly", str(path), "PRAGMA integrity_check; SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL;")
            self.assertEqual(count.split(), ["ok", str(kernels)])

    @unittest.skipUnless(shutil.which("protoc"), "there is no protoc (scripts/setup.sh all)")
    def test_protoc_reads_every_packet(self):
        path = self.written("x.pftrace")
        run("convert", SAMPLES[0], path)
        with open(path, "rb") as file:
            text = tool("protoc", "--decode_raw", stdin=file)
        self.assertGreaterEqual(sum(line == "1 {" for line in text.splitlines()), self.kernels[SAMPLES[0]])

    def test_events_of_a_track_nest_as_viewers_of_chrome_traces_need_it(self):
        path = self.written("x.json")
        run("predict", SAMPLES[0], "--with", "loader:workers=4", "--perfetto", path)
        tracks = {}
        for event in json.loads(path.read_text())["traceEvents"]:
            if event["ph"] == "X":
                start = round(1000 * event["ts"])
                tracks.setdefault((event["pid"], event["tid"]), []).append((start, -(start + round(1000 * event["dur"]))))
        for track, events in tracks.items():
            open_ends = []
            for start, end in sorted(events):
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                self.assertTrue(not open_ends or -end <= open_ends[-1], track)
                open_ends.append(-end)

    def test_a_memory_snapshot_is_a_plain_pickle(self):
        path = self.written("x.pickle")
        run("convert", SAMPLES[1], path)
        snapshot = pickle.loads(path.read_bytes())
        self.assertEqual({"segments", "device_traces"} - set(snapshot), set())
        peaks = [predicted(one)["baseline"]["memory"][0]["peak_allocated_bytes"] for one in (SAMPLES[1], path)]
        self.assertEqual(peaks[0], peaks[1])


if __name__ == "__main__":
    unittest.main()
