"""The table of kernels equals what is computed here, from the events of the raw files: the operations of each op from its shapes, and the
times of its kernels."""

import gzip
import json
import math
import os
import pathlib
import subprocess
import unittest

FORETRACE = os.environ.get("FORETRACE", "")
CORPUS = pathlib.Path(os.environ.get("FORETRACE_CORPUS", ""))
SAMPLE = pathlib.Path(__file__).resolve().parents[2] / "traces" / "gpt-a100-gpu-bound.pt.trace.json.gz"


def convolution(dims, values):
    """Places of the result, times the weight."""
    (images, _, *sizes), weight = dims[:2]
    strides, paddings, dilations = (json.loads(values[i]) for i in (3, 4, 5))
    for size, stride, padding, dilation, window in zip(sizes, strides, paddings, dilations, weight[2:]):
        images *= (size + 2 * padding - dilation * (window - 1) - 1) // stride + 1
    return 2 * images * math.prod(weight)


def attention(query, key, heads, sequence, products, causal):
    batch_heads = query[0] * query[heads]
    return products * 2 * batch_heads * query[sequence] * key[sequence] * query[3] // (2 if causal else 1)


# Operations of each of the op's kernels that compute.
OPERATIONS = {
    "aten::mm": lambda dims, _: 2 * math.prod(dims[0]) * dims[1][1],
    "aten::addmm": lambda dims, _: 2 * math.prod(dims[1]) * dims[2][1],
    "aten::bmm": lambda dims, _: 2 * math.prod(dims[0]) * dims[1][2],
    "aten::baddbmm": lambda dims, _: 2 * math.prod(dims[1]) * dims[2][2],
    "aten::linear": lambda dims, _: 2 * math.prod(dims[0]) * dims[1][0],
    "aten::convolution": convolution,
    "aten::convolution_backward": lambda dims, _: 2 * dims[0][0] * math.prod(dims[0][2:]) * math.prod(dims[2]),
    "aten::_efficient_attention_forward": lambda dims, values: attention(dims[0], dims[1], 2, 1, 2, values[9] != "0"),
    "aten::_efficient_attention_backward": lambda dims, values: attention(dims[1], dims[2], 2, 1, 5, values[14] != "0"),
    "aten::_flash_attention_forward": lambda dims, values: attention(dims[0], dims[1], 2, 1, 2, values[8] == "True"),
}


def launched(events):
    """{correlation: the ops around the launch, innermost first}"""
    found, stacks = {}, {}
    for event in sorted((event for event in events if event.get("ph") == "X"), key=lambda event: (event["ts"], -event["dur"])):
        stack = stacks.setdefault(event["tid"], [])
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"]:
            stack.pop()
        if event.get("cat") == "cpu_op":
            stack.append(event)
        elif event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {}):
            found[event["args"]["correlation"]] = stack[::-1]
    return found


def groups_of(path):
    """{(op, shapes, kernel): (operations, durations)} for kernels whose op has known operations."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    groups, ops = {}, launched(events)
    for event in events:
        around = [op for op in ops.get(event.get("args", {}).get("correlation"), ()) if "Input Dims" in op["args"]]
        known = next((op for op in around if op["name"] in OPERATIONS), None)
        if event.get("cat") != "kernel" or not known:
            continue
        operations = OPERATIONS[known["name"]](known["args"]["Input Dims"], known["args"].get("Concrete Inputs"))
        key = (around[0]["name"], json.dumps(around[0]["args"]["Input Dims"]), event["name"])
        groups.setdefault(key, (operations, []))[1].append(event["dur"] * 1e3)
    return groups


@unittest.skipUnless(FORETRACE, "needs FORETRACE")
class Kernels(unittest.TestCase):
    def check(self, path, ops):
        done = subprocess.run([FORETRACE, "kernels", path, "--top", "1000", "--format", "json", "--quiet", "--no-cache"], capture_output=True,
                              text=True, check=True)
        rows = [row for row in json.loads(done.stdout)["kernels"] if row["flops"]]
        groups = groups_of(path)
        for row in rows:
            operations, durations = groups[row["op"], row["shapes"], row["kernel"]]
            self.assertEqual(row["flops"], operations, row)
            self.assertTrue(min(durations) - 1 <= row["each_ns"] <= max(durations) + 1, row)
            self.assertAlmostEqual(row["flops_per_second"], operations / row["each_ns"] * 1e9, delta=1)
        # Those of the counted steps differ from all of them by how steps vary.
        ours = sum(row["flops"] * row["count"] for row in rows) / sum(row["time_ns"] for row in rows)
        shown = [groups[row["op"], row["shapes"], row["kernel"]] for row in rows]
        theirs = sum(one * len(durations) for one, durations in shown) / sum(sum(durations) for _, durations in shown)
        self.assertAlmostEqual(ours / theirs, 1, delta=0.02)
        self.assertLessEqual(ops, {row["op"] for row in rows})

    def test_a_language_model(self):
        self.check(SAMPLE, {"aten::linear"})

    @unittest.skipUnless(CORPUS.name, "needs FORETRACE_CORPUS")
    def test_recordings_of_others(self):
        for path, ops in (("nanogpt-8rank/rank2.json.gz", {"aten::mm"}),
                          ("mi300-ddp-resnet18/train_resnet18.json.gz", {"aten::miopen_convolution", "aten::convolution_backward"}),
                          ("tinylm-ladder/trace_04.json.gz", {"aten::_efficient_attention_forward", "aten::_efficient_attention_backward"}),
                          ("torch-compile-triton/trace.json.gz", {"aten::_flash_attention_forward"})):
            with self.subTest(path):
                self.check(CORPUS / path, ops)


if __name__ == "__main__":
    unittest.main()
