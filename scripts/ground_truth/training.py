"""One training run: a model, an optimizer, batches, and a step() with the settings of the side."""

import contextlib
import time

import torch
from torch.nn import functional as F

from ground_truth import inputs, models, plan

WARM_UP = 8


def attention_kernel(side):
    if side.attention == "default":
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel
    return sdpa_kernel(SDPBackend.MATH if side.attention == "math" else SDPBackend.FLASH_ATTENTION)


class Steps:
    """Times the steps of a program. Programs add `device`, `step` and `prepare`."""

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def timed_steps(self, count):
        """Runs steps from idle to idle. Returns the distances between their ends on the device and on the host, and the wall time."""
        self.synchronize()
        host = [time.perf_counter_ns()]
        marks = [self.mark()]
        for _ in range(count):
            self.step()
            marks.append(self.mark())
            host.append(time.perf_counter_ns())
        self.synchronize()
        wall = time.perf_counter_ns() - host[0]
        return {"device_ns": [self.between(a, b) for a, b in zip(marks, marks[1:])],
                "host_ns": [b - a for a, b in zip(host, host[1:])], "wall_ns": wall}

    def mark(self):
        if self.device.type != "cuda":
            return time.perf_counter_ns()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, first, second):
        return second - first if self.device.type != "cuda" else round(first.elapsed_time(second) * 1e6)


class Training(Steps):
    """`device` is "cpu" only to test the code without a GPU; nothing is measured there."""

    def __init__(self, side, device="cuda"):
        self.side, self.device = side, torch.device(device)
        torch.manual_seed(side.seed)
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = side.precision != "fp32"
        # Weights are drawn on the device: a host takes seconds for the larger models.
        with self.device if device == "cuda" else contextlib.nullcontext():
            self.model = models.build(side.model, side.checkpoint).train()
        if side.channels_last:
            self.model = self.model.to(memory_format=torch.channels_last)
        self.optimizer = self.make_optimizer()
        self.forward = torch.compile(self.model) if side.execution == "compile" else self.model
        self.batches = inputs.device_batches(side, plan.MODELS[side.model].sequence, self.device)
        self.step = self.eager_step
        self.loss = None

    def make_optimizer(self):
        how = {"fused": True} if self.side.optimizer == "fused" else {"foreach": True}
        if self.side.capturable:
            how["capturable"] = True
        return torch.optim.AdamW(self.model.parameters(), lr=1e-4, **how)

    def prepare(self):
        for _ in range(WARM_UP):
            self.step()
        if self.side.execution == "cuda_graphs":
            self.capture()
            for _ in range(WARM_UP):
                self.step()
        self.synchronize()

    def learn(self, batch):
        samples, targets = batch
        if self.side.channels_last:
            samples = samples.contiguous(memory_format=torch.channels_last)
        half = torch.autocast(self.device.type, torch.bfloat16, enabled=self.side.precision == "amp")
        with half, attention_kernel(self.side):
            scores = self.forward(samples)
        loss = F.cross_entropy(scores.flatten(0, -2).float(), targets.flatten())
        loss.backward()
        self.optimizer.step()
        self.loss = loss.detach()

    def eager_step(self):
        batch = next(self.batches)
        self.optimizer.zero_grad(set_to_none=True)
        self.learn(batch)

    def capture(self):
        """Records a whole step as one graph. Three steps on another stream come first, as torch requires."""
        self.static = [tensor.clone() for tensor in next(self.batches)]
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self.optimizer.zero_grad(set_to_none=True)
                self.learn(self.static)
        torch.cuda.current_stream().wait_stream(aside)
        self.optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.learn(self.static)
        self.step = self.graph_step

    def graph_step(self):
        for static, host in zip(self.static, next(self.batches.batches)):
            static.copy_(host, non_blocking=self.side.pinned)
        self.graph.replay()


def memory_of(training, steps):
    """The most memory that the allocator held during some steps."""
    training.synchronize()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(steps):
        training.step()
    training.synchronize()
    stats = torch.cuda.memory_stats()
    return {"peak_allocated_bytes": stats.get("allocated_bytes.all.peak"),
            "peak_reserved_bytes": stats.get("reserved_bytes.all.peak"),
            "peak_requested_bytes": stats.get("requested_bytes.all.peak"),
            "allocated_bytes": stats.get("allocated_bytes.all.current"),
            "reserved_bytes": stats.get("reserved_bytes.all.current"),
            "allocations": stats.get("allocation.all.allocated"), "retries": stats.get("num_alloc_retries")}


def write_snapshot(training, path, steps):
    torch.cuda.memory._record_memory_history(max_entries=200_000, stacks="python")
    try:
        for _ in range(steps):
            training.step()
        training.synchronize()
        torch.cuda.memory._dump_snapshot(path)
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)


def profile(training, path, steps):
    """Writes the trace of torch.profiler, and returns the step times under it."""
    from torch import profiler
    activities = [profiler.ProfilerActivity.CPU]
    if training.device.type == "cuda":
        activities.append(profiler.ProfilerActivity.CUDA)
    more = {}
    try:
        from torch._C._profiler import _ExperimentalConfig
        more["experimental_config"] = _ExperimentalConfig(enable_cuda_sync_events=True)
    except (ImportError, TypeError):
        pass  # The trace then has no sync records, which its importer reports.
    schedule = profiler.schedule(wait=0, warmup=2, active=steps, repeat=1)
    marks = []
    with profiler.profile(activities=activities, schedule=schedule, record_shapes=True, profile_memory=True,
                          on_trace_ready=lambda done: done.export_chrome_trace(path), **more) as running:
        for _ in range(2 + steps):
            training.step()
            marks.append(training.mark())
            if len(marks) in (2, 2 + steps):
                training.synchronize()  # So that no work of other steps overlaps the recorded ones.
            running.step()
    return {"steps": steps, "device_ns": [training.between(a, b) for a, b in zip(marks[1:], marks[2:])],
            "sync_events": bool(more)}


def collected_window(training, steps, use_profiler):
    """The steps that a collector records. With `use_profiler` the program also uses torch.profiler, as many do."""
    training.synchronize()
    training.marked = True
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    torch.cuda.profiler.start()
    if use_profiler:
        from torch import profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as running:
            inside = training.timed_steps(steps)
        seen = sum(1 for event in running.events() if str(event.device_type).endswith("CUDA"))
    else:
        inside, seen = training.timed_steps(steps), None
    torch.cuda.profiler.stop()
    after = torch.cuda.memory_stats()

    def gained(name):
        return after.get(name, 0) - before.get(name, 0)

    return {"inside": inside, "profiler_device_events": seen, "memory": {
        "peak_allocated_bytes": after.get("allocated_bytes.all.peak"),
        "allocations": gained("allocation.all.allocated"), "frees": gained("allocation.all.freed"),
        "allocated_bytes": gained("allocated_bytes.all.allocated")}}
