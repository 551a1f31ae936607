"""A program that answers: the first step of some prompts (prefill), or one more token of each (decode), always the same one.

Also times such steps over a grid of batches and contexts.
"""

import contextlib
import csv
import statistics
import sys

import torch

from ground_truth import decoder, plan
from ground_truth.training import WARM_UP, Steps


class Serving(Steps):
    """`device` is "cpu" only to test the code without a GPU."""
    marked = False  # Steps are ranges, as there is no optimizer by which a collector could know them.

    def __init__(self, side, device="cuda"):
        self.side, self.device = side, torch.device(device)
        torch.manual_seed(side.seed)
        shape = plan.MODELS[side.model]
        tokens = side.context or shape.sequence
        self.decodes = shape.phase == "decode"
        with self.device if device == "cuda" else contextlib.nullcontext():
            self.model = decoder.build(side.model, side.batch, tokens)
        self.model = self.model.to(torch.bfloat16).eval().requires_grad_(False)
        if side.precision in decoder.NARROW:
            for block in self.model.blocks:
                block.narrow(decoder.NARROW[side.precision])
        self.forward = torch.compile(self.model) if side.execution == "compile" else self.model
        self.words = torch.randint(decoder.VOCABULARY, (side.batch, 1 if self.decodes else tokens), device=self.device)
        self.positions = torch.arange(tokens - 1 if self.decodes else 0, tokens, device=self.device)
        self.scores, self.chosen, self.count = None, None, 0
        self.run = self.answer

    @property
    def loss(self):
        """The mean size of the last scores: shows whether two sides compute about the same."""
        return self.scores.float().abs().mean()

    def prepare(self):
        for _ in range(WARM_UP):
            self.run()
        if self.side.execution == "cuda_graphs":
            self.capture()
            for _ in range(WARM_UP):
                self.run()
        self.synchronize()

    @torch.no_grad()
    def answer(self):
        self.scores = self.forward(self.words, self.positions)
        self.chosen = self.scores.argmax(-1, keepdim=True)
        if self.decodes:
            self.words.copy_(self.chosen)

    def capture(self):
        """Records a step as one graph; the steps before it made everything that is made once."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self.answer()
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.answer()
        self.run = self.graph.replay

    def step(self):
        if not self.marked:
            self.run()
            return
        self.count += 1
        with torch.cuda.nvtx.range(f"ProfilerStep#{self.count}"):
            self.run()


BATCHES, CONTEXTS = (1, 4, 16, 64, 256), (256, 1024, 4096)
PROMPTS = (128, 256, 512, 1024, 2048, 4096, 8192)
REPLAYS = 11


def grid():
    """Phase, batch and context of the steps that are timed."""
    return ([("decode", batch, context) for context in CONTEXTS for batch in BATCHES] +
            [("prefill", 1, tokens) for tokens in PROMPTS])


def time_grid(path, clock):
    """Writes a line per step as a CUDA graph: median, second and second last of its replays."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("model", "kind", "precision", "batch", "context", "time_us", "p10_us", "p90_us"))
        for model in ("llama-1b", "llama-wide"):
            for precision in ("bf16", "fp8"):
                for phase, batch, context in grid():
                    if clock.left() < 5:
                        print("time is up", file=sys.stderr)
                        return
                    side = plan.Side(f"{model}-{phase}", batch, precision, execution="cuda_graphs", context=context)
                    times = sorted(timed(side))
                    marks = (statistics.median(times), times[1], times[-2])
                    lines.writerow((model, phase, precision, batch, context, *(f"{mark / 1e3:.1f}" for mark in marks)))
                    file.flush()


def timed(side):
    program = Serving(side)
    program.prepare()
    return program.timed_steps(REPLAYS + 1)["device_ns"][1:]
