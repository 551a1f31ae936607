#!/usr/bin/env python3
"""Measures how many regressions `check` finds: plants regressions and harmless edits in recordings of any job.

    FORETRACE=build/foretrace tests/scripts/gate_table.py [--keep FOLDER] [--only EDIT,...] RECORDING...

Each edit is planted in a copy of each recording that it fits, with 0.5 % of noise on all device work, and compared
with a baseline of the original recording. One line an edit: how often it failed, was undecided or warned, how often
nothing was said, and how often the first cause named it; and which causes name work that is not new but only moved. `--keep` keeps the edited recordings for the next run.
"""

import argparse
import json
import os
import pathlib
import pickle
import random
import re
import subprocess
import sys
import tempfile

from harmless_changes import HARMLESS, DoesNotFit, jitter, main_ops, moved_op, one_step_less
from retimed_trace import HOST_CALLS, Recording, copy_call, delay, end_of, grow_blocks, host_call, launch, op, sync_call

PROGRAM = os.environ.get("FORETRACE", str(pathlib.Path(__file__).resolve().parents[2] / "build" / "foretrace"))
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
SMALL = "void at::native::vectorized_elementwise_kernel<4, extra>(int)"


OLD_CATEGORIES = {"Operator": "cpu_op", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset", "Runtime": "cuda_runtime"}


def recording(path):
    """Gives old recordings the categories of new ones, and makes times begin at 0, where a float is exact."""
    trace = Recording(path)
    begin = min(e["ts"] for e in trace.events if "ts" in e and e.get("ts", 0) > 0 and "dur" in e)
    kept = []
    for event in trace.events:
        event["cat"] = OLD_CATEGORIES.get(event.get("cat"), event.get("cat"))
        if event["cat"] in ("async", "gpu_user_annotation"):
            continue
        if event["cat"] is None:
            del event["cat"]
        if str(event.get("name", "")).startswith("ProfilerStep#") and event.get("cat") == "cpu_op":
            event["cat"] = "user_annotation"
        if event.get("ts", 0) > 0:
            event["ts"] -= begin
        event.setdefault("args", {})
        kept.append(event)
    trace.events[:] = kept
    return trace


def insert_in_steps(trace, items, part=0.5, steps=None):
    places = 0
    for step in (trace.steps() if steps is None else steps):
        ops = main_ops(trace, step)
        if ops:
            trace.insert(ops[int(len(ops) * part)]["ts"], items)
            places += 1
    if not places:
        raise DoesNotFit


def is_collective(event):
    return "nccl" in event["name"].lower()


def kernels(trace):
    return [e for e in trace.device_events() if e["cat"] == "kernel" and not is_collective(e)]


def shape_of(event):
    return event["name"], str(event["args"].get("grid"))


def by_work(trace):
    """Kernels launched in steps, by name and grid, those with the most work first."""
    spans = [(step["ts"], end_of(step)) for step in trace.steps()]
    launched = {e["args"].get("correlation") for e in trace.events if e.get("cat") in HOST_CALLS
                and any(begin <= e["ts"] < end for begin, end in spans)}
    work = {}
    for event in kernels(trace):
        if event["args"].get("correlation") not in launched:
            continue
        work[shape_of(event)] = work.get(shape_of(event), 0) + event["dur"]
    return sorted(work, key=work.get, reverse=True)


def slow_kernel(trace, rank, factor):
    order = by_work(trace)
    if len(order) <= rank:
        raise DoesNotFit
    chosen = order[rank]
    trace.slow(lambda e: e["cat"] == "kernel" and shape_of(e) == chosen, factor)
    return re.escape(plain(chosen[0]))


def plain(name):
    """The part of a kernel's name that every answer shows."""
    name = re.sub(r"^void |\(anonymous namespace\)::|at::native::", "", name)
    return re.split(r"[<(\d]", name)[0][:40]


def longer_host_op(trace):
    insert_in_steps(trace, [op("my::slow_op", [delay(worth_noticing(trace))])])


def worth_noticing(trace):
    """3 ms, or a tenth of a step."""
    lengths = sorted(step["dur"] for step in trace.steps())
    if not lengths:
        raise DoesNotFit
    return max(3000.0, 0.1 * lengths[len(lengths) // 2])


def pause_in_one_step(trace):
    steps = trace.steps()
    if len(steps) < 2:
        raise DoesNotFit
    insert_in_steps(trace, [delay(40_000.0)], steps=[steps[-2]])


def call_twice_as_long(trace):
    calls = [e for e in trace.events if e.get("cat") in HOST_CALLS and "LaunchKernel" in e["name"]]
    if sum(e["dur"] for e in calls) < 0.05 * sum(step["dur"] for step in trace.steps()):
        raise DoesNotFit
    for event in calls:
        trace.insert(event["ts"] + event["dur"] / 2, [delay(event["dur"])], (event["pid"], event["tid"]))


def loader_longer(trace):
    loading = [e for e in trace.events if e.get("name", "").startswith("enumerate(DataLoader)") and "dur" in e]
    loading = [e for e in loading if e["dur"] > 3000.0]
    if len(loading) < 2:
        raise DoesNotFit
    for event in loading:
        inside = [e for e in trace.events if e.get("cat") == "cpu_op" and event["ts"] < e["ts"] < end_of(event)]
        time = inside[len(inside) // 2]["ts"] if inside else event["ts"] + event["dur"] / 2
        trace.insert(time, [delay(0.3 * event["dur"])])


def collectives_slower(trace):
    if not any(is_collective(e) for e in trace.device_events()):
        raise DoesNotFit
    trace.slow(is_collective, 1.5)


def larger_inputs(trace):
    copies = [e for e in trace.device_events() if "HtoD" in e["name"] and e["args"].get("bytes", 0) > 100_000]
    all_bytes = sum(e["args"].get("bytes", 0) for e in trace.device_events())
    if not copies or sum(e["args"]["bytes"] for e in copies) < 0.05 * all_bytes:
        raise DoesNotFit
    chosen = {id(e) for e in copies}
    trace.slow(lambda e: id(e) in chosen, 2.0)
    for event in copies:
        event["args"]["bytes"] *= 2


def autocast_lost(trace):
    gemms = [e for e in kernels(trace) if "gemm" in e["name"].lower()]
    if sum(e["dur"] for e in gemms) < 0.05 * sum(e["dur"] for e in kernels(trace)):
        raise DoesNotFit
    for event in gemms:
        event["name"] = "ampere_sgemm_64x32_sliced_tn"
    trace.slow(lambda e: e["name"] == "ampere_sgemm_64x32_sliced_tn", 2.2)


def split_kernel(trace):
    chosen = by_work(trace)[0][0]
    by_correlation = {e["args"].get("correlation"): e for e in trace.device_events() if e["name"] == chosen}
    calls = [e for e in trace.events if e.get("cat") in HOST_CALLS and e["args"].get("correlation") in by_correlation]
    if not calls:
        raise DoesNotFit
    for call in calls:
        event = by_correlation[call["args"]["correlation"]]
        trace.insert(end_of(call), [launch(SMALL, event["dur"] * 0.6, event["args"]["stream"])], (call["pid"], call["tid"]))
    trace.slow(lambda e: e["name"] == chosen, 0.6)


def replaced_kernel(trace):
    """Replaces a kernel by a slower one of another family, as an update of a library may do."""
    chosen = by_work(trace)[1:2]
    if not chosen:
        raise DoesNotFit
    trace.slow(lambda e: e["cat"] == "kernel" and shape_of(e) == chosen[0], 1.4)
    for event in kernels(trace):
        if shape_of(event) == chosen[0]:
            event["name"] = "void newer_library::engine_kernel<float>(int)"
    return "newer_library::engine_kernel"


def spread_kernel(trace):
    """Slows all shapes of one kernel name: the smallest with several shapes whose slowdown is worth noticing, 0.3 % of all kernels' work."""
    grids, work = {}, {}
    for name, grid in by_work(trace):
        grids.setdefault(name, set()).add(grid)
    for event in kernels(trace):
        work[event["name"]] = work.get(event["name"], 0) + event["dur"]
    least = 0.003 / 0.15 * sum(work.values())
    several = [name for name in grids if len(grids[name]) >= 3 and work[name] >= least]
    if not several:
        raise DoesNotFit
    chosen = min(several, key=work.get)
    trace.slow(lambda e: e["cat"] == "kernel" and e["name"] == chosen, 1.15)
    return re.escape(plain(chosen))


def moved_and_slow(trace, which):
    """Moves an op as well: of two changes, only one made the job slower."""
    moved_op(trace, which)
    return slow_kernel(trace, 0, 1.5)


def memory_events(trace):
    events = [e for e in trace.events if e.get("name") == "[memory]" and "Addr" in e["args"]
              and e["args"].get("Device Type") in (1, 6)]
    if len(events) < 50:
        raise DoesNotFit
    return events


def leak(trace):
    events = memory_events(trace)
    leaked = []
    for i, step in enumerate(trace.steps()):
        ops = main_ops(trace, step)
        leaked.append((ops[len(ops) // 2]["ts"] + 0.5, 64 << 20, 0x7f0000000000 + i * (256 << 20), step))
    like = events[0]["args"]
    for event in events:
        event["args"]["Total Allocated"] += sum(size for ts, size, _, _ in leaked if ts < event["ts"])
    for ts, size, address, step in leaked:
        before = max((e for e in events if e["ts"] < ts), key=lambda e: e["ts"], default=events[0])["args"]
        trace.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": step["pid"],
                             "tid": step["tid"], "ts": ts,
                             "args": dict(like, Addr=address, Bytes=size, **{
                                 "Total Allocated": before["Total Allocated"] + size,
                                 "Total Reserved": before.get("Total Reserved", 0)})})


def greater_peak(trace):
    events = memory_events(trace)
    least = sorted(abs(e["args"]["Bytes"]) for e in events)[-len(events) // 10]
    grow_blocks(events, lambda event: event["args"]["Bytes"] // 512 * 512 if event["args"]["Bytes"] >= least else 0)


def lost_overlap(trace):
    """Copies and collectives that ran on a stream of their own now run on that of the kernels."""
    busiest = trace.main_stream()
    busy = sorted((e["ts"], end_of(e)) for e in trace.device_events() if e["args"]["stream"] == busiest)
    moved = [e for e in trace.device_events() if e["args"]["stream"] != busiest
             and (is_collective(e) or "HtoD" in e["name"]) and e["dur"] > 200.0]
    hidden = sum(max(0.0, min(end_of(e), b) - max(e["ts"], a)) for e in moved for a, b in busy)
    if not moved or hidden < 0.2 * sum(e["dur"] for e in moved):
        raise DoesNotFit
    for event in moved:
        event["args"]["stream"] = event["tid"] = busiest


def helper_thread(trace):
    """Three ops of 0.5 ms a step, on a thread that nothing waits for."""
    for step in trace.steps():
        for part in (0.1, 0.4, 0.7):
            trace.events.append({"ph": "X", "cat": "cpu_op", "name": "helper::poll", "pid": step["pid"], "tid": 77_001,
                                 "ts": step["ts"] + part * step["dur"], "dur": min(500.0, 0.2 * step["dur"]), "args": {}})


def unchanged(trace):
    pass


SMALL_OP = op("aten::mul", [launch(SMALL, 2.0)])
# Each edit, and the words of its first cause; {} stands for the value that the edit returns.
REGRESSIONS = {
    "one kernel +15 %": (lambda t: slow_kernel(t, 0, 1.15), "{}.* slower"),
    "another kernel +15 %": (lambda t: slow_kernel(t, 3, 1.15), "{}.* slower"),
    "one kernel +50 %": (lambda t: slow_kernel(t, 1, 1.5), "{}.* slower"),
    "one kernel x 3": (lambda t: slow_kernel(t, 4, 3.0), "{}.* slower"),
    "all kernels +3 %": (lambda t: t.slow(lambda e: e["cat"] == "kernel" and not is_collective(e), 1.03), "throughout"),
    "all kernels +8 %": (lambda t: t.slow(lambda e: e["cat"] == "kernel" and not is_collective(e), 1.08), "throughout"),
    "collectives x 1.5": (collectives_slower, "(?i)nccl.* slower"),
    "a pause of 40 ms in one step": (pause_in_one_step, "step.*host work|host work|one step|1 step"),
    "a pause in each step": (lambda t: insert_in_steps(t, [delay(worth_noticing(t))]), "host work|slower"),
    "a longer op": (longer_host_op, "host work.*my::slow_op|my::slow_op"),
    "a synchronization": (lambda t: insert_in_steps(t, [sync_call()]), "(new|more) cudaStreamSynchronize"),
    ".item()": (lambda t: insert_in_steps(t, [op("aten::item", [op("aten::_local_scalar_dense", [
        copy_call("Memcpy DtoH (Device -> Pinned)", 2.0, 4), sync_call()])])], 0.95),
                "(new|more) cudaStreamSynchronize.*aten::item|aten::item"),
    "200 launches": (lambda t: insert_in_steps(t, [SMALL_OP] * 200), "(new|more) .*vectorized_elementwise"),
    "a kernel split in two": (split_kernel, "(new|more) .*vectorized_elementwise|vectorized_elementwise.* in place"),
    "60 contiguous copies": (lambda t: insert_in_steps(t, [op("aten::contiguous", [
        copy_call("Memcpy DtoD (Device -> Device)", 20.0, 4_000_000)])] * 60), "(new|more) Memcpy DtoD"),
    "an allocation": (lambda t: insert_in_steps(t, [host_call("cudaMalloc", 2500.0), host_call("cudaFree", 800.0)]), "cudaFree|cudaMalloc"),
    "an all-reduce": (lambda t: insert_in_steps(t, [op("c10d::allreduce_", [launch(NCCL, 1500.0)])]), "(new|more) nccl"),
    "autocast lost": (autocast_lost, "sgemm"),
    "larger inputs": (larger_inputs, "HtoD.* larger"),
    "a pageable copy": (lambda t: insert_in_steps(t, [op("aten::copy_", [copy_call(
        "Memcpy HtoD (Pageable -> Device)", 1500.0, 8_000_000)])]), "HtoD"),
    "loader +30 %": (loader_longer, "load|enumerate"),
    "launch calls x 2": (call_twice_as_long, "launch calls take|host work.* throughout|LaunchKernel"),
    "lost overlap": (lost_overlap, "lost overlap|stream"),
    "a kernel replaced by a slower one": (replaced_kernel, "{}"),
    "all shapes of a kernel +15 %": (spread_kernel, "{}.* slower"),
    "a leak": (leak, "never freed"),
    "a greater peak": (greater_peak, "at the peak"),
}
MOVES = range(4)
for number in MOVES:
    REGRESSIONS[f"one kernel +50 %, moved op {number + 1}"] = (
        lambda trace, which=number: moved_and_slow(trace, which), "{}.* slower")
HARMLESS_EDITS = {change.__name__: (change, None) for change in HARMLESS if change not in (one_step_less, jitter)}
HARMLESS_EDITS["noise alone"] = (unchanged, None)
HARMLESS_EDITS["an idle helper thread"] = (helper_thread, None)
for number in MOVES:
    HARMLESS_EDITS[f"moved op {number + 1}"] = (lambda trace, which=number: moved_op(trace, which), None)


def noise(trace, seed):
    chance = random.Random(seed)
    for event in trace.device_events():
        event["new_dur"] = event.get("new_dur", event["dur"]) * (1 + chance.uniform(-0.005, 0.005))


class Gate:
    def __init__(self, folder):
        self.folder, self.rows, self.details = pathlib.Path(folder), {}, []
        self.moves, self.invented = 0, []
        self.folder.mkdir(exist_ok=True, parents=True)

    def check(self, path, baseline, *more):
        return subprocess.run([PROGRAM, "check", str(path), "--baseline", str(baseline), "--no-cache", "--quiet", *more],
                              capture_output=True, text=True)

    def planted(self, original, name, edit, path):
        """The edited recording and what its first cause must say; None where the edit does not fit."""
        words = path.with_suffix(".words")
        if words.exists():
            return None if words.read_text() == "does not fit" else words.read_text()
        trace = pickle.loads(original())
        try:
            said = edit[0](trace)
        except DoesNotFit:
            words.write_text("does not fit")
            return None
        noise(trace, name)
        trace.retime()
        trace.write(path)
        words.write_text((edit[1] or "").replace("{}", said or ""))
        return words.read_text()

    def try_recording(self, path, edits):
        name = "-".join(pathlib.Path(path).parts[-2:]).split(".")[0]
        kept, before = [], self.folder / f"{name}.before.json.gz"

        def original():
            if not kept:
                kept.append(pickle.dumps(recording(path)))
            return kept[0]

        if not before.exists():
            trace = pickle.loads(original())
            trace.retime()
            trace.write(before)
        baseline = self.folder / f"{name}.baseline.json"
        baseline.unlink(missing_ok=True)
        done = self.check(before, baseline, "--bless")
        if done.returncode:
            sys.exit(done.stderr)
        for edit_name, edit in edits.items():
            after = self.folder / f"{name}.{re.sub('[^a-z0-9]+', '_', edit_name.lower())}.json.gz"
            words = self.planted(original, edit_name, edit, after)
            if words is not None:
                self.judge(name, edit_name, words, self.check(after, baseline, "--format", "json"))

    def judge(self, name, edit, words, done):
        if done.returncode not in (0, 1, 4):
            self.details.append(f"{edit} | {name} | ERROR {done.stderr.strip()[:200]}")
            self.rows.setdefault(edit, []).append(("refused", False))
            return
        answer = json.loads(done.stdout)
        told = [c["what"] + " from " + c["where"] for c in answer["causes"]]
        first = bool(told) and bool(words) and bool(re.search(words, told[0]))
        if "moved op" in edit:
            self.moves += 1
            self.invented += [f"{edit} | {name} | {what}" for what in told if re.search(r"\b(new|more)\b|throughout|in place of", what)]
        standing = answer["standing"]
        metrics = [m["name"] for m in answer["metrics"] if m["standing"] == standing]
        if standing == "passed" and words and any(m["why"] for m in answer["metrics"]):
            standing, metrics = "reasoned", [m["name"] for m in answer["metrics"] if m["why"]]
        self.rows.setdefault(edit, []).append((standing, first))
        wrong = standing != "passed" if not words else (standing == "passed" or not first)
        self.details.append(f"{'! ' if wrong else '  '}{edit} | {name} | {standing} {','.join(metrics) if standing != 'passed' else ''} | "
                            + " || ".join(f"{(c['effect_ns'] or 0) / 1e6:.3f}ms {c['what'][:110]} @ {c['where'][:60]}"
                                          for c in answer["causes"][:2]))

    def table(self, edits, is_regression):
        lines = ["| edit | recordings | failed | undecided | warned | passed, with a reason | silent | first cause right |",
                 "|---|--:|--:|--:|--:|--:|--:|--:|"]
        found = right = every = 0
        for name in edits:
            row = self.rows.get(name, [])
            if not row:
                continue
            count = {s: sum(1 for standing, _ in row if standing == s) for s in ("failed", "undecided", "warned", "reasoned", "passed")}
            first = sum(1 for _, is_right in row if is_right)
            every, found, right = every + len(row), found + len(row) - count["passed"] - count["reasoned"], right + first
            lines.append(f"| {name} | {len(row)} | {count['failed']} | {count['undecided']} | {count['warned']} | {count['reasoned']} | {count['passed']} | "
                         + (f"{first} |" if is_regression else "|"))
        lines.append(f"{found} of {every} {'found' if is_regression else 'flagged'}"
                     + (f" ({100 * found / max(1, every):.1f} %), first cause right in {right} ({100 * right / max(1, found):.1f} % of them)"
                        if is_regression else ""))
        return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("recordings", nargs="+")
    parser.add_argument("--keep")
    parser.add_argument("--only", default="")
    parser.add_argument("--details", action="store_true")
    chosen = parser.parse_args()
    wanted = [name for name in chosen.only.split(",") if name]

    def of(edits):
        return {name: edit for name, edit in edits.items() if not wanted or any(one in name for one in wanted)}

    with tempfile.TemporaryDirectory() as passing:
        gate = Gate(chosen.keep or passing)
        for path in chosen.recordings:
            gate.try_recording(path, {**of(REGRESSIONS), **of(HARMLESS_EDITS)})
            print("done", path, file=sys.stderr, flush=True)
    if chosen.details:
        print("\n".join(sorted(gate.details, key=lambda line: line.lstrip("! "))))
    print(gate.table(of(REGRESSIONS), True))
    print(gate.table(of(HARMLESS_EDITS), False))
    print(f"{len(gate.invented)} causes invented where an op only moved, in {gate.moves} recordings")
    print("\n".join(gate.invented))


if __name__ == "__main__":
    main()
