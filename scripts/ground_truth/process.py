"""Processes that the campaign starts: one per side, which answers requests, and one per recording by the collector."""

import json
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "ground_truth.py"


class Failed(Exception):
    """A process that answered with an error, ended, or took too long. The text says which."""


class OutOfTime(Exception):
    """The campaign's own time is up; this does not count as a failure of the case."""


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def last_words(text, count=3):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-count:])[-600:]


class Clock:
    """The time that is left of --minutes."""

    def __init__(self, minutes):
        self.deadline = time.monotonic() + 60 * minutes if minutes else None

    def left(self):
        return float("inf") if self.deadline is None else self.deadline - time.monotonic()


def worker_command(side, played, *more):
    told = [str(SCRIPT), "worker", "--settings", json.dumps(side.as_json()), *more]
    # A dry run needs no packages, and starts faster without looking for them.
    return [sys.executable, "-S", *told, "--played"] if played else [sys.executable, *told]


class Worker:
    """The process of one side. It starts at once, so that several can get ready at the same time."""

    def __init__(self, side, played, clock):
        self.side, self.clock = side, clock
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(worker_command(side, played), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, start_new_session=True)
        self.facts = None
        self.pending = b""
        self.busy = False  # True while a request is not answered.

    def send(self, request):
        try:
            self.process.stdin.write((json.dumps(request) + "\n").encode())
            self.process.stdin.flush()
            self.busy = True
        except BrokenPipeError:
            raise Failed(self.failure_text()) from None

    def answer(self, limit_s):
        """The next answer. Waits until the limit or the end of the campaign's time, whichever comes first."""
        until = time.monotonic() + min(limit_s, max(self.clock.left(), 0.1))
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"\n" not in self.pending:
                if not selector.select(max(0.0, until - time.monotonic())):
                    self.close()
                    if self.clock.left() <= 0.2:
                        raise OutOfTime
                    raise Failed(f"no answer within {limit_s:g} s")
                chunk = os.read(self.process.stdout.fileno(), 1 << 16)
                if not chunk:
                    raise Failed(self.failure_text())
                self.pending += chunk
        self.busy = False
        line, self.pending = self.pending.split(b"\n", 1)
        reply = json.loads(line)
        if "error" in reply:
            raise Failed(reply["error"])
        return reply

    def ask(self, what, limit_s=120, **more):
        self.send({"do": what, **more})
        return self.answer(limit_s)

    def failure_text(self):
        code = self.process.wait()
        self.errors.seek(0)
        words = last_words(self.errors.read().decode(errors="replace"))
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"the process {how}" + (f": {words}" if words else "")

    def close(self):
        """Lets an idle process end by itself; its loader processes end with it in any case."""
        if self.process.stdin:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        try:
            self.process.wait(timeout=0 if self.busy else 5)
        except subprocess.TimeoutExpired:
            pass
        kill_group(self.process)
        self.process.stdout.close()
        self.errors.close()


def run(command, limit_s, clock, **environment):
    """Runs a command to its end and returns (exit code, stdout, stderr); the whole group dies at the limit."""
    limit = min(limit_s, max(clock.left(), 0.1))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True, env={**os.environ, **environment})
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        kill_group(process)
        process.communicate()
        if clock.left() <= 0.2:
            raise OutOfTime from None
        raise Failed(f"did not end within {limit_s:g} s") from None
    return process.returncode, output, errors


def collect_command(foretrace, trace, record, ops):
    """Records between cuProfilerStart and cuProfilerStop: everything, or the kinds that `record` names."""
    command = [str(foretrace), "collect", "-o", str(trace), "--profiler-api"]
    command += ["--record", record] if record else ["--memory"]
    return command + (["--ops"] if ops else []) + ["--"]


def recorded(side, foretrace, trace, window, clock, *, record=None, ops=True, profiler=False, played=False):
    """Trains a side under `foretrace collect`, or without it if `trace` is None; returns the program's own measurements."""
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        more = ["--window", str(window), "--result", str(result)] + (["--profiler"] if profiler else [])
        command = worker_command(side, played, *more)
        if trace is not None and not played:
            command = collect_command(foretrace, trace, record, ops) + command
        code, _, errors = run(command, 300, clock)
        if code != 0 or not result.exists():
            raise Failed(f"exit code {code}: {last_words(errors)}")
        measured = json.loads(result.read_text())
        measured["said"] = errors[-4000:]
        return measured
