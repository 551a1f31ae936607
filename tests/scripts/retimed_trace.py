"""A recording of PyTorch's profiler that can be edited as a changed program would have changed it.

An edit shifts everything after it: a host thread that does more begins its later work later, a kernel waits for its launch
and for the previous kernel, a synchronizing call returns after the work it waits for. All host threads are treated as one
sequence of work, as in a training step, where one of them works while the others wait.

    trace = Recording(path)
    for step in trace.steps():
        trace.insert(trace.place(step, "aten::relu_"), [sync_call()])
    trace.slow(lambda event: "gemm" in event["name"], 1.5)
    trace.write(path)
"""

import bisect
import copy
import gzip
import json

HOST_CALLS = ("cuda_runtime", "cuda_driver")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
HOST = ("cpu_op", "user_annotation", "python_function") + HOST_CALLS
MIN_LAG = 2.5     # us between a launch and its kernel
MIN_GAP = 1.0     # us between two kernels of a stream
TICK = 0.0004     # us, less than times are written with


def end_of(event):
    return event["ts"] + event["dur"]


class Recording:
    def __init__(self, path):
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "rt") as file:
            self.document = json.load(file)
        self.events = self.document["traceEvents"]
        self.insertions = []      # (time, items)
        self.named = {}           # events by category and name, as far as they were requested
        self.next_correlation = 5_000_000

    # Finding places.

    def steps(self):
        return sorted((e for e in self.events if e.get("name", "").startswith("ProfilerStep#")
                       and e.get("cat") == "user_annotation"), key=lambda e: e["ts"])

    def ops(self, step, name, cat="cpu_op"):
        if (cat, name) not in self.named:
            self.named[cat, name] = [e for e in self.events if e.get("cat") == cat and e["name"] == name]
        return sorted((e for e in self.named[cat, name] if step["ts"] <= e["ts"] < end_of(step)), key=lambda e: e["ts"])

    def device_events(self):
        return [e for e in self.events if e.get("cat") in DEVICE]

    def main_stream(self):
        work = {}
        for event in self.device_events():
            stream = event["args"]["stream"]
            work[stream] = work.get(stream, 0) + event["dur"]
        return max(work, key=work.get)

    # Editing.

    def slow(self, chosen, factor, extra=0.0):
        """Device events take longer; `factor` may depend on the event."""
        for event in self.device_events():
            if chosen(event):
                by = factor(event) if callable(factor) else factor
                event["new_dur"] = event["dur"] * by + extra

    def insert(self, time, items, thread=None):
        """Host work at a time: a list of delay(), op(), call() ... that take place one after another."""
        self.insertions.append((time, items, thread))

    # Times.

    def retime(self):
        calls = sorted((e for e in self.events if e.get("cat") in HOST_CALLS), key=lambda e: e["ts"])
        launched = {}
        for event in self.device_events():
            launched.setdefault(event["args"].get("correlation"), []).append(event)
        in_front = self._in_front()
        self.busiest = self.main_stream()
        self.finish, self.latest = {}, {}     # new ends by stream, and of all
        self.marks, self.shifts = [], []      # the shift of host times from a time on
        work = [(c["ts"], 0, c) for c in calls] + [(t, 1, (items, thread)) for t, items, thread in self.insertions]
        work.sort(key=lambda w: (w[0], -w[1]))
        self.original_ends = []
        self.added = []
        for time, inserted, what in work:
            if inserted:
                self._insert(time, *what)
            else:
                self._call(what, launched.get(what["args"].get("correlation"), []), in_front)
        self._shift_everything()
        self.insertions = []

    def _shift(self, time):
        i = bisect.bisect_right(self.marks, time)
        return self.shifts[i - 1] if i else 0.0

    def _set_shift(self, time, shift):
        self.marks.append(time)
        self.shifts.append(shift)

    def _in_front(self):
        lines, front = {}, {}
        for event in sorted(self.device_events(), key=lambda e: e["ts"]):
            stream = event["args"]["stream"]
            front[id(event)] = lines.get(stream)
            lines[stream] = event
        return front

    def _place(self, event, launch, new_launch, before):
        """The new start of a device event, from the cause of its recorded start."""
        stream = event["args"]["stream"]
        free = self.finish.get(stream, -1e18)
        lag, gap = event["ts"] - launch, event["ts"] - end_of(before) if before else 1e18
        if gap <= 3.0:
            start = max(free + gap, new_launch + min(lag, MIN_LAG))
        else:
            start = max(new_launch + min(lag, 15.0), free + MIN_GAP)
            if lag > 15.0:
                cause = self._ended_before(event)
                start = max(start, cause["new_ts"] + cause.get("new_dur", cause["dur"]) + event["ts"] - end_of(cause)) \
                    if cause else max(start, new_launch + lag)
        self._occupy(event, start)

    def _ended_before(self, event):
        found = [e for e in self.original_ends[-400:] if e["args"]["stream"] != event["args"]["stream"]
                 and event["ts"] - 8.0 <= end_of(e) <= event["ts"]]
        return max(found, key=end_of) if found else None

    def _occupy(self, event, start):
        stream = event["args"]["stream"]
        event["new_ts"] = start
        self.finish[stream] = start + event.get("new_dur", event["dur"])
        self.latest[stream] = event
        self.original_ends.append(event)

    def _call(self, call, events, in_front):
        shift = self._shift(call["ts"])
        start = call["ts"] + shift
        for event in sorted(events, key=lambda e: e["ts"]):
            self._place(event, call["ts"], start, in_front[id(event)])
        if "Synchronize" in call["name"]:
            waited = [e for e in self.latest.values() if not e.get("is_new") and end_of(e) <= end_of(call) + 1]
            blocking = max(waited, key=end_of) if waited else None
        else:
            # Returns when the last piece is staged, a little before that piece has arrived.
            blocks = [e for e in events if "Pageable" in e["name"] and end_of(e) <= end_of(call) + 20]
            blocking = blocks[-1] if blocks else None
        if blocking is None:
            return
        behind = end_of(call) - end_of(blocking) if end_of(blocking) > call["ts"] else 2.0
        done = blocking["new_ts"] + blocking.get("new_dur", blocking["dur"])
        if "Synchronize" in call["name"]:
            done = max(done, self.finish[blocking["args"]["stream"]])
        end = max(start + min(call["dur"], 6.0), done + min(behind, 20.0))
        self._set_shift(end_of(call) - TICK, end - end_of(call))

    def _insert(self, time, items, thread):
        shift = self._shift(time)
        now = begin = time + shift
        for item in items:
            now = item(self, now, thread)
        self._set_shift(time - TICK, shift + now - begin)

    def _shift_everything(self):
        by_correlation = {e["args"].get("correlation"): e for e in self.device_events()}
        last = 0.0
        for event in self.events:
            cat = event.get("cat")
            if cat in DEVICE:
                if "new_ts" in event:
                    event["ts"] = event.pop("new_ts")
                event["dur"] = event.pop("new_dur", event["dur"])
            elif cat == "ac2g" and event["ph"] == "f":
                pass
            elif cat == "Trace" or event["ph"] == "M":
                continue
            elif "dur" in event:
                end = end_of(event) + self._shift(end_of(event))
                event["ts"] += self._shift(event["ts"])
                event["dur"] = max(0.0, end - event["ts"])
            else:
                event["ts"] += self._shift(event["ts"])
            last = max(last, event["ts"] + event.get("dur", 0.0))
        for event in self.added:
            event.pop("is_new", None)
            event["ts"] = event.pop("new_ts", event["ts"])
        self.events.extend(self.added)
        self.named = {}
        for event in self.events:
            if event.get("cat") == "ac2g" and event["ph"] == "f" and event["id"] in by_correlation:
                event["ts"] = by_correlation[event["id"]]["ts"]
            if event.get("cat") == "Trace":
                event["dur"] = last - event["ts"]
        for event in self.events:
            for key in ("ts", "dur"):
                if key in event:
                    event[key] = round(event[key], 3)

    def add_host(self, cat, name, start, length, thread, **args):
        pid, tid = thread or self.main_thread()
        self.added.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length,
                           "args": args})

    def main_thread(self):
        step = self.steps()[0]
        return step["pid"], step["tid"]

    def write(self, path):
        text = json.dumps(self.document)
        if str(path).endswith(".gz"):
            with gzip.GzipFile(path, "wb", mtime=0, compresslevel=1) as file:
                file.write(text.encode())
        else:
            with open(path, "w") as file:
                file.write(text)

    def copy(self):
        return copy.deepcopy(self)


def grow_blocks(events, growth):
    """Each allocation among memory events takes `growth(event)` bytes more until it is freed, and the totals say so."""
    grown, more = {}, 0
    for event in sorted(events, key=lambda e: e["ts"]):
        args = event["args"]
        extra = growth(event) if args["Bytes"] > 0 else 0
        if extra > 0:
            grown[args["Addr"]] = extra
            args["Bytes"] += extra
            more += extra
        elif args["Bytes"] < 0 and args["Addr"] in grown:
            args["Bytes"] -= grown[args["Addr"]]
            more -= grown.pop(args["Addr"])
        args["Total Allocated"] += more


# Items to insert. Each is called with the recording, the time and the thread, and returns the time at which it is done.

def delay(length):
    return lambda trace, now, thread: now + length


def frame(text, items):
    """A Python frame around other items."""
    def run(trace, now, thread):
        end = now
        for item in items:
            end = item(trace, end, thread)
        trace.add_host("python_function", text, now, max(end - now, 0.01), thread)
        return end
    return run


def op(name, items, before=3.0, behind=2.0):
    def run(trace, now, thread):
        end = now + before
        for item in items:
            end = item(trace, end, thread)
        trace.add_host("cpu_op", name, now, end + behind - now, thread)
        return end + behind
    return run


def sync_call(name="cudaStreamSynchronize"):
    """Waits for all launched work."""
    def run(trace, now, thread):
        trace.next_correlation += 1
        done = max(list(trace.finish.values()) + [now])
        end = max(now + 4.0, done + 3.0)
        trace.add_host("cuda_runtime", name, now, end - now, thread, correlation=trace.next_correlation)
        return end
    return run


def host_call(name, length=1.5):
    def run(trace, now, thread):
        trace.next_correlation += 1
        trace.add_host("cuda_runtime", name, now, length, thread, correlation=trace.next_correlation)
        return now + length
    return run


def launch(name, length, stream=None, cat="kernel", call="cudaLaunchKernel", wait_for=(), **args):
    """A call of 5 us and the work that it launches. `wait_for`: streams whose work it waits for."""
    def run(trace, now, thread):
        trace.next_correlation += 1
        line = stream if stream is not None else trace.busiest
        free = max([trace.finish.get(s, -1e18) for s in (line, *wait_for)])
        start = max(now + 8.0, free + MIN_GAP)
        blocks = "Pageable" in name
        end = start + length + 3.0 if blocks else now + 5.0
        trace.add_host("cuda_runtime", call, now, end - now, thread, correlation=trace.next_correlation)
        event = {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": line, "ts": start, "dur": length, "is_new": True,
                 "args": {"device": 0, "context": 1, "stream": line, "correlation": trace.next_correlation, **args}}
        event["new_ts"] = start
        trace.finish[line] = start + length
        trace.latest.setdefault(line, event)
        trace.added.append(event)
        return end
    return run


def copy_call(name, length, size, stream=None, **more):
    return launch(name, length, stream, "gpu_memcpy", "cudaMemcpyAsync", bytes=size, **more)
