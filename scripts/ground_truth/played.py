"""Stand-ins for everything that needs a GPU: step times from a formula, the synthetic samples as traces. For --dry-run only.

FORETRACE_PLAYED, a JSON object, lets tests inject failures, by the key of a side:
{"fail": [...], "die": [...], "hang": [...], "fail_profile": [...], "seconds": 0.01, "trace_bytes": 1000000}
"""

import json
import os
import pathlib
import random
import signal
import time
import zlib

from ground_truth import plan

SAMPLES = pathlib.Path(__file__).resolve().parents[2] / "traces"
SAMPLE_OF = {"image-loader": "resnet18-v100-loader0", "resnet50": "resnet18-v100-loader4",
             "gpt2-small": "gpt-a100-launch-bound", "bert-base": "gpt-a100-gpu-bound",
             "gpt2-medium": "gpt-a100-gpu-bound", "llama-1b-prefill": "gpt-a100-gpu-bound",
             "llama-1b-decode": "gpt-a100-launch-bound", "llama-wide-prefill": "gpt-a100-gpu-bound",
             "llama-wide-decode": "gpt-a100-launch-bound"}
STEP_MS = {"resnet18-v100-loader0": 85.0, "resnet18-v100-loader4": 48.9, "gpt-a100-launch-bound": 4.21,
           "gpt-a100-gpu-bound": 150.0}


def faults():
    return json.loads(os.environ.get("FORETRACE_PLAYED", "{}"))


def sample(side):
    name = "resnet18-v100-loader4" if side.model == "image-loader" and side.workers else SAMPLE_OF[side.model]
    return SAMPLES / f"{name}.pt.trace.json.gz"


def step_ms(side):
    time_ms = STEP_MS[SAMPLE_OF[side.model]] * side.batch / plan.MODELS[side.model].batch
    time_ms *= {"fp32": 3.0, "tf32": 2.0, "fp8": 0.6, "int8_weights": 0.8}.get(side.precision, 1.0)
    time_ms *= 1.5 if side.context else 1.0
    time_ms *= {"cuda_graphs": 0.5, "compile": 0.8}.get(side.execution, 1.0)
    time_ms *= 0.9 if side.optimizer == "fused" else 1.0
    time_ms *= 1.3 if side.attention == "math" else 1.0
    time_ms *= 1.25 if side.checkpoint else 1.0
    return time_ms * (0.575 if side.workers else 1.0) * (0.95 if side.pinned or side.channels_last else 1.0)


class Session:
    def __init__(self, side):
        self.side = side
        self.faults = faults()
        self.noise = random.Random(zlib.crc32(side.key.encode()))

    def prepare(self, _):
        key = self.side.key
        if key in self.faults.get("die", ()):
            os.kill(os.getpid(), signal.SIGSEGV)
        if key in self.faults.get("hang", ()):
            time.sleep(3600)
        if key in self.faults.get("fail", ()):
            raise MemoryError("CUDA out of memory (played)")
        time.sleep(self.faults.get("seconds", 0))
        return {"loss": 1.0, "parameters": 1000}

    def time(self, request):
        ideal = step_ms(self.side) * 1e6
        device = [round(ideal * self.noise.uniform(0.99, 1.01)) for _ in range(request["steps"])]
        return {"device_ns": device, "host_ns": device, "wall_ns": sum(device)}

    def memory(self, _):
        peak = 1_000_000_000 * self.side.batch // (2 if self.side.checkpoint else 1)
        return {"peak_allocated_bytes": peak, "peak_reserved_bytes": peak + 1, "peak_requested_bytes": peak - 1,
                "allocated_bytes": peak // 4, "reserved_bytes": peak // 2, "allocations": 10, "retries": 0}

    def snapshot(self, request):
        pathlib.Path(request["path"]).write_bytes(b"played")
        return {}

    def profile(self, request):
        if self.side.key in self.faults.get("fail_profile", ()):
            raise RuntimeError("the profiler failed (played)")
        import gzip
        bulk = self.faults.get("trace_bytes", 0) * request["steps"] // 4
        content = self.noise.randbytes(bulk) if bulk else gzip.decompress(sample(self.side).read_bytes())
        pathlib.Path(request["path"]).write_bytes(content)
        return {"steps": request["steps"], "device_ns": self.time(request)["device_ns"], "sync_events": False}
