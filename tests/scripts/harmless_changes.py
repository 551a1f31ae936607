"""Differences that two recordings of one program may have. Each change is made in place."""

import random
import re

from retimed_trace import DEVICE, HOST_CALLS, end_of


class DoesNotFit(Exception):
    """Raised if the recording has nothing that the edit could change."""


def main_ops(trace, step):
    """The outermost of these events, in order."""
    ops = sorted((e for e in trace.events if e.get("cat") == "cpu_op" and e.get("tid") == step["tid"]
                  and step["ts"] <= e["ts"] < end_of(step)), key=lambda e: (e["ts"], -e["dur"]))
    outer, end = [], 0.0
    for event in ops:
        if event["ts"] >= end:
            outer.append(event)
            end = end_of(event)
    return outer


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


class Move:
    """An op of the main thread that moves into a later one, past all between: the same work at another place.

    host    | X  a  b  Y[y]  |  ->  | a  b  Y[X y]  |        the work between begins earlier by the length of X,
    device  | x a b y        |  ->  | a b x y       |        and nothing before X or after Y changes
    """

    def __init__(self, trace, step, op, into):
        self.op, self.into = op, into
        thread = [e for e in trace.by_thread[step["pid"], step["tid"]] if op["ts"] <= e["ts"] <= into["ts"]]
        self.inside = [e for e in thread if e["ts"] < end_of(op)]
        behind = [e for e in thread if e["ts"] >= end_of(op)]
        self.between = [e for e in behind if end_of(e) <= into["ts"]]
        self.around = [e for e in behind if end_of(e) > into["ts"]]     # of the other op
        self.alone = not any(op["ts"] <= e["ts"] <= into["ts"] for key, others in trace.by_thread.items()
                             if key != (step["pid"], step["tid"]) for e in others)
        self.room = min((e["ts"] for e in behind), default=into["ts"]) - op["ts"]
        self.work = self.device_work(trace, self.inside)
        self.passed = self.device_work(trace, self.between)

    @staticmethod
    def device_work(trace, host):
        calls = {e["args"].get("correlation") for e in host if e["cat"] in HOST_CALLS}
        return sorted((e for c in calls for e in trace.launched.get(c, [])), key=lambda e: e["ts"])

    def fits(self, trace):
        """Whether all of it could have happened: each thread and stream in order, and no work before its launch."""
        if not self.work or not self.passed or self.room - self.op["dur"] < 0.01 or not self.alone or not self.is_plain():
            return False
        last, first = max(self.passed, key=lambda e: e["ts"]), self.work[0]
        stream = trace.by_stream[first["args"]["stream"]]
        run = [e for e in stream if first["ts"] <= e["ts"] <= last["ts"]]
        if run[:len(self.work)] != self.work:
            return False
        self.passed = run[len(self.work):]
        self.earlier = self.passed[0]["ts"] - first["ts"]
        self.later = end_of(last) - end_of(self.work[-1])
        moved_calls = {e["args"].get("correlation") for e in self.between}
        starts = [(e, -self.earlier, -self.room if e["args"].get("correlation") in moved_calls else 0.0) for e in self.passed]
        starts += [(e, self.later, self.into["ts"] - self.room - self.op["ts"]) for e in self.work]
        return all(e["ts"] + by >= trace.launch_of[e["args"].get("correlation")]["ts"] + of_call + 1.0
                   for e, by, of_call in starts)

    def is_plain(self):
        waits = [e for e in self.inside + self.between if any(word in e["name"] for word in ("Synchronize", "Malloc", "Free", "Memcpy"))]
        of_one_stream = len({e["args"]["stream"] for e in self.work}) == 1
        return not waits and of_one_stream and all(e["cat"] == "kernel" and "nccl" not in e["name"].lower() for e in self.work)

    def make(self, trace):
        gap = min(0.2, (self.room - self.op["dur"]) / 2)
        host = self.into["ts"] - self.room + gap - self.op["ts"]
        for events, by in ((self.inside, host), (self.between, -self.room), (self.work, self.later), (self.passed, -self.earlier)):
            for event in events:
                event["ts"] += by
                for flow in trace.flows.get((event["args"].get("correlation"), event["cat"] in DEVICE), []):
                    flow["ts"] = event["ts"]
        for event in self.around:
            event["ts"] -= self.room
            event["dur"] += self.room


def index_events(trace):
    trace.by_thread, trace.by_stream, trace.launched, trace.launch_of, trace.flows = {}, {}, {}, {}, {}
    for event in sorted((e for e in trace.events if "dur" in e and "args" in e), key=lambda e: (e["ts"], -e["dur"])):
        if event.get("cat") in DEVICE:
            trace.by_stream.setdefault(event["args"]["stream"], []).append(event)
            trace.launched.setdefault(event["args"].get("correlation"), []).append(event)
        elif "cat" in event:
            trace.by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
            if event["cat"] in HOST_CALLS:
                trace.launch_of[event["args"].get("correlation")] = event
    for event in trace.events:
        if event.get("cat") == "ac2g":
            trace.flows.setdefault((event["id"], event["ph"] == "f"), []).append(event)


def moved_op(trace, which):
    """Moves one op of each step into a later op of the step; `which` chooses among those that can move."""
    index_events(trace)
    steps = [(step, main_ops(trace, step)) for step in trace.steps()]
    names = [op["name"] for op in steps[len(steps) // 2][1]] if steps else []
    moves = random.Random(which)
    for _ in range(300):
        if len(names) < 4:
            break
        first = moves.randrange(len(names) - 2)
        last = min(len(names) - 1, first + moves.choice((2, 5, 20, 80)))
        if names[first] == names[last]:
            continue
        found = [Move(trace, step, ops[first], ops[last]) for step, ops in steps
                 if [op["name"] for op in ops[first:last + 1]] == names[first:last + 1]]
        if len(found) < max(1, len(steps) - 1) or not all(move.fits(trace) for move in found):
            continue
        for move in found:
            move.make(trace)
        return
    raise DoesNotFit


HARMLESS = [rename_processes, shuffle_events, renumber_correlations, renumber_streams, shift_times, other_folders,
            other_process, not_packed, other_tiles, more_metadata, other_step_numbers, one_step_less, jitter,
            other_case_of_device, other_addresses, other_threads, other_python_ids, metadata_last, unrelated_ranges,
            other_profiler, moved_lines]
