"""Differences that two recordings of one program may have. Each change is made in place."""

import random
import re

from retimed_trace import DEVICE, end_of


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
