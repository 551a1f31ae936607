"""Facts from a trace in Kineto's JSON, for the checks. Times are whole nanoseconds."""

import bisect
import collections
import gzip
import json
import pathlib

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
RANGES = ("cpu_op", "user_annotation")


class Event:
    __slots__ = ("name", "category", "start", "end", "thread", "correlation", "arguments")

    def __init__(self, raw):
        self.name, self.category = raw["name"], raw.get("cat", "").lower()
        self.start = round(float(raw["ts"]) * 1000)
        self.end = self.start + round(float(raw.get("dur", 0)) * 1000)
        self.thread = (str(raw.get("pid")), str(raw.get("tid")))
        self.arguments = raw.get("args", {})
        self.correlation = self.arguments.get("correlation")


class Events:
    def __init__(self, path):
        content = pathlib.Path(path).read_bytes()
        document = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        raw = document["traceEvents"] if isinstance(document, dict) else document
        self.complete = [Event(event) for event in raw if event.get("ph") == "X"]
        self.memory = [event for event in raw if event.get("name") == "[memory]"]

    def of(self, *categories):
        return [event for event in self.complete if event.category in categories]

    def kernels(self, part=""):
        return [event for event in self.of("kernel") if part in event.name]

    def calls(self):
        """The calls that launched something, by correlation id."""
        return {event.correlation: event for event in self.of(*CALLS) if event.correlation is not None}

    def joined(self):
        calls = self.calls()
        device = self.of(*DEVICE)
        return sum(event.correlation in calls for event in device), len(device)

    def early(self):
        """For each piece of device work that starts before the call that launched it: by how much."""
        calls = self.calls()
        return [calls[event.correlation].start - event.start for event in self.of(*DEVICE)
                if event.correlation in calls and event.start < calls[event.correlation].start]

    def late(self):
        """By how much kernels end after the last call that waits for the whole device."""
        waits = [event for event in self.of(*CALLS) if event.name in ("cudaDeviceSynchronize", "cuCtxSynchronize")]
        if not waits:
            return None
        last, calls = max(waits, key=lambda event: event.start), self.calls()
        return [event.end - last.end for event in self.of(*DEVICE)
                if event.end > last.end and event.correlation in calls and calls[event.correlation].end <= last.start]

    def crossings(self):
        """Pairs of ranges on one thread that overlap without one lying inside the other."""
        threads = collections.defaultdict(list)
        for event in self.of("cpu_op"):
            threads[event.thread].append(event)
        found = 0
        for ranges in threads.values():
            open_ends = []
            for event in sorted(ranges, key=lambda event: (event.start, -event.end)):
                while open_ends and open_ends[-1] <= event.start:
                    open_ends.pop()
                found += bool(open_ends) and event.end > open_ends[-1]
                open_ends.append(event.end)
        return found

    def launches_in_ops(self):
        """(launching calls inside some operator of their thread, all launching calls)"""
        device = {event.correlation for event in self.of("kernel")}
        threads = collections.defaultdict(list)
        for event in self.of("cpu_op"):
            threads[event.thread].append((event.start, event.end))
        covers = {thread: merged(ranges) for thread, ranges in threads.items()}
        launches = [call for correlation, call in self.calls().items() if correlation in device]
        inside = 0
        for call in launches:
            cover = covers.get(call.thread, [])
            place = bisect.bisect_right(cover, (call.start, float("inf"))) - 1
            inside += place >= 0 and cover[place][1] >= call.end
        return inside, len(launches)

    def blocks(self):
        """(allocations, frees, most bytes allocated) on the first GPU."""
        changes = [event["args"] for event in self.memory if event["args"].get("Device Type", 1) == 1]
        return (sum(change["Bytes"] > 0 for change in changes), sum(change["Bytes"] < 0 for change in changes),
                max((change.get("Total Allocated", 0) for change in changes), default=0))


def merged(ranges):
    """Ranges without overlaps, in order."""
    found = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found
