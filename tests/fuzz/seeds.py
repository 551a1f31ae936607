#!/usr/bin/env python3
"""Writes small valid inputs for the targets that read a format: seeds.py BUILD FOLDER, with a build with tests.

A tiny recording of one training step, in every format that foretrace writes, and the scenarios, baselines
and answers of this repository. FOLDER then holds a folder for each target.
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "attack"))
import small_inputs

# Bytes that a target removes from the front of its input: the size of its window.
PREFIXES = {"kineto": b"\x10"}
# Answers of the sweep whose header sweep_file_fuzz.cc has; the first byte chooses the form.
ANSWER = (b'\x02{"point":0,"settings":{"variant":"a","scale.factor":0.5},"step_time_ns":266410,"speedup":1.1,"interval_ns":[1,2],'
          b'"peak_allocated_bytes":1024,"peak_reserved_bytes":2097152,"fits":true,"trust":"fair","asserts":{"step_time <= 1ms":"fails"}}\n'
          b'{"point":1,"settings":{"variant":"b","scale.factor":1},"refused":"no"}\n')
TABLE = (b"\x01point,variant,scale.factor,step_time_ns,speedup,peak_allocated_bytes,peak_reserved_bytes,fits,trust,assert step_time <= 1ms,figures,refused\n"
         b"0,a,0.5,266410,1.1,1024,2097152,true,fair,fails,,\n")


def event(name, category, begin, duration, thread, **arguments):
    return {"ph": "X", "cat": category, "name": name, "pid": "GPU 0" if isinstance(thread, str) else 9, "tid": thread,
            "ts": begin, "dur": duration, "args": arguments}


def recording():
    """Two steps: a copy, two kernels on two streams that an event orders, a reduction, a wait for the device."""
    events = []
    for step, at in ((1, 100.0), (2, 400.0)):
        number = step * 10
        kernel = {"device": 0, "grid": [8, 1, 1], "block": [128, 1, 1]}
        events += [
            event(f"ProfilerStep#{step}", "user_annotation", at, 290, 9),
            event("enumerate(DataLoader)", "user_annotation", at + 1, 9, 9),
            event("aten::linear", "cpu_op", at + 20, 60, 9, **{"Sequence number": number, "Input Dims": [[8, 16], [16, 16]], "Input type": ["float", "float"]}),
            event("cudaMemcpyAsync", "cuda_runtime", at + 12, 5, 9, correlation=number),
            event("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", at + 15, 9, "stream 7", device=0, stream=7, bytes=4096, correlation=number),
            event("cudaLaunchKernel", "cuda_runtime", at + 30, 8, 9, correlation=number + 1),
            event("sgemm_128x64_nn", "kernel", at + 40, 70, "stream 7", stream=7, correlation=number + 1, **kernel),
            event("cudaEventRecord", "cuda_runtime", at + 50, 2, 9, correlation=number + 2, event=step),
            event("cudaStreamWaitEvent", "cuda_runtime", at + 53, 2, 9, correlation=number + 3, event=step, stream=13),
            event("aten::add", "cpu_op", at + 85, 30, 11, **{"Sequence number": number, "Fwd thread id": 1}),
            event("cudaLaunchKernel", "cuda_runtime", at + 90, 8, 11, correlation=number + 4),
            event("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", "kernel", at + 120, 40, "stream 13", stream=13, correlation=number + 4, **kernel),
            event("cudaDeviceSynchronize", "cuda_runtime", at + 150, 80, 9, correlation=number + 5),
            {"ph": "i", "name": "[memory]", "pid": 9, "tid": 9, "ts": at + 25, "args": {"Device Type": 1, "Device Id": 0, "Addr": 64, "Bytes": 512, "Total Allocated": 512 * step}},
        ]
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "numSms": 108}], "traceEvents": events}


def execution_trace():
    """One op inside another, as Chakra and PyTorch's observer write them."""
    chakra = {"schema": "1.0.2-chakra.0.0.4", "pid": 9, "time": "x", "start_ts": 1, "nodes": [
        {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1, "inputs": {"values": [], "shapes": [], "types": []},
         "outputs": {"values": [], "shapes": [], "types": []}, "attrs": [{"name": "rf_id", "type": "uint64", "value": 0}]},
        {"id": 2, "name": "aten::add", "ctrl_deps": 1, "inputs": {"values": [[5, 6, 0, 4, 4, "cuda:0"]], "shapes": [[4]], "types": ["Tensor(float)"]},
         "outputs": {"values": [[7, 8, 0, 4, 4, "cuda:0"]], "shapes": [[4]], "types": ["Tensor(float)"]},
         "attrs": [{"name": "rf_id", "type": "uint64", "value": 3}, {"name": "tid", "type": "uint64", "value": 1}]}]}
    return json.dumps(chakra).encode()


def main():
    build, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    foretrace, played = build / "foretrace", build / "tests" / "collect"

    def keep(target, name, content):
        (folder / target).mkdir(parents=True, exist_ok=True)
        (folder / target / name).write_bytes(PREFIXES.get(target, b"") + content)

    def run(*arguments, **environment):
        subprocess.run([foretrace, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env={**os.environ, **environment})

    folder.mkdir(parents=True, exist_ok=True)
    trace = folder / "recording.json"
    text = json.dumps(recording(), separators=(",", ":")).encode()
    trace.write_bytes(text)
    keep("kineto", "recording", text)
    keep("chakra", "observer", execution_trace())
    for target, ending in (("ftrace", "ftrace"), ("perfetto", "pftrace"), ("pickle", "pickle"), ("graph", "graph")):
        written = folder / f"written.{ending}"
        run("convert", trace, written)
        keep(target, "recording", written.read_bytes())
    run("convert", trace, folder / "written.sqlite")
    run("collect", "--keep-spool", "-o", folder / "collected.ftrace", "--", played / "played_app", "normal", "2",
        LD_LIBRARY_PATH=str(played / "cuda13"), FORETRACE_BUFFER_BYTES="16384")
    for path in folder.rglob("*.spool"):
        keep("spool", "collected", path.read_bytes())
    keep("sweep_file", "lines", ANSWER)
    keep("sweep_file", "table", TABLE)
    run("check", trace, "--baseline", folder / "baseline.json", "--bless")
    keep("baseline", "blessed", (folder / "baseline.json").read_bytes())
    for limit in ("step<5ms", "memory <= 4GiB", "kernels<+10%"):
        keep("baseline", limit.replace("/", ""), limit.encode())
    small = folder / "written.sqlite"
    with contextlib.closing(sqlite3.connect(small)) as database:
        database.executescript("PRAGMA page_size=512; VACUUM;")
    keep("nsys", "recording", small.read_bytes())
    scenarios = [*(ROOT / "scenarios").rglob("*.json"), *(ROOT / "tests" / "golden").rglob("scenario.json")]
    for path in scenarios:
        if path.name.endswith("schema.json"):
            continue
        for target in ("scenario", "sweep"):
            keep(target, f"{path.parent.name}-{path.name}", path.read_bytes())
    for path in (ROOT / "tests" / "golden").rglob("*.json"):
        if path.name != "scenario.json":
            keep("baseline" if path.name == "baseline.json" else "outcomes", f"{path.parent.name}-{path.name}", path.read_bytes())
    for name, log in (("records", small_inputs.inspector()), ("figures", small_inputs.inspector_text())):
        keep("inspector", name, log.encode())
    keep("allocator", "program", (ROOT / "tests" / "golden" / "memory-replay" / "program.txt").read_bytes())


if __name__ == "__main__":
    main()
