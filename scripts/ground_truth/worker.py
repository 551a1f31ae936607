"""The process of one side. Requests come as lines of JSON on stdin, answers go as lines of JSON to what was stdout.

    {"do": "prepare"}                                builds and warms up
    {"do": "time", "steps": 10}
    {"do": "memory", "steps": 3}
    {"do": "snapshot", "steps": 2, "path": FILE}
    {"do": "profile", "steps": 4, "path": FILE}

It ends when its input ends, so that no worker outlives a campaign that was killed. With --window it reads no requests and
trains: this is the program that the collector records.
"""

import argparse
import json
import os
import sys
import traceback

from ground_truth import played
from ground_truth.plan import MODELS, Side


class Session:
    """Answers requests with a real program, which trains or, where the model's phase is another one, only answers."""

    def __init__(self, side, device):
        from ground_truth import serving, training
        self.parts = training
        program = training.Training if MODELS[side.model].phase == "training" else serving.Serving
        self.training = program(side, device)

    def prepare(self, _):
        self.training.prepare()
        loss = float(self.training.loss)
        if loss != loss:
            raise ArithmeticError("the loss is not a number")
        return {"loss": loss, "parameters": sum(p.numel() for p in self.training.model.parameters())}

    def time(self, request):
        return self.training.timed_steps(request["steps"])

    def memory(self, request):
        return self.parts.memory_of(self.training, request["steps"])

    def snapshot(self, request):
        self.parts.write_snapshot(self.training, request["path"], request["steps"])
        return {}

    def profile(self, request):
        return self.parts.profile(self.training, request["path"], request["steps"])


def open_session(arguments):
    side = Side.from_json(arguments.settings)
    return played.Session(side) if arguments.played else Session(side, arguments.device)


def answer(session, request):
    try:
        return getattr(session, request["do"])(request)
    except Exception as error:
        traceback.print_exc()
        text = str(error).strip().splitlines()
        return {"error": f"{type(error).__name__}: {text[0] if text else ''}"[:500]}


def serve(arguments, replies):
    session = None
    for line in sys.stdin:
        request = json.loads(line)
        if session is None:
            try:
                session = open_session(arguments)
            except Exception as error:
                traceback.print_exc()
                reply = {"error": f"{type(error).__name__}: {error}"[:500]}
        if session is not None:
            reply = answer(session, request)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def train_for_collector(arguments):
    """Runs some steps outside the window and some inside; cuProfilerStart and cuProfilerStop mark the window."""
    session = open_session(arguments)
    result = {"prepare": session.prepare({}), "outside": session.time({"steps": arguments.window})}
    if arguments.played:
        result["inside"] = session.time({"steps": arguments.window})
    else:
        result.update(session.parts.collected_window(session.training, arguments.window, arguments.profiler))
    with open(arguments.result, "w", encoding="utf-8") as file:
        json.dump(result, file)


def main(argv):
    parser = argparse.ArgumentParser(prog="ground_truth.py worker", description="one side, used by the campaign itself")
    parser.add_argument("--settings", required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--played", action="store_true")
    parser.add_argument("--window", type=int, default=0)
    parser.add_argument("--profiler", action="store_true", help="use torch.profiler in the window as well")
    parser.add_argument("--result")
    arguments = parser.parse_args(argv)
    if arguments.window:
        train_for_collector(arguments)
        return 0
    # Libraries may print to stdout, so answers get a copy of it for themselves.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(arguments, replies)
    return 0
