"""Compares foretrace's totals of memory snapshots and AMD's recordings with counts made in Python from the same files, and the
snapshots that it writes with the needs of PyTorch's viewer. FORETRACE_CORPUS names the folder with the files, FORETRACE the
program. Skipped without them."""

import collections
import gzip
import io
import json
import os
import pathlib
import pickle
import pickletools
import subprocess
import tempfile
import unittest

FORETRACE = os.environ.get("FORETRACE")
CORPUS = os.environ.get("FORETRACE_CORPUS")

# Opcodes of the snapshots that PyTorch writes; the viewer in the browser is known to read these.
VIEWER_OPCODES = {"PROTO", "FRAME", "STOP", "MARK", "MEMOIZE", "BINGET", "LONG_BINGET", "EMPTY_DICT", "EMPTY_LIST", "SETITEMS",
                  "APPENDS", "TUPLE2", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NEWTRUE", "NEWFALSE", "NONE",
                  "SHORT_BINUNICODE", "BINUNICODE"}


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise AssertionError(f"asks for {module}.{name}")


def load(path):
    with open(path, "rb") as file:
        return PlainUnpickler(io.BytesIO(file.read())).load()


def files(pattern):
    return sorted(pathlib.Path(CORPUS).rglob(pattern)) if CORPUS else []


def info(path):
    output = subprocess.run([FORETRACE, "info", str(path), "--format", "json", "--no-cache"], check=True, capture_output=True,
                            text=True).stdout
    answer = json.loads(output)
    return answer["traces"][0] if "traces" in answer else answer


def convert(path, out):
    return subprocess.run([FORETRACE, "convert", str(path), str(out), "--no-cache"], check=True, capture_output=True, text=True)


class Allocator:
    """The blocks of one device, by the rules of PyTorch's native allocator: a plain list for each segment."""

    def __init__(self):
        self.segments = {}
        self.level = 0
        self.peak = 0

    @staticmethod
    def rounded(size):
        return max(512, -(-size // 512) * 512)

    def home(self, address):
        for start, (size, blocks) in self.segments.items():
            if start <= address < start + size:
                return blocks
        return None

    def alloc(self, address, size):
        blocks = self.home(address)
        at = next(i for i, block in enumerate(blocks) if block[0] == address)
        assert not blocks[at][2], "two blocks at one address"
        need = self.rounded(size)
        rest = blocks[at][1] - need
        if rest >= 512 if need <= 2 ** 20 else rest > 2 ** 20:
            blocks[at:at + 1] = [[address, need, True], [address + need, rest, False]]
        else:
            blocks[at][2] = True
        self.level += blocks[at][1]
        self.peak = max(self.peak, self.level)

    def free(self, address):
        blocks = self.home(address)
        at = next(i for i, block in enumerate(blocks) if block[0] == address)
        assert blocks[at][2], "a block comes back twice"
        self.level -= blocks[at][1]
        blocks[at][2] = False
        merged = []
        for block in blocks:
            if merged and not merged[-1][2] and not block[2]:
                merged[-1][1] += block[1]
            else:
                merged.append(block)
        blocks[:] = merged


def replay(events):
    allocator = Allocator()
    reserved = reserved_peak = 0
    for event in events:
        action, size = event["action"], event["size"]
        if action == "segment_alloc":
            allocator.segments[event["addr"]] = (size, [[event["addr"], size, False]])
            reserved += size
        elif action == "segment_free":
            del allocator.segments[event["addr"]]
            reserved -= size
        elif action == "alloc":
            allocator.alloc(event["addr"], size)
        elif action == "free_completed":
            allocator.free(event["addr"])
        reserved_peak = max(reserved_peak, reserved)
    return allocator, reserved_peak


@unittest.skipUnless(FORETRACE and CORPUS, "FORETRACE_CORPUS names no folder of recordings")
class Snapshots(unittest.TestCase):
    def test_counts_agree_with_the_pickle(self):
        self.assertTrue(files("*.pickle"))
        for path in files("*.pickle"):
            with self.subTest(path.name):
                snapshot, shown = load(path), {one["device"]: one for one in info(path)["allocators"]}
                for device, events in enumerate(snapshot["device_traces"]):
                    segments = [one for one in snapshot["segments"] if one["device"] == device]
                    blocks = [block for one in segments for block in one["blocks"]]
                    used = [block for block in blocks if block["state"] != "inactive"]
                    if not events and not segments:
                        self.assertNotIn(device, shown)
                        continue
                    one = shown[device]
                    actions = collections.Counter(event["action"] for event in events)
                    frees = actions.pop("free_completed", 0)
                    expected = dict(actions, **({"free": frees} if frees else {}))
                    if "oom" in expected:
                        expected["out_of_memory"] = expected.pop("oom")
                    self.assertEqual(one["actions"], expected)
                    self.assertEqual(one["segments"], len(segments))
                    self.assertEqual(one["blocks"], len(blocks))
                    self.assertEqual(one["blocks_in_use"], len(used))
                    self.assertEqual(one["reserved_at_end_bytes"], sum(s["total_size"] for s in segments))
                    self.assertEqual(one["in_use_at_end_bytes"], sum(s["active_size"] for s in segments))

    def test_peaks_agree_with_a_replay_of_the_allocator(self):
        complete = 0
        for path in files("*.pickle"):
            with self.subTest(path.name):
                snapshot, shown = load(path), {one["device"]: one for one in info(path)["allocators"]}
                for device, events in enumerate(snapshot["device_traces"]):
                    used = [block for one in snapshot["segments"] if one["device"] == device for block in one["blocks"]
                            if block["state"] != "inactive"]
                    net = sum(e["size"] * {"alloc": 1, "free_completed": -1}.get(e["action"], 0) for e in events)
                    is_complete = bool(events) and net == sum(block["requested_size"] for block in used)
                    if events:
                        self.assertEqual(shown[device]["history_complete"], is_complete)
                    if not is_complete:
                        continue
                    complete += 1
                    allocator, reserved_peak = replay(events)
                    # The replay is right if it ends with exactly the blocks of the snapshot.
                    self.assertEqual(sorted((block[0], block[1]) for _, blocks in allocator.segments.values() for block in blocks
                                            if block[2]), sorted((block["address"], block["size"]) for block in used))
                    self.assertEqual(shown[device]["peak_allocated_bytes"], allocator.peak)
                    self.assertEqual(shown[device]["peak_reserved_bytes"], reserved_peak)
                    level = peak = 0
                    for event in events:
                        level += event["size"] * {"alloc": 1, "free_completed": -1}.get(event["action"], 0)
                        peak = max(peak, level)
                    self.assertEqual(shown[device]["peak_requested_bytes"], peak)
        self.assertGreaterEqual(complete, 3)

    def test_predict_replays_the_allocator_to_the_byte(self):
        for path in files("*.pickle"):
            with self.subTest(path.name):
                done = subprocess.run([FORETRACE, "predict", str(path), "--no-cache", "--format", "json"], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                whole = {one["device"]: one["history_complete"] for one in info(path)["allocators"]}
                for peak in json.loads(done.stdout)["baseline"]["memory"]:
                    if whole[peak["device"]]:
                        self.assertEqual(peak["peak_reserved_bytes"], peak["recorded_reserved_bytes"])
                    else:  # The addresses of free memory at the beginning of the history are unknown.
                        self.assertAlmostEqual(peak["peak_reserved_bytes"] / peak["recorded_reserved_bytes"], 1, delta=0.01)

    def test_what_is_written_is_what_was_read(self):
        for path in files("*.pickle"):
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "out.pickle"
                convert(path, out)
                check_snapshot(self, out)
                before, after = load(path), load(out)
                for one in before["device_traces"]:
                    for event in one:
                        for extra in set(event) - {"action", "addr", "size", "stream", "time_us", "frames", "device_free"}:
                            del event[extra]  # A trace cannot store these.
                def parts(snapshot):
                    for segment in snapshot["segments"]:
                        yield segment
                    for history in snapshot["device_traces"]:
                        yield from history
                for snapshot in (before, after):
                    for part in parts(snapshot):
                        for holder in [part] + part.get("blocks", []):
                            for frame in holder["frames"]:
                                frame["name"] = frame["name"].replace(";", ",")
                for snapshot in (before, after):  # PyTorch writes a list for each device of the machine, used or not.
                    while snapshot["device_traces"] and not snapshot["device_traces"][-1]:
                        snapshot["device_traces"].pop()
                # assertEqual would look for the nearest match of thousands of events, which takes minutes.
                for part in ("segments", "device_traces"):
                    self.assertTrue(after[part] == before[part], part)
                self.assertEqual(after["allocator_settings"], before["allocator_settings"])
                self.assertEqual(after["external_annotations"], before.get("external_annotations", []))


def check_snapshot(test, path):
    """Checks what the viewer relies on: known opcodes, blocks that tile their segment, and no free of a block that was not allocated."""
    data = path.read_bytes()
    names = {opcode.name for opcode, _, _ in pickletools.genops(data)}
    test.assertLessEqual(names, VIEWER_OPCODES)
    test.assertEqual(data[:2], b"\x80\x04")
    snapshot = load(path)
    for segment in snapshot["segments"]:
        address = segment["address"]
        for block in segment["blocks"]:
            test.assertEqual(block["address"], address)
            address += block["size"]
        test.assertEqual(address, segment["address"] + segment["total_size"])
        used = [block for block in segment["blocks"] if block["state"] != "inactive"]
        test.assertEqual(segment["active_size"], sum(block["size"] for block in used))
        test.assertEqual(segment["requested_size"], sum(block["requested_size"] for block in used))
    for events in snapshot["device_traces"]:
        requested, time = set(), 0
        for event in events:
            test.assertGreaterEqual(event["time_us"], time)
            time = event["time_us"]
            address = event.get("addr")
            if event["action"] == "free_requested":
                requested.add(address)
            elif event["action"] == "free_completed":
                test.assertIn(address, requested)
                requested.discard(address)
            for frame in event["frames"]:
                test.assertEqual(set(frame), {"filename", "line", "name"})
    return snapshot


@unittest.skipUnless(FORETRACE and CORPUS, "FORETRACE_CORPUS names no folder of recordings")
class SnapshotsOfProfiles(unittest.TestCase):
    def test_memory_events_become_a_snapshot(self):
        written = 0
        for path in files("*.json.gz"):
            with gzip.open(path, "rt", errors="replace") as file:
                text = file.read()
            if '"[memory]"' not in text:
                continue
            events = [event for event in json.loads(text)["traceEvents"] if event.get("name") == "[memory]"
                      and event["args"].get("Device Type", 1) > 0 and event["args"].get("Addr")]
            if not events:
                continue
            with self.subTest(str(path)), tempfile.TemporaryDirectory() as folder:
                out = pathlib.Path(folder) / "out.pickle"
                convert(path, out)
                snapshot = check_snapshot(self, out)
                written += 1
                live = collections.defaultdict(dict)
                total = {}
                for event in sorted(events, key=lambda one: float(one["ts"])):
                    args = event["args"]
                    total[args["Device Id"]] = args.get("Total Allocated")
                    if args["Bytes"] > 0:
                        live[args["Device Id"]][args["Addr"]] = args["Bytes"]
                    else:
                        live[args["Device Id"]].pop(args["Addr"], None)
                held = collections.defaultdict(dict)
                for segment in snapshot["segments"]:
                    for block in segment["blocks"]:
                        if block["state"] == "active_allocated":
                            held[segment["device"]][block["address"]] = block["size"]
                # Memory that was in use before the first event is one block more.
                for device, blocks in held.items():
                    before = set(blocks) - set(live[device])
                    self.assertLessEqual(len(before), 1)
                    if before and total[device] is not None:
                        self.assertEqual(sum(blocks.values()), total[device])
                    for address in before:
                        del blocks[address]
                self.assertEqual({k: v for k, v in live.items() if v}, {k: v for k, v in held.items() if v})
                histories = [event for history in snapshot["device_traces"] for event in history]
                counts = collections.Counter(event["action"] for event in histories)
                self.assertEqual(counts["alloc"], sum(one["args"]["Bytes"] > 0 for one in events))
                self.assertEqual(counts["free_completed"], sum(one["args"]["Bytes"] < 0 for one in events))
        self.assertGreater(written, 0)


def busy(intervals):
    total = end = 0
    for start, finish in sorted(intervals):
        total += max(0, finish - max(start, end))
        end = max(end, finish)
    return total


@unittest.skipUnless(FORETRACE and CORPUS, "FORETRACE_CORPUS names no folder of recordings")
class Amd(unittest.TestCase):
    def test_rocprofiler_sdk(self):
        found = 0
        for path in files("*_results.json.gz"):
            with gzip.open(path) as file:
                document = json.load(file)
            if "rocprofiler-sdk-tool" not in document:
                continue
            found += 1
            tool = document["rocprofiler-sdk-tool"][0]
            records, shown = tool["buffer_records"], info(path)
            kernels = records["kernel_dispatch"]
            self.assertEqual(shown["records"]["kernels"], len(kernels))
            self.assertEqual(shown["records"]["copies"], len(records["memory_copy"]))
            self.assertEqual(shown["records"]["calls"], len(records["hip_api"]) + len(records["hsa_api"]))
            ran = kernels + records["memory_copy"]
            self.assertEqual(shown["device_busy_ns"], busy([(r["start_timestamp"], r["end_timestamp"]) for r in ran]))
            names = {one["kernel_id"]: one["formatted_kernel_name"] for one in tool["kernel_symbols"]}
            totals = collections.Counter()
            for kernel in kernels:
                totals[names[kernel["dispatch_info"]["kernel_id"]]] += kernel["end_timestamp"] - kernel["start_timestamp"]
            self.assertEqual([(one["name"], one["total_ns"]) for one in shown["heaviest"]][:3], totals.most_common(3))
            self.assertEqual(len(shown["devices"]), sum(agent["type"] == 2 for agent in tool["agents"]))
        self.assertGreater(found, 0)

    def test_kineto_of_rocm(self):
        found = 0
        for path in files("*.json.gz"):
            if not any(word in str(path) for word in ("mi210", "mi250", "mi300", "mi350")) or "rocprof" in str(path):
                continue
            with gzip.open(path) as file:
                document = json.load(file)
            events = [one for one in document["traceEvents"] if one.get("ph") == "X"] if "traceEvents" in document else []
            if not events:
                continue
            found += 1
            with self.subTest(path.name):
                categories = collections.Counter(one.get("cat") for one in events)
                shown = info(path)["records"]
                self.assertEqual(shown["kernels"], categories["kernel"])
                self.assertEqual(shown["copies"], categories["gpu_memcpy"])
                self.assertEqual(shown["fills"], categories["gpu_memset"])
                self.assertEqual(shown["calls"], categories["cuda_runtime"] + categories["cuda_driver"])
                self.assertEqual(shown["ops"], categories["cpu_op"])
        self.assertGreater(found, 2)


if __name__ == "__main__":
    unittest.main()
