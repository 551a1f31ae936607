"""Eight properties of the collector that only a GPU can show. Each is checked by one function: (passed, numbers)."""

import json
import pathlib
import re
import statistics
import sys
import tempfile

from ground_truth import plan, played, process, provenance, results
from ground_truth.events import Events
from ground_truth.process import Failed

STEPS = 4
NOTHING_RECORDED = 3  # An exit code of `foretrace collect`.
LAUNCHES = 1000
# Launches a known number of kernels of one name and ends without waiting for them.
LAUNCHING = """
import torch
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
for _ in range({count}):
    x.add_(1)
{end}
"""
# Makes one record of each kind, for the golden buffers.
SOME_OF_ALL = """
import torch
host = torch.ones(1 << 16).pin_memory()
x = host.to("cuda", non_blocking=True)
y = torch.zeros_like(x)
aside = torch.cuda.Stream()
done = torch.cuda.Event()
for _ in range(20):
    y.add_(x)
    done.record()
    aside.wait_event(done)
    with torch.cuda.stream(aside):
        z = y @ x
    torch.cuda.current_stream().wait_stream(aside)
y.zero_()
y.cpu()
torch.cuda.nvtx.range_push("golden")
torch.cuda.synchronize()
torch.cuda.nvtx.range_pop()
"""


class NeedsGpu(Exception):
    """Raised by a check that a dry run cannot make."""


class Trial:
    """One recording: its trace, Foretrace's answer about it, and the program's own measurements and output."""

    def __init__(self, events, info, measured, said):
        self.events, self.info, self.measured, self.said = events, info, measured, said

    def lost(self):
        """Notes about records that are missing or have no times."""
        pattern = re.compile(r"dropped|lost|no time|without (a )?time|zero time", re.IGNORECASE)
        return [note for note in self.info.get("notes", []) if pattern.search(note.get("text", ""))]

    def step_ns(self):
        return statistics.median(self.measured["inside"]["device_ns"][1:])


class Bench:
    """Makes each recording once."""

    def __init__(self, foretrace, dry_run):
        self.foretrace, self.dry_run = foretrace, dry_run
        self.clock = process.Clock(None)
        self.side = plan.Side("gpt2-small", plan.MODELS["gpt2-small"].batch)
        self.kept = {}

    def trial(self, profiler=False, **what):
        key = json.dumps([profiler, what])
        if key not in self.kept:
            with tempfile.TemporaryDirectory() as folder:
                trace = pathlib.Path(folder) / "trial.ftrace"
                measured = process.recorded(self.side, self.foretrace, trace, STEPS, self.clock, profiler=profiler,
                                            played=self.dry_run, **what)
                self.kept[key] = self.look(trace, measured, measured["said"])
        return self.kept[key]

    def program(self, text, **environment):
        """A recording of a few lines of Python, or None if nothing was recorded."""
        if self.dry_run:
            raise NeedsGpu
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "program.ftrace"
            command = [str(self.foretrace), "collect", "-o", str(trace), "--", sys.executable, "-c", text]
            code, _, errors = process.run(command, 180, self.clock, **environment)
            if code == NOTHING_RECORDED:
                return None
            if code != 0:
                raise Failed(f"exit code {code}: {process.last_words(errors)}")
            return self.look(trace, {}, errors)

    def look(self, trace, measured, said):
        if self.dry_run:
            path = played.SAMPLES / "gpt-a100-gpu-bound.pt.trace.json.gz"
            return Trial(Events(path), {"notes": []}, measured, said)
        as_json = trace.with_suffix(".json")
        for command in (["convert", str(trace), str(as_json)], ["info", str(trace), "--format", "json"]):
            command = [str(self.foretrace), *command, "--no-cache", "--quiet"]
            code, output, errors = process.run(command, 180, self.clock)
            if code != 0:
                raise Failed(f"foretrace {command[1]}: {process.last_words(errors)}")
        return Trial(Events(as_json), json.loads(output), measured, said)

    def profiled(self):
        """The same steps as torch.profiler records them."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "profiled.json"
            one = process.Worker(self.side, self.dry_run, self.clock)
            try:
                one.ask("prepare", limit_s=180)
                one.ask("profile", steps=STEPS, path=str(path))
            finally:
                one.close()
            return Events(path)


def everything_is_recorded(bench, _):
    trial = bench.trial()
    joined, device = trial.events.joined()
    untimed = sum(event.start == 0 or event.end <= event.start for event in trial.events.kernels())
    ours, theirs = (len(events.kernels()) for events in (trial.events, bench.profiled()))
    return (device > 0 and joined == device and untimed == 0 and ours == theirs and not trial.lost(),
            {"kernels": ours, "kernels_by_torch_profiler": theirs, "device_records": device, "with_their_call": joined,
             "without_times": untimed, "notes_on_losses": [note["text"] for note in trial.lost()]})


def it_costs_little(bench, _):
    steps = {}
    for level, what in plan.LEVELS.items():
        with tempfile.TemporaryDirectory() as folder:
            trace = pathlib.Path(folder) / "cost.ftrace" if what else None
            more = dict(what or {}, ops=(what or {}).get("ops", False))
            told = process.recorded(bench.side, bench.foretrace, trace, 20, bench.clock, played=bench.dry_run, **more)
        steps[level] = round(statistics.median(told["inside"]["device_ns"][1:]))
    slower = {level: step / steps["off"] - 1 for level, step in steps.items()}
    return slower["kernels"] <= 0.05 and slower["api"] <= 0.15, {"step_time_ns": steps, "slower": slower}


def it_survives_torch_profiler(bench, _):
    alone, both = bench.trial(), bench.trial(profiler=True)
    ours = len(both.events.kernels())
    messages = [line for line in both.said.splitlines() if re.search("cupti|profiler|kineto", line, re.IGNORECASE)]
    return ours == len(alone.events.kernels()), {
        "kernels": ours, "kernels_without_it": len(alone.events.kernels()),
        "device_events_of_torch_profiler": both.measured.get("profiler_device_events"), "messages": messages[:5]}


def blocks_add_up(bench, _):
    trial = bench.trial()
    if bench.dry_run:
        raise NeedsGpu
    allocations, frees, peak = trial.events.blocks()
    told = trial.measured.get("memory", {})
    return (allocations > 0 and allocations == told.get("allocations") and frees == told.get("frees")
            and peak == told.get("peak_allocated_bytes"),
            {"allocations": allocations, "frees": frees, "peak_allocated_bytes": peak, "by_memory_stats": told})


def operators_nest(bench, _):
    plain, trial = bench.trial(ops=False), bench.trial()
    inside, launches = trial.events.launches_in_ops()
    crossings = trial.events.crossings()
    return launches > 0 and crossings == 0 and inside >= 0.9 * launches, {
        "operators": len(trial.events.of("cpu_op")), "crossings": crossings, "launches": launches,
        "launches_in_operators": inside, "slower_by_operators": trial.step_ns() / plain.step_ns() - 1}


def nothing_is_lost_at_the_end(bench, _):
    counts = {}
    for name, end in (("return", ""), ("exit", "raise SystemExit(0)"),
                      ("_exit", "import os; torch.cuda.synchronize(); os._exit(0)")):
        trial = bench.program(LAUNCHING.format(count=LAUNCHES, end=end))
        counts[name] = len(trial.events.kernels("add")) if trial else 0
    # No library can do anything about _exit, so the result is reported, but not required.
    return counts["return"] == counts["exit"] == LAUNCHES, {"launched": LAUNCHES, "recorded": counts}


def clocks_agree(bench, _):
    events = bench.trial().events
    early, late = events.early(), events.late()
    return not early and late is not None and not late, {
        "before_their_call": len(early), "by_at_most_ns": max(early, default=0),
        "behind_the_wait": None if late is None else len(late), "behind_by_at_most_ns": max(late or [0])}


def buffers_are_kept(bench, out):
    if bench.dry_run:
        raise NeedsGpu
    gpu = provenance.of_torch()["gpu"]
    raw = out / (re.sub(r"[^a-z0-9]+", "-", gpu.lower()).strip("-") + ".raw")
    raw.unlink(missing_ok=True)
    trial = bench.program(SOME_OF_ALL, FORETRACE_RAW=str(raw), FORETRACE_BUFFER_BYTES="65536")
    if trial is None:
        raise Failed("nothing was recorded")
    size = raw.stat().st_size if raw.exists() else 0
    return 0 < size < 1_000_000, {"file": raw.name, "bytes": size, "device_records": trial.events.joined()[1]}


POINTS = (("kernels are recorded, all of them, with calls and times", everything_is_recorded),
          ("recording costs little", it_costs_little),
          ("a program that uses torch.profiler is recorded all the same", it_survives_torch_profiler),
          ("blocks of memory agree with torch.cuda.memory_stats", blocks_add_up),
          ("operators nest and hold the launches", operators_nest),
          ("what was launched last is recorded too", nothing_is_lost_at_the_end),
          ("device and host clocks agree", clocks_agree),
          ("raw buffers are kept for tests", buffers_are_kept))


def look_at(point, bench, out):
    try:
        passed, numbers = point(bench, out)
        return {"passed": bool(passed), "numbers": numbers}
    except Failed as failure:
        return {"passed": False, "message": str(failure)}
    except NeedsGpu:
        return {"passed": None, "message": "not looked at: needs a GPU"}


def main(options, foretrace):
    why = None if options.dry_run else provenance.missing()
    if why is not None:
        print(f"ground_truth.py: nothing can be checked here: {why}; --dry-run --out FOLDER looks at a sample",
              file=sys.stderr)
        return 3
    if not options.dry_run and (foretrace is None or not foretrace.exists()):
        raise ValueError("no foretrace was found; give --foretrace FILE")
    out = pathlib.Path(options.out) if options.out else provenance.ROOT / "tests" / "collect" / "golden"
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    bench = Bench(foretrace, options.dry_run)
    unknown = [number for number in options.only if not 1 <= number <= len(POINTS)]
    if unknown:
        raise ValueError(f"--only: must be from 1 to {len(POINTS)}, got {unknown[0]}")
    found = []
    report = {"schema": "foretrace.collector_check/1", "dry_run": options.dry_run,
              "provenance": provenance.facts(options.dry_run, sys.argv), "points": found}
    for number, (name, point) in enumerate(POINTS, 1):
        if options.only and number not in options.only:
            continue
        outcome = {"point": number, "name": name, **look_at(point, bench, out)}
        found.append(outcome)
        detail = outcome.get("message") or json.dumps(outcome["numbers"])
        verdict = {True: "PASS", False: "FAIL", None: "SKIP"}[outcome["passed"]]
        print(f"{verdict} {number} {name}: {detail}", flush=True)
        results.write_atomically(out / "collector_check.json", results.as_text(report).encode())
    return 1 if any(outcome["passed"] is False for outcome in found) else 0
