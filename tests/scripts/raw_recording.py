"""Figures of a recording of PyTorch's profiler, computed from its events alone: what answers are compared with. Times in seconds."""

import functools
import gzip
import json
import math
import re
import statistics

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


class Raw:
    def __init__(self, path):
        with (gzip.open if str(path).endswith(".gz") else open)(path, "rt") as file:
            self.events = [event for event in json.load(file)["traceEvents"] if "ts" in event]
        self.marks = sorted((event for event in self.events if event["name"].startswith("ProfilerStep#")
                             and event["cat"] == "user_annotation"), key=lambda event: event["ts"])

    def of(self, pattern="", categories=("kernel",)):
        return [event for event in self.events
                if event.get("cat") in categories and re.search(pattern, event["name"])]

    def each(self, pattern="", categories=("kernel",)):
        """Time of such events in a step, on average."""
        return sum(event["dur"] for event in self.of(pattern, categories)) / 1e6 / len(self.marks)

    @functools.cached_property
    def step(self):
        """From the end of one step's work on the device to that of the next, the median."""
        launched = {call["args"]["correlation"]: call["ts"] for call in self.of("", ("cuda_runtime",))}
        work = [(launched[event["args"]["correlation"]], event["ts"] + event["dur"]) for event in self.of("", DEVICE)]
        ends = [max(end for at, end in work if mark["ts"] <= at < mark["ts"] + mark["dur"]) for mark in self.marks]
        return statistics.median(b - a for a, b in zip(ends, ends[1:])) / 1e6

    def within(self, events, outer):
        """Those device events whose launch calls lie in one of the outer events, on its thread."""
        calls = {call["args"]["correlation"]: call for call in self.of("", ("cuda_runtime",))}

        def is_inside(event):
            call = calls[event["args"]["correlation"]]
            return any(one["tid"] == call["tid"] and one["ts"] <= call["ts"] < one["ts"] + one["dur"] for one in outer)
        return [event for event in events if is_inside(event)]

    @functools.cached_property
    def forward_products(self):
        """Operations of all nn.Linear whose shapes were recorded, and the time of their kernels: in the whole recording."""
        layers = [op for op in self.of("^aten::linear$", ("cpu_op",)) if op["args"].get("Input Dims")]
        operations = 0
        for op in layers:
            (rows, inner), (columns, _), *_ = op["args"]["Input Dims"]
            operations += 2 * rows * inner * columns
        kernels = self.within(self.of("gemm"), layers)
        return operations, sum(kernel["dur"] for kernel in kernels) / 1e6

    def memory(self, key="Total Allocated"):
        return [event["args"][key] for event in self.of(r"^\[memory\]$", ("cpu_instant_event",))]

    @functools.cached_property
    def held_before(self):
        """Bytes that were allocated when the recording began."""
        first = self.of(r"^\[memory\]$", ("cpu_instant_event",))[0]["args"]
        return first["Total Allocated"] - first["Bytes"]

    @functools.cached_property
    def parameters(self):
        """Weights and biases that ops of the first step read, whose shapes were recorded; norms and embeddings as well."""
        first = self.marks[0]
        weights = {"aten::linear": slice(1, 3), "aten::embedding": slice(0, 1), "aten::layer_norm": slice(2, 4)}
        return sum(math.prod(shape) for op in self.of("", ("cpu_op",)) if op["name"] in weights
                   and first["ts"] <= op["ts"] < first["ts"] + first["dur"]
                   for shape in op["args"].get("Input Dims", [])[weights[op["name"]]] if shape)
