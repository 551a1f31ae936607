#!/usr/bin/env python3
"""`check` finds what made a program slower, and is silent about what did not.

Real changes of a program are planted in copies of the sample traces, with the consequences they have for all times
behind them; harmless differences between two recordings of one program are, too. Each of the former must fail, with its
cause and its place; none of the latter may.
"""

import dataclasses
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

import make_samples
from samples.training import Training

from retimed_trace import (DEVICE, HOST, Recording, copy_call, delay, end_of, frame, host_call, launch, op, sync_call)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FORETRACE", str(ROOT / "build" / "foretrace"))
SAMPLES = {"resnet": "resnet18-v100-loader4", "loading": "resnet18-v100-loader0", "gpt": "gpt-a100-gpu-bound",
           "small": "gpt-a100-launch-bound", "input": "input-bound-v100"}
PINNED = "Memcpy HtoD (Pinned -> Device)"
PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"


def sample(name):
    return Recording(ROOT / "traces" / (SAMPLES[name] + ".pt.trace.json.gz"))


def in_each_step(trace, name, items, which=0, of=None):
    """Work in front of an op of each step."""
    for step in trace.steps():
        found = (of or trace.ops)(step, name)
        trace.insert(found[which]["ts"], items)


def user_frame(line, items, function="training_step"):
    return frame(f"/home/user/project/train.py({line}): {function}", items)


# Regressions: each returns the recordings before and after.

def new_syncs_in_forward():
    before, after = sample("small"), sample("small")
    for which in (0, 2, 4):
        in_each_step(after, "aten::layer_norm", [user_frame(88, [sync_call()], "forward")], which)
    return before, after


def item_at_the_end_of_a_step():
    before, after = sample("resnet"), sample("resnet")
    item = op("aten::item", [op("aten::_local_scalar_dense", [
        copy_call("Memcpy DtoH (Device -> Pinned)", 2.0, 4), sync_call()])])
    for step in after.steps():
        after.insert(end_of(step) - 1.0, [user_frame(120, [item], "train")])
    return before, after


def with_copy(trace, stream, name=PINNED, **more):
    copy = op("aten::to", [op("aten::copy_", [copy_call(name, 2000.0, 12_000_000, stream, **more)])])
    in_each_step(trace, "aten::relu_", [user_frame(64, [copy], "prefetch")], which=2)
    return trace


def lost_overlap_of_copies():
    def waiting(trace):
        copy = op("aten::to", [op("aten::copy_", [host_call("cudaStreamWaitEvent"),
                                                  copy_call(PINNED, 2000.0, 12_000_000, 20, wait_for=(7,))])])
        in_each_step(trace, "aten::relu_", [user_frame(64, [copy, host_call("cudaStreamWaitEvent"),
                                                            sync_call("cudaEventSynchronize")], "prefetch")], which=2)
        return trace
    return with_copy(sample("resnet"), 20), waiting(sample("resnet"))


def pageable_instead_of_pinned():
    return with_copy(sample("resnet"), 7), with_copy(sample("resnet"), 7, PAGEABLE)


def slower_kernel():
    before, after = sample("resnet"), sample("resnet")
    after.slow(lambda e: "::bn_" in e["name"], 2.0)
    return before, after


def all_kernels_slower():
    before, after = sample("resnet"), sample("resnet")
    after.slow(lambda e: e["cat"] == "kernel", 1.1)
    return before, after


def unfused_op():
    before, after = sample("small"), sample("small")
    extra = [op("aten::" + name, [launch(f"void at::native::vectorized_elementwise_kernel<4, {name}>(int)", 3.0)])
             for name in ("mul", "tanh", "add")]
    for which in range(4):
        in_each_step(after, "aten::gelu", extra, which)
    return before, after


def extra_copy():
    before, after = sample("resnet"), sample("resnet")
    extra = op("aten::to", [op("aten::copy_", [copy_call("Memcpy HtoD (Pinned -> Device)", 900.0, 6_000_000)])])
    in_each_step(after, "aten::relu_", [user_frame(71, [extra])], which=5)
    return before, after


def memory_events(trace):
    return [e for e in trace.events if e.get("name") == "[memory]"]


def more_memory_of_an_op():
    before, after = sample("gpt"), sample("gpt")
    gelu = [(e["ts"], end_of(e)) for step in after.steps() for e in after.ops(step, "aten::gelu")]
    grown, more = {}, 0
    for event in sorted(memory_events(after), key=lambda e: e["ts"]):
        args = event["args"]
        if args["Bytes"] > 0 and any(a <= event["ts"] <= b for a, b in gelu):
            grown[args["Addr"]] = args["Bytes"] // 2 // 512 * 512
            args["Bytes"] += grown[args["Addr"]]
            more += grown[args["Addr"]]
        elif args["Bytes"] < 0 and args["Addr"] in grown:
            args["Bytes"] -= grown[args["Addr"]]
            more -= grown.pop(args["Addr"])
        args["Total Allocated"] += more
        args["Total Reserved"] += 2_000_000_000
    return before, after


def leak_of_each_step():
    before, after = sample("gpt"), sample("gpt")
    leaked = []
    for i, step in enumerate(after.steps()):
        linear = after.ops(step, "aten::linear")[3]
        leaked.append((linear["ts"] + 1.5, 64 << 20, 0x7f0000000000 + i * (256 << 20), linear))
    for event in memory_events(after):
        event["args"]["Total Allocated"] += sum(size for ts, size, _, _ in leaked if ts < event["ts"])
        event["args"]["Total Reserved"] += 7 * (64 << 20)
    for ts, size, address, linear in leaked:
        total = sum(s for t, s, _, _ in leaked if t <= ts) + 1_900_000_000
        after.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": linear["pid"],
                             "tid": linear["tid"], "ts": ts,
                             "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size,
                                      "Total Allocated": total, "Total Reserved": 12_000_000_000}})
    return before, after


def longer_loading():
    before, after = sample("loading"), sample("loading")
    for step in after.steps():
        loading = [e for e in after.events if e.get("name", "").startswith("enumerate(DataLoader)")
                   and step["ts"] <= e["ts"] < end_of(step)]
        inside = [e for e in after.events if e.get("cat") == "cpu_op" and loading
                  and loading[0]["ts"] < e["ts"] < end_of(loading[0])]
        time = inside[len(inside) // 2]["ts"] if inside else loading[0]["ts"] + loading[0]["dur"] / 2
        after.insert(time, [delay(15_000.0)])
    return before, after


def new_collective():
    before, after = sample("resnet"), sample("resnet")
    reduce = op("c10d::allreduce_", [op("record_param_comms", [launch(NCCL, 3000.0)])])
    in_each_step(after, "aten::relu_", [user_frame(140, [reduce])], which=4)
    return before, after


def slower_host():
    before, after = sample("small"), sample("small")
    for event in [e for e in after.events if e.get("cat") == "cpu_op"]:
        after.insert(event["ts"], [delay(2.0)])
    return before, after


def more_kernels_in_a_layer():
    before, after = sample("small"), sample("small")
    extra = [op("aten::dropout", [launch("void at::native::fused_dropout_kernel<float>(int)", 4.0)])] * 6
    for step in after.steps():
        blocks = [e for e in after.ops(step, "nn.Module: Block_2", "python_function")]
        ops = [e for e in after.events if e.get("cat") == "cpu_op" and blocks
               and blocks[0]["ts"] < e["ts"] < end_of(blocks[0])]
        after.insert(min(ops, key=lambda e: e["ts"])["ts"], extra)
    return before, after


def wrong_stream():
    return with_copy(sample("resnet"), 20), with_copy(sample("resnet"), 7)


def bigger_tensors():
    before, after = sample("resnet"), sample("resnet")
    after.slow(lambda e: e["cat"] == "gpu_memcpy" and e["args"]["bytes"] > 1_000_000, 2.0)
    for event in after.device_events():
        if event["cat"] == "gpu_memcpy" and event["args"]["bytes"] > 1_000_000:
            event["args"]["bytes"] *= 2
    return before, after


def with_collective(trace, stream):
    reduce = op("c10d::allreduce_", [op("record_param_comms", [launch(NCCL, 3000.0, stream)])])
    in_each_step(trace, "aten::relu_", [user_frame(140, [reduce])], which=4)
    return trace


def collectives_no_longer_overlap():
    return with_collective(sample("resnet"), 30), with_collective(sample("resnet"), 7)


def single_precision():
    before, after = sample("gpt"), sample("gpt")
    for trace, name in ((before, "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"),
                        (after, "ampere_sgemm_128x64_tn")):
        for event in trace.device_events():
            if "gemm" in event["name"]:
                event["name"] = name
    after.slow(lambda e: "gemm" in e["name"], 2.4)
    return before, after


def more_event_waits():
    before, after = sample("gpt"), sample("gpt")
    in_each_step(after, "aten::gelu", [user_frame(52, [host_call("cudaStreamWaitEvent")] * 2)], which=1)
    return before, after


def pause_in_each_step():
    before, after = sample("small"), sample("small")
    in_each_step(after, "aten::gelu", [delay(1500.0)], which=2)
    return before, after


# (what is planted, metric that must fail, what the greatest causes must say)
REGRESSIONS = [
    (new_syncs_in_forward, "syncs", r"3 new cudaStreamSynchronize.*train\.py:88 in forward"),
    (item_at_the_end_of_a_step, "syncs", r"1 new cudaStreamSynchronize.*train\.py:120 in train.*aten::item"),
    (lost_overlap_of_copies, "overlap", r"lost overlap: Memcpy HtoD.*train\.py:64 in prefetch|new cudaEventSynchronize.*train\.py:64"),
    (pageable_instead_of_pinned, "pageable_copies", r"pageable memory.*train\.py:64 in prefetch"),
    (slower_kernel, "kernel_time", r"bn_\S+ slower: .*batch_norm|bn_\S+ slower: .*BatchNorm"),
    (all_kernels_slower, "kernel_time", r"kernels take 1\.10 times as long throughout"),
    (unfused_op, "kernels", r"(4|12) new .*vectorized_elementwise_kernel.*aten::(mul|tanh|add)"),
    (extra_copy, "copies", r"1 new Memcpy HtoD.*train\.py:71"),
    (more_memory_of_an_op, "peak_allocated", r"at the peak: aten::gelu"),
    (leak_of_each_step, "memory_growth", r"\+67\.11 MB in each step, never freed: aten::linear"),
    (longer_loading, "step_time", r"load|input|enumerate"),
    (new_collective, "collectives", r"1 new nccl.*train\.py:140"),
    (slower_host, "step_time", r"host work"),
    (more_kernels_in_a_layer, "kernels", r"6 new .*dropout.*Block_2"),
    (wrong_stream, "overlap", r"lost overlap: Memcpy HtoD.*now on the stream of the kernels.*train\.py:64"),
    (bigger_tensors, "bytes_copied", r"Memcpy HtoD.*larger: 19\.27 MB -> 38\.54 MB"),
    (collectives_no_longer_overlap, "overlap", r"lost overlap: nccl.*now on the stream of the kernels.*train\.py:140"),
    (single_precision, "kernel_time", r"ampere_sgemm.* in place of ampere_fp#_s#gemm"),
    (more_event_waits, "event_waits", r"2 new cudaStreamWaitEvent.*train\.py:52"),
    (pause_in_each_step, "step_time", r"host work|between records"),
]


# Harmless differences: each changes a recording in place.

def each(trace, change, cats=None):
    for event in trace.events:
        if cats is None or event.get("cat") in cats:
            change(event)


def rename_processes(trace):
    each(trace, lambda e: e["args"].update(name="worker-" + str(e["args"]["name"]))
         if e["ph"] == "M" and e["name"] in ("process_name", "thread_name") and "name" in e["args"] else None)


def shuffle_events(trace):
    random.Random(1).shuffle(trace.events)


def renumber_correlations(trace):
    def change(event):
        if "correlation" in event.get("args", {}):
            event["args"]["correlation"] = event["args"]["correlation"] * 3 + 70_001
        if event.get("cat") == "ac2g":
            event["id"] = event["id"] * 3 + 70_001
        args = event.get("args", {})
        if args.get("wait_on_cuda_event_record_corr_id", -1) > 0:
            args["wait_on_cuda_event_record_corr_id"] = args["wait_on_cuda_event_record_corr_id"] * 3 + 70_001
    each(trace, change)


def renumber_streams(trace):
    def change(event):
        args = event.get("args", {})
        if "stream" in args:
            args["stream"] += 100
            event["tid"] = args["stream"]
        if args.get("wait_on_stream", -1) >= 0:
            args["wait_on_stream"] += 100
    each(trace, change, DEVICE + ("cuda_sync",))
    streams = {str(e["args"]["stream"] - 100): e["args"]["stream"] for e in trace.device_events()}
    for event in trace.events:
        if (event.get("cat") == "ac2g" and event["ph"] == "f" or event["ph"] == "M") and event.get("pid") == 0 \
                and str(event.get("tid")) in streams:
            event["tid"] = streams[str(event["tid"])]


def shift_times(trace):
    each(trace, lambda e: e.update(ts=round(e["ts"] + 123_456_789.5, 3)) if "ts" in e else None)


def other_folders(trace):
    def change(event):
        event["name"] = event["name"].replace("/home/user/project/", "/mnt/ci/build-17/src/")
    each(trace, change, ("python_function",))


def other_process(trace):
    def change(event):
        for key in ("pid", "tid"):
            if event.get(key) == 4242:
                event[key] = 31337
    each(trace, change)


def other_tiles(trace):
    def change(event):
        event["name"] = event["name"].replace("128x64", "256x128").replace("<float,", "<float, 8,")
    each(trace, change, ("kernel",))


def more_metadata(trace):
    trace.document.update({"host_name": "node-17", "with_flops": 1, "extra": {"a": [1, 2, 3]}})
    each(trace, lambda e: e["args"].update(note="x"), ("cpu_op",))


def other_step_numbers(trace):
    each(trace, lambda e: e.update(name="ProfilerStep#" + str(int(e["name"].split("#")[1]) + 100))
         if e.get("name", "").startswith("ProfilerStep#") else None)


def cut_steps(trace, keep):
    steps = trace.steps()
    end = end_of(steps[-1]) if keep == len(steps) else steps[keep]["ts"]
    launched = {e["args"]["correlation"] for e in trace.events
                if e.get("cat", "").startswith("cuda_") and e.get("cat") != "cuda_sync" and e["ts"] < end}
    trace.events[:] = [e for e in trace.events if e["ph"] == "M" or e.get("cat") == "Trace" or
                       (e["args"].get("correlation") in launched if e.get("cat") in DEVICE else
                        e["id"] in launched if e.get("cat") == "ac2g" else e["ts"] < end)]
    for event in trace.events:
        if event.get("cat") == "Trace":
            event["dur"] = max(e["ts"] + e.get("dur", 0) for e in trace.events if e.get("cat") != "Trace") - event["ts"]


def one_step_less(trace):
    cut_steps(trace, len(trace.steps()) - 1)


def jitter(trace):
    noise = random.Random(7)
    trace.slow(lambda e: True, lambda e: 1 + noise.uniform(-0.01, 0.01))
    trace.retime()


def other_case_of_device(trace):
    for device in trace.document.get("deviceProperties", []):
        device["name"] = device["name"].upper()


def other_addresses(trace):
    def change(event):
        if "Addr" in event.get("args", {}):
            event["args"]["Addr"] += 0x10000000000
    each(trace, change)


def other_threads(trace):
    def change(event):
        if event.get("tid") == 4319:
            event["tid"] = 9999
    each(trace, change)


def other_python_ids(trace):
    def change(event):
        for key in ("Python id", "Python parent id"):
            if event["args"].get(key) is not None:
                event["args"][key] += 4000
    each(trace, change, ("python_function",))


def metadata_last(trace):
    trace.events.sort(key=lambda e: e["ph"] == "M")


def unrelated_ranges(trace):
    main = trace.main_thread()
    for step in trace.steps():
        trace.events.append({"ph": "X", "cat": "user_annotation", "name": "my phase", "pid": main[0], "tid": main[1],
                             "ts": step["ts"] + 1, "dur": step["dur"] - 2, "args": {}})


def other_profiler(trace):
    trace.document["schemaVersion"] = 2
    trace.document["profiler_version"] = "9.9"
    for event in trace.events:
        if event.get("cat") == "Trace":
            event["args"]["Op count"] = 17


def moved_lines(trace):
    def change(event):
        event["name"] = re.sub(r"\((\d+)\)", lambda m: f"({int(m.group(1)) + 12})", event["name"])
    each(trace, change, ("python_function",))


def not_packed(trace):
    trace.ending = ".json"


HARMLESS = [rename_processes, shuffle_events, renumber_correlations, renumber_streams, shift_times, other_folders,
            other_process, not_packed, other_tiles, more_metadata, other_step_numbers, one_step_less, jitter,
            other_case_of_device, other_addresses, other_threads, other_python_ids, metadata_last, unrelated_ranges,
            other_profiler, moved_lines]


def framed(name):
    """A sample in which some work has frames of the user's own code."""
    trace = sample(name)
    in_each_step(trace, "aten::cross_entropy_loss" if name == "small" else "aten::relu_",
                 [user_frame(31, [op("aten::clone", [launch("copy_kernel", 3.0)])], "helper")])
    trace.retime()
    return trace


def corpus_traces():
    """Recordings of the profiler of three jobs, the smallest, which Python edits in a moment."""
    found = {}
    paths = [path for path in pathlib.Path(os.environ["FORETRACE_CORPUS"]).rglob("*.json*")
             if path.name.endswith((".json", ".json.gz")) and path.stat().st_size < 4_000_000]
    for path in sorted(paths, key=lambda path: (path.stat().st_size, path)):
        if path.parent in found:
            continue
        try:
            trace = Recording(path)
            if len(trace.steps()) >= 3 and 300 < len(trace.device_events()) < 40_000:
                found[path.parent] = path
        except (ValueError, KeyError, TypeError, AttributeError, OSError):
            continue
        if len(found) == 3:
            break
    return list(found.values())


def hottest_kernel(trace):
    work = {}
    for event in trace.device_events():
        if event["cat"] == "kernel" and "nccl" not in event["name"].lower():
            work[event["name"]] = work.get(event["name"], 0) + event["dur"]
    return max(work, key=work.get)


class Planted(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_check(self, trace, *more):
        return subprocess.run([PROGRAM, "check", str(trace), "--baseline", str(self.folder / "baseline.json"),
                               "--no-cache", *more], capture_output=True, text=True, cwd=self.folder)

    def bless(self, trace):
        path = self.folder / "before.json.gz"
        trace.write(path)
        done = self.run_check(path, "--bless")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_regressions_are_found_with_cause_and_place(self):
        for plant, metric, cause in REGRESSIONS:
            with self.subTest(plant.__name__):
                before, after = plant()
                for trace in (before, after):
                    trace.retime()
                self.bless(before)
                after.write(self.folder / "after.json.gz")
                done = self.run_check(self.folder / "after.json.gz", "--format", "json")
                answer = json.loads(done.stdout)
                failed = [m["name"] for m in answer["metrics"] if m["standing"] == "failed"]
                told = [c["what"] + " from " + c["where"] for c in answer["causes"]]
                self.assertEqual(done.returncode, 1, answer["headline"])
                self.assertIn(metric, failed)
                self.assertTrue(any(re.search(cause, text) for text in told[:4]), "\n".join(told))

    def test_harmless_changes_are_not_flagged(self):
        for name in ("small", "resnet"):
            self.bless(framed(name))
            for change in HARMLESS:
                with self.subTest(name + " " + change.__name__):
                    trace = framed(name)
                    change(trace)
                    path = self.folder / ("after" + getattr(trace, "ending", ".json.gz"))
                    trace.write(path)
                    done = self.run_check(path)
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                    self.assertTrue(done.stdout.startswith("PASSED:"), done.stdout)

    def run_anew(self, settings, **changed):
        """What another run of a sample's program would have been recorded as, from its simulator."""
        for name, value in changed.items():
            self.assertTrue(hasattr(settings, name), name)
        path = self.folder / "run.json.gz"
        Training(dataclasses.replace(settings, **changed)).run().write(path)
        return path

    def test_other_runs_of_the_same_program_pass(self):
        for name, settings in make_samples.SAMPLES.items():
            self.bless(Recording(ROOT / "traces" / name))
            for seed in (101, 102, 103):
                with self.subTest(f"{name}, seed {seed}"):
                    done = self.run_check(self.run_anew(settings(), seed=seed))
                    self.assertTrue(done.stdout.startswith("PASSED:"), done.stdout)

    def test_programs_that_changed_at_their_source_are_told(self):
        for sample_name, changed, cause in (
                ("resnet", {"reads_loss": True}, r"new cudaStreamSynchronize.*aten::item"),
                ("resnet", {"workers": 0}, r"loading slower"),
                ("gpt", {"pinned_prefetch": False}, r"2 new cudaStreamSynchronize, with Memcpy HtoD.*pageable memory")):
            with self.subTest(f"{sample_name} {changed}"):
                name = SAMPLES[sample_name] + ".pt.trace.json.gz"
                self.bless(Recording(ROOT / "traces" / name))
                done = self.run_check(self.run_anew(make_samples.SAMPLES[name](), seed=104, **changed), "--format", "json")
                self.assertEqual(done.returncode, 1, done.stdout)
                told = [c["what"] + " from " + c["where"] for c in json.loads(done.stdout)["causes"]]
                self.assertTrue(any(re.search(cause, text) for text in told[:3]), "\n".join(told))

    def test_the_same_trace_gives_the_same_bytes(self):
        self.bless(sample("small"))
        first = (self.folder / "baseline.json").read_bytes()
        self.bless(sample("small"))
        self.assertEqual(first, (self.folder / "baseline.json").read_bytes())
        _, after = new_syncs_in_forward()
        after.retime()
        after.write(self.folder / "after.json.gz")
        answers = {self.run_check(self.folder / "after.json.gz", "--format", form).stdout
                   for form in ("json", "junit", "markdown", "github", "text") for _ in range(3)}
        self.assertEqual(len(answers), 5)

    def test_one_run_writes_all_forms(self):
        self.bless(sample("small"))
        (self.folder / "src" / "project").mkdir(parents=True)
        (self.folder / "src" / "project" / "train.py").write_text("")
        _, after = new_syncs_in_forward()
        after.retime()
        after.write(self.folder / "after.json.gz")
        summary = self.folder / "summary.md"
        summary.write_text("earlier\n")
        env = dict(os.environ, GITHUB_STEP_SUMMARY=str(summary))
        done = subprocess.run(
            [PROGRAM, "check", "after.json.gz", "--baseline", "baseline.json", "--no-cache", "--github", "--junit", "j.xml",
             "--json", "a.json", "--bencher", "b.json", "--benchmark", "g.json", "--markdown", "m.md", "--source-root", "src"],
            capture_output=True, text=True, cwd=self.folder, env=env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("::error file=project/train.py,line=88,title=foretrace%3A syncs::", done.stdout)
        self.assertTrue(summary.read_text().startswith("earlier\n### Foretrace: REGRESSION: syncs 3 -> 6"))
        suite = xml.etree.ElementTree.parse(self.folder / "j.xml").getroot()
        self.assertEqual((suite.get("failures"), suite.get("tests")), ("1", "17"))
        self.assertEqual(json.loads((self.folder / "a.json").read_text())["schema"], "foretrace.check/1")
        self.assertIn("latency", json.loads((self.folder / "b.json").read_text())["step_time"])
        self.assertIn("step_time", [one["name"] for one in json.loads((self.folder / "g.json").read_text())])

    def test_the_sample_jobs_are_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("needs python3-yaml")
        for name in ("github-workflow.yml", "gitlab-ci.yml"):
            text = (ROOT / "scenarios" / "ci" / name).read_text()
            self.assertIsInstance(yaml.safe_load(text), dict)
            for option in re.findall(r"--[a-z-]+", " ".join(re.findall(r"foretrace check[^#\n]*(?:\\\n[^#\n]*)?", text))):
                self.assertIn(option, self.run_help())

    def run_help(self):
        return subprocess.run([PROGRAM, "check", "--help"], capture_output=True, text=True).stdout

    def test_a_full_summary_is_cut(self):
        self.bless(sample("small"))
        summary = self.folder / "summary.md"
        summary.write_text("x" * (1024 * 1024 - 300))
        self.assertEqual(self.run_check(self.folder / "before.json.gz", "--summary", str(summary)).returncode, 0)
        self.assertLessEqual(summary.stat().st_size, 1024 * 1024)
        self.assertTrue(summary.read_text().endswith("(cut: the summary is full)\n"))

    def test_the_structure_alone_needs_no_quiet_device(self):
        self.bless(sample("resnet"))
        _, after = all_kernels_slower()
        after.retime()
        after.write(self.folder / "after.json.gz")
        done = self.run_check(self.folder / "after.json.gz", "--structure-only", "--format", "json")
        answer = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0)
        self.assertIn("step_time", [m["name"] for m in answer["metrics"] if m["why"] == "times are not compared"])

    def test_what_does_not_belong_together_is_refused(self):
        self.bless(sample("small"))
        trace = self.folder / "before.json.gz"
        for more, words in ((["--with", "amp"], "must be of the same scenario"),
                            (["--max", "peak_allocated:5%"], "the trace does not tell peak_allocated"),
                            (["--max", "sync:+0"], 'did you mean "syncs"'),
                            (["--undecided", "maybe"], "must be pass or fail")):
            done = self.run_check(trace, *more)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_prediction_is_checked_like_a_recording(self):
        path = self.folder / "before.json.gz"
        sample("gpt").write(path)
        self.assertEqual(self.run_check(path, "--with", "amp", "--bless").returncode, 0)
        self.assertEqual(self.run_check(path, "--with", "amp").returncode, 0)
        _, after = single_precision()
        after.retime()
        after.write(path)
        done = self.run_check(path, "--with", "amp")
        self.assertEqual(done.returncode, 1, done.stdout)

    @unittest.skipUnless(os.environ.get("FORETRACE_CORPUS"), "needs FORETRACE_CORPUS")
    def test_recorded_traces_are_judged_alike(self):
        names = corpus_traces()
        self.assertTrue(names)
        for name in names:
            trace = Recording(name)
            hottest = hottest_kernel(trace)
            self.bless(trace)
            for change in (shuffle_events, shift_times, renumber_streams, more_metadata, other_profiler):
                with self.subTest(name.name + " " + change.__name__):
                    other = Recording(name)
                    change(other)
                    other.write(self.folder / "after.json.gz")
                    done = self.run_check(self.folder / "after.json.gz")
                    self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for what, chosen, factor in (("all", lambda e: e["cat"] == "kernel", 1.3),
                                         ("one", lambda e: e["name"] == hottest, 3.0)):
                with self.subTest(name.name + " slower: " + what):
                    slower = Recording(name)
                    slower.slow(chosen, factor)
                    slower.retime()
                    slower.write(self.folder / "after.json.gz")
                    done = self.run_check(self.folder / "after.json.gz", "--format", "json")
                    answer = json.loads(done.stdout)
                    self.assertEqual(done.returncode, 1, answer["headline"])
                    told = [c["what"] for c in answer["causes"]]
                    words = "throughout" if what == "all" else " slower: "
                    self.assertTrue(any(words in text for text in told[:3]), "\n".join(told))

    def test_a_step_more_is_no_change(self):
        trace = sample("gpt")
        one_step_less(trace)
        self.bless(trace)
        sample("gpt").write(self.folder / "after.json.gz")
        done = self.run_check(self.folder / "after.json.gz")
        self.assertTrue(done.stdout.startswith("PASSED"), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (["-v"] if "-v" in sys.argv else []))
