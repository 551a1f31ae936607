#!/usr/bin/env python3
"""Text that a trace controls, in every answer of every command, is shown and never obeyed.

Names of kernels, ops, modules, frames, threads, devices, files and settings are all texts of hostile.py. Each command is asked for each form
it has. The bytes of the answer, of stderr and of written files must contain nothing that a terminal, a build server, a spreadsheet, a
Markdown renderer or a browser would obey. A command or a form without a case is a failure.
"""

import itertools
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import attacked
import hostile
from hostile import named

OWN_COMMANDS = (r"::(error|warning|notice) (file=[^,:]*,)?(line=\d+,)?title=[^,:]*::.*",)


class Case:
    """One call: the form of stdout, and the files that it writes, each with its form. `{name}` in arguments and `messages` is a made file."""

    def __init__(self, *arguments, form="text", files=(), own=(), env=None, messages=()):
        self.arguments, self.messages = arguments, messages
        self.form, self.files, self.own, self.env = form, dict(files), own, env or {}


def tool_calls(*calls):
    """Messages to `mcp`: tools with their arguments."""
    return [{"jsonrpc": "2.0", "id": i, "method": "tools/call", "params": {"name": name, "arguments": arguments}} for i, (name, arguments) in enumerate(calls)]


PAGES = itertools.count()


def forms(command, *arguments, names):
    """The command in these forms; if it asks a question, also in those that all answers have."""
    cases = [Case(command, *arguments, "--format", name, form=name) for name in names]
    if command == "list":
        return cases
    page = f"{{out}}.{next(PAGES)}.html"
    cases += [Case(command, *arguments, "--format", name, form="text" if name == "brief" else name) for name in ("brief", "markdown") if name not in names]
    return cases + [Case(command, *arguments, "--html", page, files={page: "page"})]


TEXT_JSON = ("text", "json")
ALL_FOUR = ("text", "json", "markdown", "csv")
FAILS = ("--max", "step_time:1%", "--max", "syncs:+0")

SERVED = ("llama3-8b", "--machine", "dgx-h100", "--gpus", "1", "--load", "rate=1,requests=8", "--slo", "ttft_p99=9s")
ANSWERS = [
    *forms("info", "{a}", names=("text", "json", "csv")), Case("info", "{ranks}"), Case("info", "{snapshot}"), Case("info", "{archive}"),
    Case("info", "{a}", "-o", "{out}.txt", files={"{out}.txt": "text"}),
    *forms("doctor", "{ranks}", names=TEXT_JSON), Case("doctor", "{snapshot}"),
    *forms("predict", "{a}", "--explain", names=ALL_FOUR),
    *forms("predict", "{a}", "--with", "scale:factor=0.5,where.name=FORGED", "--memory-limit", "20MB", names=("text", "markdown")),
    *forms("predict", "{a}", "--with", "scale:factor=0.5", "--vary", "scale.factor=0.5..1/2", names=ALL_FOUR),
    Case("predict", "{ranks}", "--explain", "-o", "{out}.md", "--format", "markdown", files={"{out}.md": "markdown"}),
    Case("predict", "--scenario", "{scenario}", "{a}"), Case("predict", "{a}", "--with", "scale:factor=0.5,where.name=" + named(3), "--strict"),
    Case("predict", "{a}", "--with", "scale:factor=0.5", "--explain", "--html", "{out}.html", files={"{out}.html": "page"}),
    *forms("advise", "{a}", names=ALL_FOUR),
    Case("sweep", "{sweep}", "--summary", "text"), Case("sweep", "{sweep}", "--summary", "json", form="json"),
    Case("sweep", "{sweep}", "--summary", "markdown", "--html", "{out}.sweep.html", form="markdown", files={"{out}.sweep.html": "page"}),
    Case("sweep", "{sweep}", "--format", "csv", form="csv"), Case("sweep", "{sweep}", "--format", "jsonl", form="jsonl"),
    # Runs twice: the second run reads the answers back from the file.
    *(Case("sweep", "{sweep}", "-o", "{out}.answers." + form, files={"{out}.answers." + form: form}) for form in ("csv", "jsonl") for _ in (1, 2)),
    *(Case("sweep", "merge", "{out}.answers." + form, "-o", "{out}.merged." + form, files={"{out}.merged." + form: form}) for form in ("csv", "jsonl")),
    Case("check", "{a}", "--baseline", "{out}.json", "--bless"),
    *forms("check", "{b}", "--baseline", "{baseline}", *FAILS, names=("text", "json", "markdown", "junit", "bencher", "benchmark")),
    Case("check", "{b}", "--baseline", "{baseline}", *FAILS, "--format", "github", form="github", own=OWN_COMMANDS),
    Case("check", "{b}", "--baseline", "{baseline}", *FAILS, "--github", "--junit", "{out}.xml", "--markdown", "{out}.check.md", own=OWN_COMMANDS,
         files={"{out}.xml": "junit", "{out}.check.md": "markdown", "{out}.summary": "markdown"}, env={"GITHUB_STEP_SUMMARY": "{out}.summary"}),
    *forms("kernels", "{a}", names=("text", "json", "csv")),
    *forms("diff", "{a}", "{b}", names=ALL_FOUR), Case("diff", "{snapshot}", "{snapshot}"),
    *forms("verify", "{prediction}", "{b}", names=("text", "json", "markdown")),
    *forms("memory", "{a}", names=("text", "json", "csv")), Case("memory", "{ranks}", "--memory-limit", "10MB"), Case("memory", "{a}", "--step", "1"),
    Case("advise", "{a}", "--all", "--html", "{out}.advice.html", files={"{out}.advice.html": "page"}),
    Case("memory", "{snapshot}", "--html", "{out}.memory.html", files={"{out}.memory.html": "page"}),
    Case("memory", "{a}", "--html", "{out}.a.html", "--format", "csv", form="csv", files={"{out}.a.html": "page"}),
    *forms("memory", "replay", "{program}", names=TEXT_JSON),
    *forms("input", "{a}", names=TEXT_JSON),
    Case("convert", "{a}", "{out}.ftrace"), Case("convert", "{ranks}", "{out}.converted", "--to", "kineto"),
    Case("anonymize", "{a}", "{out}.anonymous.ftrace", "--list-kept", "--keep", "FORGED", "--keep", named(0)),
    *forms("validate", "{a}", names=("text", "json", "markdown")),
    *forms("validate", "--pairs", "{pairs}", names=("text", "json", "markdown")),
    *forms("collective", "auto", "--machine", "dgx-h100", "--ranks", "8", "--bytes", "8..8GB/x64", "--calibrate", "{measured}", "--against", "{measured}",
           "--calibrate-nodes", "2", names=("text", "json", "csv")),
    Case("collective", "auto", "--machine", "dgx-h100", "--ranks", "8", "--calibrate", "{measured}", "--html", "{out}.collective.html",
         files={"{out}.collective.html": "page"}),
    *forms("collective", "auto", "--machine", "dgx-h100", "--against", "{inspector}", names=("text", "json", "csv", "markdown")),
    Case("collective", "auto", "--against", "{inspector}", "--html", "{out}.inspector.html", files={"{out}.inspector.html": "page"}),
    *forms("plan", "mpt-1b", "--machine", "dgx-h100", "--gpus", "4", "--global-batch", "8", "--quiet", names=("text", "json", "csv", "markdown")),
    *(Case("plan", "mpt-1b", "--machine", "dgx-h100", "--gpus", "2", "--global-batch", "8", "--keep", "{out}.plans.jsonl", files={"{out}.plans.jsonl": "jsonl"}) for _ in (1, 2)),
    Case("plan", "merge", "{out}.plans.jsonl", "-o", "{out}.plan.jsonl", files={"{out}.plan.jsonl": "jsonl"}),
    *forms("plan", "allocate", "{jobs}", "--nodes", "8", names=("text", "json", "csv")),
    Case("plan", "mpt-1b", "--machine", "dgx-h100", "--gpus", "4", "--global-batch", "8", "--strategy", "dapple", "--html", "{out}.plan.page.html",
         files={"{out}.plan.page.html": "page"}),
    *forms("plan", "{a}", "--machine", "dgx-h100", "--gpus", "1", "--gradient-bytes", "8MB", "--quiet", names=("text", "json", "csv", "markdown")),
    Case("plan", "mpt-1b", "--config", "{launch}", "--machine", "dgx-h100", "--format", "config", form="json"),
    *forms("plan", "mpt-1b", "--config", "{launch}", "--machine", "dgx-h100", names=("text", "json")),
    *forms("plan", "serve", *SERVED, names=("text", "json", "csv")),
    *forms("plan", "size", "{a}", "--gpus", "4", "--layers", "{layers}", "--memory", "8MB", names=TEXT_JSON),
    *forms("plan", "system", "{system}", names=TEXT_JSON),
    *forms("plan", "show", "chimera", names=("text", "json")), *forms("plan", "show", "zb_v", names=("csv",)),
    Case("plan", "show", "dualpipe:micro_batches=8", "--html", "{out}.plan.html", files={"{out}.plan.html": "page"}),
    *forms("scale", "--step-time", "1ms", "--machine", "dgx-a100", "--scheme", "data_parallel:gradient_bytes=8MB", names=("text", "json", "csv")),
    Case("scale", "--step-time", "1ms", "--machine", "dgx-a100", "--scheme", "data_parallel:gradient_bytes=8MB", "--html", "{out}.scale.html",
         files={"{out}.scale.html": "page"}),
    *forms("generate", "gpt3-175b", "--machine", "dgx-a100", "--layout", "tp=8,pp=8,dp=16,global_batch=3072,recompute=full",
           names=("text", "json", "csv")),
    *forms("serve", "llama3-8b", "--machine", "dgx-h100", "--vary", "concurrency=1,4", "--prices", "{prices}", names=("text", "json", "csv", "markdown")),
    Case("serve", "llama3-8b", "--machine", "dgx-h100", "--prices", "{prices}", "--html", "{out}.serve.html", files={"{out}.serve.html": "page"}),
    *(Case("completion", shell) for shell in ("bash", "zsh", "fish")),
    Case("help"), Case("help", "check"), Case("help", "--man"), Case("list"),
    Case("schema", "scenario", form="json"), Case("schema", "predict", form="json"), Case("schema", "machine", form="json"),
    *forms("list", "machines", "{machine}", names=TEXT_JSON),
    Case("info", "{a}", "--brief"), Case("advise", "{a}", "--brief"),
    Case("mcp", "--root", "{folder}", form="jsonl", messages=tool_calls(
        ("doctor", {"trace": "{a}"}), ("predict", {"trace": "{a}", "explain": True}), ("info", {"trace": "{a}", "form": "json"}), ("advise", {"trace": "{ranks}"}), ("memory", {"trace": "{a}"}),
        ("diff", {"before": "{a}", "after": "{b}"}), ("predict", {"trace": "{a}", "with": [named(3)]}), (named(2), {}), ("list_transforms", {"name": named(3)}))),
]

# Messages repeat texts of the command line and of files.
MISTAKES = [
    *(Case("info", "{folder}/none" + hostile.file_name(text)) for text in hostile.TEXTS[:16]),
    *(Case("predict", "{a}", "--with", text.replace("\0", "")) for text in hostile.TEXTS[:6]),
    Case("predict", "{a}", "--with", "scale:" + named(3)),
    Case("predict", "{a}", "--format", named(3)), Case("predict", "{a}", "--machine", named(3)), Case("predict", "{a}", "--" + named(3)),
    Case("predict", "{a}", named(3)), Case(named(2)), Case("help", named(2)), Case("list", named(2)), Case("list", "machines", named(2).replace("\0", "")), Case("list", "machines", "{broken}"), Case("completion", named(2)),
    Case("schema", named(2)), Case("predict", "--scenario", "{broken}", "{a}"), Case("predict", "--scenario", "{unknown}", "{a}"),
    Case("info", "{damaged}"), Case("info", "{damaged_archive}"), Case("verify", "{broken}", "{b}"), Case("check", "{a}", "--baseline", "{broken}"),
    Case("check", "{a}", "--baseline", "{folder}/no" + hostile.file_name(named(3))), Case("check", "{a}", "--baseline", "{out}.json", "--max", named(3)),
    Case("info", "{a}", "-o", "{folder}/no" + hostile.file_name(named(3)) + "/x"), Case("predict", "{a}", "--ledger", "{broken}"),
    Case("validate", "--pairs", "{broken}"), Case("memory", "replay", "{broken}"), Case("sweep", "{broken}"), Case("sweep", "merge", "{broken}", "-o", "{out}.m.csv"), Case("predict", "{a}", "--allocator", named(2)),
    Case("collect", "-o", "{out}.run.ftrace", "--", "{folder}/no" + hostile.file_name(named(3))), Case("collect", "--record", named(2), "--", "true"),
    Case("convert", "{a}", "{out}.x" + hostile.file_name(named(3))), Case("anonymize", "{a}", "{out}.ftrace", "--to", named(3)),
    Case("memory", "{a}", "--conf", named(2)), Case("input", "{a}", "--cached", named(2).replace("\0", "")), Case("diff", "{a}", named(3)),
    Case("advise", "{a}", "--only", named(3)), Case("doctor", "{damaged}"),
    Case("plan", named(3), "--machine", "dgx-h100"), Case("plan", "mpt-1b", "--machine", "dgx-h100", "--gpus", "4", "--global-batch", "8", "--fix", named(3)),
    Case("plan", "mpt-1b", "--machine", "dgx-h100", "--gpus", "4", "--global-batch", "8", "--prices", "{broken}"), Case("generate", "bert-large", "--machine", "dgx-a100", "--total-steps", named(3)),
    Case("generate", "bert-large", "--machine", "dgx-a100", "--total-steps", "9", "--power", "{broken}"), Case("predict", "{a}", "--prices", "{broken}"),
    Case("plan", "merge", "{broken}", "-o", "{out}.m.jsonl"), Case("plan", "mpt-1b", "--machine", "dgx-h100", "--gpus", "2", "--global-batch", "8", "--keep", "{broken}"),
    Case("plan", "allocate", "{broken}", "--nodes", "8"), Case("plan", "allocate", "{broken}", "--sacct", "{broken}"),
    Case("plan", "mpt-1b", "--machine", "dgx-h100", "--gpus", "4", "--global-batch", "8", "--strategy", named(3)),
    Case("plan", "allocate", "{jobs}", "--nodes", "8", "--objective", named(3)), Case("plan", "size", "--layers", "{broken}", "--memory", "1GB"),
    Case("plan", "size", "--compute", named(3)), Case("plan", "system", "{broken}"), Case("plan", "system", "{system}", "--set", named(3)),
    Case("plan", "serve", *SERVED, "--slo", named(3)), Case("plan", "serve", *SERVED, "--engine", named(3)), Case("plan", "serve", *SERVED, "--prices", "{broken}"),
    Case("plan", "show", named(3)), Case("plan", "show", "1f1b:" + named(3)), Case("plan", "show", "--file", "{broken}"),
    Case("scale", "{a}", "--scheme", named(3)), Case("scale", "--step-time", named(3)), Case("scale", "{a}", "--gpus", named(2)),
    Case("generate", named(3), "--machine", "dgx-a100"), Case("generate", "gpt3-175b", "--machine", "dgx-a100", "--layout", named(3)),
    Case("generate", "gpt3-175b", "--machine", "dgx-a100", "--against", "{broken}"), Case("generate", "mpt-1b", "--machine", "dgx-a100", "--config", "{broken}"),
    Case("serve", named(3), "--machine", "dgx-h100"), Case("serve", "llama3-8b", "--machine", "dgx-h100", "--engine", named(3)),
    Case("serve", "llama3-8b", "--machine", "dgx-h100", "--load", named(3)), Case("serve", "llama3-8b", "--machine", "dgx-h100", "--vary", named(3)),
    Case("serve", "llama3-8b", "--machine", "dgx-h100", "--table", "{broken}"), Case("serve", "--against", "{broken}"),
    Case("serve", "llama3-8b", "--machine", "dgx-h100", "--prices", "{broken}"),
    Case("collective", named(3)), Case("collective", "auto", "--machine", named(3)), Case("collective", "auto", "--machine", "dgx-h100", "--against", "{broken}"),
    Case("collective", "auto", "--machine", "dgx-h100", "--against", "{measured}", "--only", named(2)),
]


def run(*arguments, env=None, input=b""):
    return attacked.run(*arguments, env={**os.environ, **(env or {})}, input=input)


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        cls.made = {"folder": folder, "out": folder / "out"}
        for name, how in {"a": {}, "b": {"slower": 2, "extra": 4}}.items():
            cls.made[name] = hostile.write_recording(folder / f"{name}{hostile.file_name(named(4))}.json", **how)
        ranks = folder / hostile.file_name("ranks" + named(3))
        ranks.mkdir()
        for rank in range(2):
            hostile.write_recording(ranks / f"rank{rank}{hostile.file_name(named(2))}.json", rank=rank)
        cls.made |= {"ranks": ranks, "snapshot": hostile.write_snapshot(folder / f"s{hostile.file_name(named(2))}.pickle")}
        cls.made["archive"] = hostile.write_archive(folder / "x.tar.gz", {f"{named(2)}/{named(0)}.json": cls.made["a"].read_bytes()})
        cls.made["damaged_archive"] = hostile.write_archive(folder / "y.tar.gz", {f"{named(i)}.json": b'{"traceEvents": [{]}' for i in (0, 3)})
        cls.write_files(folder)
        run("check", cls.made["a"], "--baseline", cls.made["baseline"], "--bless", "--no-cache")
        cls.made["prediction"].write_bytes(run("predict", cls.made["a"], "--with", "scale:factor=0.5", "--format", "json", "--no-cache").stdout)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def write_files(cls, folder):
        a = str(cls.made["a"])
        scale = {"use": "scale", "factor": 0.5}
        wheres = ["FORGED", *(named(i).replace("\0", "") for i in range(len(hostile.TEXTS)))]
        contents = {
            "baseline": "", "prediction": "",
            "scenario": json.dumps({"version": 1, "transforms": [scale], "assert": [{"step_time": "<= 1ns"}], "$comment": named(3)}),
            "sweep": json.dumps({"version": 1, "trace": a, "transforms": [{"use": "scale", "factor": 0.5}],
                                 "sweep": {"scale.where.name": wheres, "scale.factor": [0.5, 2]}, "assert": [{"step_time": "<= 1ns"}]}),
            "unknown": json.dumps({"version": 1, named(3): 1, "transforms": [{"use": named(3)}]}),
            "launch": json.dumps({"parallelism": {"dp": 2, named(2): 1}, "tokens": {"micro_batch_size": 1, "batch_accumulation_per_replica": 2}, named(3): named(1)}),
            "broken": '{"schema": "' + named(0) + '", "steps": [\n' + named(2) + "\n::error::FORGED",
            "damaged": '{"traceEvents": [{"name": "' + "\x1b[31m\n::error::FORGED" + '"]}',
            "measured": "machine,gpus,nodes,collective,bytes,time_us\n" + "".join(
                f'"{" ".join(named(i).replace(chr(34), "").split())}",{8 * nodes},{nodes},all_reduce,1048576,30\n' for i in range(4) for nodes in (1, 2)),
            "inspector": "".join(json.dumps({
                "header": {"id": named(i), "comm_name": named(i + 1), "rank": rank, "n_ranks": 2, "nnodes": 1},
                "metadata": {"inspector_output_format_version": named(i)},
                "coll_perf": {"coll": kind, "coll_sn": 1, "coll_msg_size_bytes": 1 << 20, "coll_exec_time_us": 30 + rank}}) + "\n"
                for i in range(4) for rank in range(2) for kind in ("AllReduce", named(i))),
            "prices": json.dumps({"prices": {"h100": f"4 {named(3)}/h"}}),
            "program": f"malloc ::add-mask::FORGED 1MiB\nmalloc ::error::FORGED 2MiB\nfree ::error::FORGED\n",
            "layers": json.dumps({"batches": [{"layers": [{"name": named(i), "algorithms": [{"name": named(i), "time": "5ms", "memory": "1MB"}]} for i in range(3)]}]}),
            "system": json.dumps({"title": named(2), "tasks": [{"name": named(3), "time": "2"}], "assert": ["time < 1"]}),
            "jobs": json.dumps({"jobs": [{"name": named(i), "least": 1, "most": 4, "rates": {"1": 10 + i, "4": 30}} for i in range(4)]}),
            "machine": json.dumps({"name": named(3), "source": named(2), "device": named(1), "hosts": 2}),
            "pairs": json.dumps({"schema": "foretrace.pairs/1", "pairs": [
                {"name": named(i), "before": a, "after": a if i % 2 else named(i), "with": ["scale:factor=0.5"], "compare": "step_time",
                 "class": named(i + 1), "fitted": False} for i in range(len(hostile.TEXTS))]}),
        }
        for name, content in contents.items():
            cls.made[name] = folder / hostile.file_name(f"{name}{named(3)}")
            cls.made[name].write_text(content, errors="surrogateescape")

    def filled(self, text):
        for name, path in self.made.items():
            text = text.replace("{" + name + "}", str(path))
        return text

    def faults_of(self, case):
        """The number of faults of each kind in the answer to one call."""
        arguments = [self.filled(argument) for argument in case.arguments]
        cached = ["--no-cache"] if arguments[0] in CACHING and arguments[1:2] not in (["replay"], ["merge"], ["allocate"], ["show"], ["serve"], ["system"]) else []
        cut = arguments.index("--") if "--" in arguments else len(arguments)
        messages = "".join(self.filled(json.dumps(message)) + "\n" for message in case.messages).encode(errors="surrogateescape")
        done = run(*arguments[:cut], *cached, *arguments[cut:], input=messages, env={name: self.filled(value) for name, value in case.env.items()})
        self.assertIn(done.returncode, attacked.HONEST | {127}, f"{case.arguments}: {done.stderr}")
        faults = hostile.faults_of_bytes(done.stderr) + hostile.faults_of_lines(done.stderr)
        if done.stderr and done.returncode in (2, 3) and done.stderr.count(b"\n") != 1:
            faults += ["more than one line of error"] * (done.stderr.count(b"\n") - 1)
        answers = [(done.stdout, case.form)] if done.stdout else []
        files = [(pathlib.Path(self.filled(file)), form) for file, form in case.files.items()]
        answers += [(file.read_bytes(), form) for file, form in files if file.exists()]
        faults += ["file that is not there"] * sum(not file.exists() for file, _ in files)
        for answer, form in answers:
            faults += [] if form == "page" else hostile.faults_of_bytes(answer, case.own)
            faults += hostile.FORMS[form](answer)
        return collections.Counter(faults), done

    def hold(self, cases, codes):
        """Runs all cases, so that a failure shows how often each form is wrong. A case that fails for another reason would prove nothing."""
        bad = {}
        for case in cases:
            faults, done = self.faults_of(case)
            with self.subTest(case.arguments):
                self.assertIn(done.returncode, codes, done.stderr)
            if faults:
                bad[" ".join(map(ascii, case.arguments))[:100]] = dict(faults)
        self.assertFalse(bad, "\n" + "\n".join(f"{sum(faults.values()):5} {call}: {faults}" for call, faults in bad.items()))

    def test_answers_hold_names_and_obey_none(self):
        self.hold(ANSWERS, {0, 1, 4})

    def test_mistakes_are_named_in_one_line(self):
        self.hold(MISTAKES, {1, 2, 3, 127})

    def test_names_are_still_there(self):
        """Names must be shown, not merely left out; JSON keeps them as they are."""
        heaviest = json.loads(run("info", self.made["a"], "--format", "json", "--no-cache").stdout)["heaviest"]
        self.assertTrue(any(hostile.TEXTS[i] in one["name"] for one in heaviest for i in range(3)), heaviest)
        for arguments, least in ((("info", "{a}"), 5), (("memory", "{a}"), 5), (("predict", "{a}", "--explain"), 5), (("diff", "{a}", "{b}"), 2),
                                 (("memory", "{a}", "--format", "csv"), 50), (("check", "{b}", "--baseline", "{baseline}", *FAILS), 1)):
            shown = run(*map(self.filled, arguments), "--no-cache").stdout
            self.assertGreaterEqual(shown.count(b"FORGED") + shown.count(b"\\u001b"), least, arguments)

    def test_every_command_and_every_form_has_a_case(self):
        listed = run("list", "commands").stdout.decode().splitlines()
        commands = {line.split()[0] for line in listed}
        asked = {case.arguments[0] for case in ANSWERS + MISTAKES}
        self.assertLessEqual(commands, asked)
        self.assertLessEqual(commands - {"collect"}, {case.arguments[0] for case in ANSWERS})
        for command in commands:
            text = run("help", command).stdout.decode()
            inner = re.search(r"\nSubcommands:\n((?:  .*\n)+)", text)
            for name in re.findall(r"^  (\w+)", inner[1], re.M) if inner else ():
                self.assertTrue(any(case.arguments[:2] == (command, name) for case in ANSWERS), f"{command} {name}")
            for options in re.findall(r"--format ([a-z|]+\|[a-z|]+)", text):
                cases = {" ".join(case.arguments) for case in ANSWERS + MISTAKES if case.arguments[0] == command}
                for form in options.split("|"):
                    self.assertTrue(any(f"--format {form}" in case for case in cases), f"{command} --format {form}")


CACHING = {line.split()[0].decode() for line in run("list", "commands").stdout.splitlines()
           if b"--no-cache" in run("help", line.split()[0].decode()).stdout}


if __name__ == "__main__":
    unittest.main()
