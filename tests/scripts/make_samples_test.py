"""The sample traces must equal the output of the script, and must obey the rules of the machine that they imitate."""

import collections
import gzip
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True

import make_samples  # noqa: E402

DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")


def nanoseconds(microseconds):
    return round(microseconds * 1000)


class Sample:
    def __init__(self, path):
        self.trace = json.loads(gzip.decompress(path.read_bytes()))
        self.complete = [event for event in self.trace["traceEvents"] if event["ph"] == "X"]
        self.device = self._sorted(event for event in self.complete if event["cat"] in DEVICE_CATEGORIES)
        self.calls = {event["args"]["correlation"]: event for event in self.complete if event["cat"] == "cuda_runtime"}
        self.steps = self._sorted(event for event in self.complete if event["name"].startswith("ProfilerStep#"))

    @staticmethod
    def _sorted(events):
        return sorted(events, key=lambda event: (event["ts"], -event["dur"]))

    @staticmethod
    def interval(event):
        start = nanoseconds(event["ts"])
        return start, start + nanoseconds(event["dur"])

    def busy(self):
        """The share of time, between the first and the last work of the device, in which the device works."""
        first, end, total = self.interval(self.device[0])[0], 0, 0
        for start, finish in map(self.interval, self.device):
            total += max(0, finish - max(start, end))
            end = max(end, finish)
        return total / (end - first)

    def step_time(self):
        """Median distance between the first device work launched in consecutive steps, in milliseconds."""
        firsts = []
        for step in self.steps:
            begin, end = self.interval(step)
            starts = [event["ts"] for event in self.device
                      if begin <= nanoseconds(self.calls[event["args"]["correlation"]]["ts"]) < end]
            firsts.append(min(starts))
        distances = sorted(after - before for before, after in zip(firsts[1:], firsts[2:]))
        return distances[len(distances) // 2] / 1000


class MakeSamples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.samples = {}
        for name, settings in make_samples.SAMPLES.items():
            path = pathlib.Path(cls.folder.name) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            settings().recording().run().write(path)
            cls.samples[name] = (path, Sample(path))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def each(self, only_trainings=False):
        for name, (path, sample) in self.samples.items():
            if only_trainings and name.startswith("llama"):
                continue
            with self.subTest(name):
                yield path, sample

    def test_the_files_in_the_repository_are_what_the_script_writes(self):
        for path, _ in self.each():
            kept = ROOT / "traces" / path.relative_to(self.folder.name)
            self.assertEqual(gzip.decompress(kept.read_bytes()), gzip.decompress(path.read_bytes()))
            self.assertLess(kept.stat().st_size, 300_000)

    def test_the_same_seed_makes_the_same_bytes(self):
        for path, _ in self.each():
            again = path.with_suffix(".again")
            make_samples.SAMPLES[str(path.relative_to(self.folder.name))]().recording().run().write(again)
            self.assertEqual(again.read_bytes(), path.read_bytes())

    def test_they_say_that_they_are_synthetic(self):
        for _, sample in self.each():
            self.assertIs(sample.trace["synthetic"], True)
            self.assertIn("make_samples.py", sample.trace["generator"])

    def test_they_have_steps(self):
        for _, sample in self.each(only_trainings=True):
            self.assertGreaterEqual(len(sample.steps), 5)

    def test_events_of_a_thread_nest(self):
        for _, sample in self.each(only_trainings=True):
            threads = collections.defaultdict(list)
            for event in sample.complete:
                if event["pid"] not in (0, "Spans"):
                    threads[event["tid"]].append(event)
            self.assertEqual(len(threads), 2)
            for events in threads.values():
                open_ends = []
                for start, end in map(Sample.interval, Sample._sorted(events)):
                    while open_ends and open_ends[-1] <= start:
                        open_ends.pop()
                    if open_ends:
                        self.assertLessEqual(end, open_ends[-1])
                    open_ends.append(end)

    def test_a_stream_does_one_thing_at_a_time_in_the_order_of_the_calls(self):
        for _, sample in self.each(only_trainings=True):
            last_end, last_call = {}, {}
            for event in sample.device:
                start, end = Sample.interval(event)
                call = event["args"]["correlation"]
                self.assertGreaterEqual(start, last_end.get(event["tid"], 0))
                self.assertGreater(call, last_call.get(event["tid"], 0))
                last_end[event["tid"]], last_call[event["tid"]] = end, call

    def test_nothing_on_the_device_starts_before_its_call(self):
        for _, sample in self.each():
            for event in sample.device:
                call_start, call_end = Sample.interval(sample.calls[event["args"]["correlation"]])
                start, end = Sample.interval(event)
                self.assertGreater(start, call_start)
                if event["cat"] != "gpu_memcpy":
                    self.assertGreater(start, call_end)

    def test_a_call_that_waits_returns_behind_what_it_waits_for(self):
        for _, sample in self.each(only_trainings=True):
            waits = [call for call in sample.calls.values() if call["name"].endswith("Synchronize")]
            self.assertGreater(len(waits), 0)
            for call in waits:
                start, end = Sample.interval(call)
                running = [Sample.interval(event)[1] for event in sample.device
                           if sample.calls[event["args"]["correlation"]]["ts"] < call["ts"]
                           and (call["name"] == "cudaDeviceSynchronize" or event["tid"] == 7)]
                self.assertGreater(end, max(running, default=0))

    def test_allocated_bytes_add_up(self):
        _, sample = self.samples["gpt-a100-gpu-bound.pt.trace.json.gz"]
        events = [event["args"] for event in sample.trace["traceEvents"] if event["name"] == "[memory]"]
        self.assertGreater(len(events), 100)
        live, total = {}, None
        for event in events:
            if event["Bytes"] > 0:
                self.assertNotIn(event["Addr"], live)
                live[event["Addr"]] = event["Bytes"]
            else:
                self.assertEqual(live.pop(event["Addr"]), -event["Bytes"])
            if total is not None:
                self.assertEqual(event["Total Allocated"], total + event["Bytes"])
            self.assertGreaterEqual(event["Total Reserved"], event["Total Allocated"])
            total = event["Total Allocated"]
        self.assertEqual(live, {})

    def test_ranks_leave_a_collective_together_and_the_late_rank_enters_last(self):
        sums = []
        for rank in (0, 1):
            _, sample = self.samples[f"gpt-a100-two-ranks/rank{rank}.pt.trace.json.gz"]
            self.assertEqual(sample.trace["distributedInfo"]["rank"], rank)
            sums.append([Sample.interval(event) for event in sample.device if event["name"].startswith("ncclDevKernel")])
        self.assertEqual(len(sums[0]), 3 * 6)
        waited = 0
        for (start, end), (late_start, late_end) in zip(*sums):
            self.assertEqual(end, late_end)
            waited += late_start - start
            self.assertGreater(late_end, late_start)
        self.assertGreater(waited, 6 * 5e6)  # Nanoseconds: more than 5 ms a step.

    def test_replayed_kernels_are_those_of_the_capture_in_its_order(self):
        _, steps = self.samples["llama-a100-decode/decode.pt.trace.json.gz"]
        _, capture = self.samples["llama-a100-decode/capture_traces/graphs.pt.trace.json.gz"]
        self.assertEqual(capture.device, [])
        launches = [event["args"]["kernel"] for event in Sample._sorted(capture.calls.values()) if "kernel" in event["args"]]
        of_sixteen = launches[len(launches) // 2:]  # The larger size is captured first.
        replays = collections.defaultdict(list)
        for event in steps.device:
            if "graph node id" in event["args"]:
                replays[event["args"]["correlation"]].append(event["name"])
        self.assertEqual(len(replays), 8)
        for names in replays.values():
            self.assertEqual(names, of_sixteen)

    def test_each_is_bound_by_what_its_name_says(self):
        samples = {name: sample for name, (_, sample) in self.samples.items()}
        inline = samples["resnet18-v100-loader0.pt.trace.json.gz"]
        workers = samples["resnet18-v100-loader4.pt.trace.json.gz"]
        self.assertLess(inline.busy(), 0.75)
        self.assertGreater(inline.step_time(), 1.3 * workers.step_time())
        self.assertLess(samples["gpt-a100-launch-bound.pt.trace.json.gz"].busy(), 0.5)
        self.assertGreater(samples["gpt-a100-gpu-bound.pt.trace.json.gz"].busy(), 0.95)


if __name__ == "__main__":
    unittest.main()
