"""The recorded events, in the format of PyTorch's Kineto traces."""

import gzip
import json

BASE_NS = 1_700_000_000_000_000_000  # Times are counted from here, as newer profilers do.
DEVICE = 0
PROCESS = 4242


class Recorder:
    """Numbers and collects events while `on`. The simulation is the same whether it is on or off."""

    def __init__(self):
        self.on = False
        self.events = []
        self._external = 0
        self._correlation = 0
        self._python = 0

    def next_external(self):
        self._external += 1
        return self._external

    def next_correlation(self):
        self._correlation += 1
        return self._correlation

    def next_python(self):
        self._python += 1
        return self._python

    def complete(self, category, name, pid, tid, start, end, args):
        if self.on:
            self.events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
                                "ts": start, "dur": end - start, "args": args})

    def flow(self, phase, category, number, pid, tid, time):
        if not self.on:
            return
        event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": time, "cat": category,
                 "name": category}
        if phase == "f":
            event["bp"] = "e"
        self.events.append(event)

    def memory(self, tid, time, address, change, allocated, reserved):
        if self.on:
            self.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]",
                                "pid": PROCESS, "tid": tid, "ts": time,
                                "args": {"Device Type": 1, "Device Id": DEVICE, "Addr": address, "Bytes": change,
                                         "Total Allocated": allocated, "Total Reserved": reserved}})


def microseconds(nanoseconds):
    """A JSON number with three decimals, written without going through binary fractions."""
    return f"{nanoseconds // 1000}.{nanoseconds % 1000:03d}"


def event_text(event):
    """json.dumps with exact times: the key order is that of the profiler."""
    parts = []
    for key, value in event.items():
        shown = microseconds(value) if key in ("ts", "dur") else json.dumps(value, separators=(", ", ": "))
        parts.append(f'"{key}": {shown}')
    return "{" + ", ".join(parts) + "}"


def name_events(threads, streams, start):
    """Metadata events that give processes, threads and streams their names."""
    def meta(kind, pid, tid, **args):
        return {"name": kind, "ph": "M", "ts": start, "pid": pid, "tid": tid, "args": args}

    yield meta("process_name", PROCESS, 0, name="python3")
    yield meta("process_labels", PROCESS, 0, labels="CPU")
    yield meta("process_name", DEVICE, 0, name="python3")
    yield meta("process_labels", DEVICE, 0, labels="GPU 0")
    for tid, name in threads:
        yield meta("thread_name", PROCESS, tid, name=f"thread {tid} ({name})")
    for stream in streams:
        yield meta("thread_name", DEVICE, stream, name=f"stream {stream} ")


def write_trace(path, header, events, names):
    """Plain as .json, else gzip with no time in it, so that the same events make the same bytes with the same zlib."""
    ordered = sorted(events, key=lambda event: event["ts"])
    start = ordered[0]["ts"]
    end = max(event["ts"] + event.get("dur", 0) for event in ordered)
    lines = [event_text(event) for event in [*ordered, *names(start)]]
    lines.append(event_text({"ph": "X", "cat": "Trace", "ts": start, "dur": end - start, "pid": "Spans",
                             "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}}))
    head = json.dumps(header, indent=1)[:-2]
    text = head + ',\n "traceEvents": [\n' + ",\n".join(lines) + "\n]}\n"
    if str(path).endswith(".json"):
        path.write_text(text)
        return
    with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as out:
        out.write(text.encode())
