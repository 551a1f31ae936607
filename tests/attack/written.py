"""All files that the program writes: the options that ask for them, and the files that the program reads at the same time."""

import json
import os
import re
import shutil
import tarfile

import attacked

OUT = "{out}"
FORMATS = ("json", "json.gz", "pftrace", "pftrace.gz", "ftrace", "sqlite", "pickle")


def outputs_in_help():
    """{"predict": ["--html", ...]}, with inner commands such as "sweep merge". Outputs are recognized by the name OUT of their values."""
    found = {}
    waiting = [[line.split()[0]] for line in text("list", "commands").splitlines() if line.strip()]
    while waiting:
        command = waiting.pop()
        help_text = text(*command, "--help")
        found[" ".join(command)] = re.findall(r"^  (?:-\w,)?(--[\w-]+|OUT) (?:OUT|REQUIRED)\b", help_text, re.MULTILINE)
        found[" ".join(command)] = [name for name in found[" ".join(command)]
                                    if name == "OUT" or re.search(rf"{name} OUT\b", help_text)]
        inner = re.search(r"^Subcommands:\n((?:  .*\n?)+)", help_text, re.MULTILINE)
        if inner and command != ["help"]:
            waiting += [[*command, name] for name in re.findall(r"^  (\w+) ", inner[1], re.MULTILINE)]
    return {command: names for command, names in found.items() if names}


def undeclared_in_help():
    """Options that seem to be outputs according to their help, but whose values are not called OUT."""
    lines = []
    for line in text("list", "commands").splitlines():
        for option in re.findall(r"^  (?:-\w,)?(--[\w-]+) (?:FILE|FOLDER|TEXT)\b[^\n]*?  +(?:Also )?(?:Write|Append|Keep the|Add the|Where to write|What to write)",
                                 text(line.split()[0], "--help"), re.MULTILINE):
            lines.append((line.split()[0], option))
    return lines


def text(*arguments):
    return attacked.run(*arguments).stdout.decode()


def make_inputs(folder):
    """A folder with one file of each kind that a command may read."""
    sample = attacked.ROOT / "traces" / "gpt-a100-gpu-bound.pt.trace.json.gz"
    good(attacked.run("convert", sample, folder / "trace.json", "--steps", "3-5", "--no-cache"))
    good(attacked.run("predict", folder / "trace.json", "--with", "amp", "--format", "json", "-o", folder / "prediction.json", "--no-cache"))
    good(attacked.run("check", folder / "trace.json", "--baseline", folder / "baseline.json", "--bless", "--no-cache"))
    for copy in ("after.json", "other.json", "synthetic.json", "cached.json", "named.json", "before.json"):
        shutil.copy(folder / "trace.json", folder / copy)
    (folder / "ranks").mkdir()
    for rank in (0, 1):
        shutil.copy(folder / "trace.json", folder / "ranks" / f"rank{rank}.json")
    with tarfile.open(folder / "ranks.tar", "w") as archive:
        archive.add(folder / "ranks" / "rank0.json", "rank0.json")
    (folder / "ledger.json").write_text('{"schema": "foretrace.ledger/1", "entries": []}\n')
    (folder / "machine.json").write_text("{}\n")
    (folder / "et.json").write_text("{}\n")
    (folder / "config.yaml").write_text("parallelism: {dp: 1}\ntokens: {micro_batch_size: 1}\n")
    (folder / "measured.csv").write_text("gpus,nodes,collective,bytes,time_us\n8,1,all_reduce,1048576,30\n")
    (folder / "jobs.json").write_text('{"jobs": [{"rates": {"1": 2, "4": 7}}]}')
    write_json(folder / "layers.json", {"batches": [{"layers": [{"algorithms": [{"time": "5ms", "memory": "1MB"}]}]}]})
    asks = {"question": "collective", "settings": {"name": "all_reduce", "machine": "machine.json", "bytes": "1MB"}, "take": {"t": "/rows/0/time_ns"}}
    write_json(folder / "system.json", {"settings": {"n": 2}, "tasks": [{"name": "a", "time": "n"}], "asks": [asks]})
    (folder / "schedule.csv").write_text("0F0,0B0\n")
    (folder / "program.txt").write_text("malloc a 12MiB\nfree a\n")
    write_json(folder / "base.json", {"version": 1, "trace": "named.json"})
    write_json(folder / "scenario.json", {"version": 1, "extends": "base.json", "transforms": [{"use": "amp"}]})
    write_json(folder / "sweep.json", {"version": 1, "trace": "named.json", "transforms": [{"use": "scale", "factor": 0.5}],
                                       "sweep": {"transforms[0].factor": [0.25, 0.5, 0.75]}})
    write_json(folder / "pairs.json", {"schema": "foretrace.pairs/1", "pairs": [
        {"name": "a pair", "before": "before.json", "after": "after.json", "with": ["amp"], "compare": "step_time", "class": "amp", "fitted": False}]})
    for shard in (1, 2):
        good(attacked.run("plan", *PLANNED, "--keep", folder / "plans.jsonl", "--shard", f"{shard}/2", "--quiet", "--no-cache"))
        good(attacked.run("sweep", folder / "sweep.json", "-o", folder / "answers.jsonl", "--shard", f"{shard}/2", "--quiet", "--no-cache"))


def good(done):
    assert done.returncode in (0, 1, 4), done.stderr.decode()


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1) + "\n")


ANY = {"TRACE": "trace.json"}
PLANNED = ("mpt-125m", "--machine", "dgx-a100", "--gpus", "4", "--global-batch", "8")
PLANS = ("plans.shard-1-of-2.jsonl", "plans.shard-2-of-2.jsonl")
SHARDS = ("answers.shard-1-of-2.jsonl", "answers.shard-2-of-2.jsonl")
# The files that each command reads, by option; "of X" is a file that X refers to. A * stands for a second form of the same argument.
INPUTS = {
    "advise": {**ANY, "--ledger": "ledger.json", "--machine": "machine.json", "--execution-trace": "et.json"},
    "anonymize": ANY,
    "check": {**ANY, "--machine": "machine.json", "--baseline": "baseline.json", "--scenario": "scenario.json", "of --scenario": "base.json"},
    "collect": {"PROGRAM": "program.txt"},
    "collective": {"COLLECTIVE": "trace.json", "--machine": "machine.json", "--against": "other.json", "--calibrate": "named.json"},
    "convert": {**ANY, "--execution-trace": "et.json"},
    "diff": {"A": "trace.json", "B": "after.json"},
    "doctor": {**ANY, "--execution-trace": "et.json"},
    "generate": {"MODEL": "trace.json", "--machine": "machine.json", "--against": "other.json", "--calibrate": "named.json", "--prices": "after.json", "--power": "base.json", "--config": "config.yaml"},
    "info": {**ANY, "--execution-trace": "et.json"},
    "input": {**ANY, "--synthetic": "synthetic.json", "--cached": "cached.json"},
    "kernels": {**ANY, "--machine": "machine.json", "--execution-trace": "et.json"},
    "memory": {**ANY, "--execution-trace": "et.json"},
    "memory replay": {"FILE": "program.txt"},
    "plan": {"MODEL": "trace.json", "--machine": "machine.json", "--prices": "other.json", "--power": "base.json", "--config": "config.yaml", "--measured": "after.json", "--calibrate": "named.json"},
    "plan allocate": {"JOBS": "trace.json", "--events": "other.json", "--sacct": "after.json", "--swf": "named.json"},
    "plan merge": {"FILES": PLANS[0], "FILES*": PLANS[1]},
    "plan serve": {"MODEL": "trace.json", "--machine": "machine.json", "--table": "other.json", "--calibrate": "named.json", "--prices": "after.json"},
    "plan show": {"--file": "schedule.csv"},
    "plan size": {**ANY, "--layers": "layers.json"},
    "plan system": {"FILE": "system.json", "of FILE": "machine.json"},
    "predict": {**ANY, "--scenario": "scenario.json", "of --scenario": "base.json", "of base": "named.json", "--ledger": "ledger.json",
                "--prices": "after.json", "--power": "other.json", "--machine": "machine.json", "--execution-trace": "et.json"},
    "scale": {**ANY, "--prices": "after.json", "--power": "named.json", "--scenario": "scenario.json", "of --scenario": "base.json", "--ledger": "ledger.json", "--machine": "machine.json"},
    "serve": {"MODEL": "trace.json", "--machine": "machine.json", "--table": "other.json", "--against": "after.json", "--calibrate": "named.json",
              "--prices": "base.json"},
    "sweep": {"SCENARIO": "sweep.json", "of SCENARIO": "named.json", "--trace": "trace.json"},
    "sweep merge": {"FILES": SHARDS[0], "FILES*": SHARDS[1]},
    "validate": {"TRACE": "trace.json", "TRACE*": "after.json", "--against": "other.json"},
    "verify": {"PREDICTION": "prediction.json", "TRACE": "after.json", "--trace": "trace.json"},
}
MORE_INPUTS = {  # Other ways to call a command, with inputs that exclude those above.
    "validate": {"--pairs": "pairs.json", "of --pairs": "before.json", "--ledger": "ledger.json"},
}
FURTHER = {"collect": ["--", "cat"], "convert": ["--to", "kineto"], "anonymize": ["--to", "kineto"], "sweep": ["--quiet"]}


def command_line(command, inputs, output, path):
    """The command with all of its inputs; `output` goes to `path`."""
    arguments = command.split()
    positional = [value for name, value in inputs.items() if not name.startswith(("-", "of "))]
    if command == "collect":
        return [*arguments, output, path, *FURTHER[command], *positional]
    arguments += positional + ([path] if output == "OUT" else [])
    for name, value in inputs.items():
        if name.startswith("--"):
            arguments += [name, value]
    return arguments + FURTHER.get(command, []) + ([] if output == "OUT" else [output, path])


class Writer:
    """A command that writes one file. The file holds `old` before, unless the command continues an existing file."""

    def __init__(self, command, output, name, *arguments, grows=False, goes_on=False):
        self.command, self.output, self.name = command, output, name
        self.arguments, self.grows, self.goes_on = [*command.split(), *arguments], grows, goes_on

    def __str__(self):
        return f"{self.command} {self.output} {self.name}"

    def line(self, path):
        caches = ["--no-cache"] if self.command not in ("collective", "generate", "memory replay", "plan allocate", "plan merge", "plan serve", "plan show", "plan system", "serve", "sweep merge") else []
        return [str(path) if part == OUT else part for part in self.arguments] + caches


def writers():
    trace = "trace.json"
    ring = ("ring", "--ranks", "4", "--latency", "5us", "--bandwidth", "1GB/s")
    yield Writer("collective", "--output", "x.txt", *ring, "-o", OUT)
    yield Writer("collective", "--html", "x.html", *ring, "--html", OUT)
    yield Writer("collective", "--save-calibration", "x.json", "auto", "--machine", "dgx-h100", "--ranks", "8", "--calibrate", "measured.csv",
                 "--save-calibration", OUT)
    gradients = ("--step-time", "1ms", "--machine", "dgx-a100", "--scheme", "data_parallel:gradient_bytes=8MB")
    yield Writer("scale", "--output", "x.txt", *gradients, "-o", OUT)
    yield Writer("scale", "--html", "x.html", *gradients, "--html", OUT)
    yield Writer("generate", "--output", "x.txt", "bert-large", "--machine", "dgx-a100", "-o", OUT)
    yield Writer("serve", "--output", "x.txt", "llama3-8b", "--machine", "dgx-h100", "-o", OUT)
    yield Writer("serve", "--html", "x.html", "llama3-8b", "--machine", "dgx-h100", "--html", OUT)
    yield Writer("generate", "--html", "x.html", "bert-large", "--machine", "dgx-a100", "--html", OUT)
    yield Writer("plan allocate", "--html", "x.html", "jobs.json", "--nodes", "4", "--html", OUT)
    yield Writer("plan size", "--html", "x.html", "--compute", "1s", "--gpus", "4", "--html", OUT)
    yield Writer("plan system", "--html", "x.html", "system.json", "--html", OUT)
    yield Writer("plan", "--output", "x.txt", *PLANNED, "-o", OUT)
    yield Writer("plan merge", "--output", "x.jsonl", *PLANS, "-o", OUT)
    yield Writer("plan allocate", "--output", "x.txt", "jobs.json", "--nodes", "4", "-o", OUT)
    yield Writer("plan", "--html", "x.html", *PLANNED, "--html", OUT)
    yield Writer("plan size", "--output", "x.txt", "--compute", "1s", "--gpus", "4", "-o", OUT)
    yield Writer("plan system", "--output", "x.txt", "system.json", "-o", OUT)
    served = ("llama3-8b", "--machine", "dgx-h100", "--gpus", "1", "--load", "rate=1,requests=8", "--slo", "ttft_p99=9s")
    yield Writer("plan serve", "--output", "x.txt", *served, "-o", OUT)
    yield Writer("plan serve", "--html", "x.html", *served, "--html", OUT)
    yield Writer("plan show", "--output", "x.txt", "1f1b", "-o", OUT)
    yield Writer("plan show", "--html", "x.html", "1f1b", "--html", OUT)
    yield from (Writer("convert", "OUT", f"x.{ending}", trace, OUT) for ending in (*FORMATS, "graph"))
    yield from (Writer("anonymize", "OUT", f"x.{ending}", trace, OUT, "--salt", "s", "--quiet") for ending in FORMATS)
    yield Writer("convert", "OUT", "rank0.json.gz", "ranks/rank0.json", OUT)
    for command in ("advise", "doctor", "info", "input", "kernels", "memory", "predict", "validate"):
        yield Writer(command, "--output", "x.txt", trace, "-o", OUT)
        yield Writer(command, "--html", "x.html", trace, "--html", OUT)
    yield Writer("diff", "--output", "x.txt", trace, "after.json", "-o", OUT)
    yield Writer("diff", "--html", "x.html", trace, "after.json", "--html", OUT)
    yield Writer("verify", "--output", "x.txt", "prediction.json", "after.json", "-o", OUT)
    yield Writer("verify", "--html", "x.html", "prediction.json", "after.json", "--html", OUT)
    yield Writer("verify", "--ledger", "x.json", "prediction.json", "after.json", "--ledger", OUT, goes_on=True)
    yield Writer("validate", "--write-ledger", "x.json", "--pairs", "pairs.json", "--traces", ".", "--write-ledger", OUT)
    yield Writer("memory replay", "--output", "x.txt", "program.txt", "-o", OUT)
    yield Writer("memory replay", "--html", "x.html", "program.txt", "--html", OUT)
    yield from (Writer("predict", "--perfetto", name, trace, "--perfetto", OUT) for name in ("x.json", "x.json.gz", "x.pftrace"))
    yield Writer("sweep", "--html", "x.html", "sweep.json", "--quiet", "--html", OUT)
    yield Writer("sweep merge", "--output", "x.jsonl", *SHARDS, "-o", OUT)
    held = ("check", trace, "--baseline", "baseline.json")
    for form in ("--output", "--html", "--json", "--markdown", "--junit", "--bencher", "--benchmark"):
        yield Writer("check", form, "x.txt", *held[1:], form, OUT)
    yield Writer("check", "--summary", "x.md", *held[1:], "--summary", OUT, grows=True)
    yield Writer("check", "--baseline", "x.json", trace, "--baseline", OUT, "--bless")


# Outputs without a Writer, and the reasons.
ELSEWHERE = {
    ("collect", "--output"): "written by what writes for convert; needs a program that uses a GPU",
    ("plan", "--keep"): "grows block by block, and is gone on with: tests/cli/plan_keep_test.cc kills it",
    ("sweep", "--output"): "grows answer by answer, and is gone on with: tests/cli/sweep_test.cc kills it",
}


def environment(folder):
    return {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder)}
