"""The loop: load, copy, forward, backward, update."""

import contextlib
import dataclasses
import threading

from .allocator import Allocator
from .chance import Chance
from .machine import Gpu, Thread
from .model import Module
from .ranks import Meeting, all_reduce
from .recorder import BASE_NS, PROCESS, Recorder, name_events, write_trace

MULTI_TENSOR = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::" \
               "TensorListMetadata<{}>, at::native::(anonymous namespace)::{}<float> >(int)"
SGD = ("SGD", [("aten::_foreach_add_", "BinaryOpListAlphaFunctor", 3), ("aten::_foreach_mul_", "BinaryOpScalarFunctor", 2),
               ("aten::_foreach_add_", "BinaryOpListAlphaFunctor", 3), ("aten::_foreach_add_", "BinaryOpListAlphaFunctor", 3)])
ADAMW = ("AdamW", [("aten::_foreach_mul_", "BinaryOpScalarFunctor", 2), ("aten::_foreach_lerp_", "TernaryOpListFunctor", 3),
                   ("aten::_foreach_mul_", "BinaryOpScalarFunctor", 2), ("aten::_foreach_addcmul_", "PointwiseOpScalarFunctor", 4),
                   ("aten::_foreach_sqrt", "UnaryOpFunctor", 2), ("aten::_foreach_div_", "BinaryOpScalarListFunctor", 2),
                   ("aten::_foreach_add_", "BinaryOpScalarFunctor", 2), ("aten::_foreach_addcdiv_", "PointwiseOpListFunctor", 4)])


@dataclasses.dataclass
class Settings:
    """The program that a sample is a recording of."""
    description: str
    seed: int
    device: object
    model: Module
    parameters: int
    optimizer: tuple
    input_bytes: int
    label_bytes: int
    load_us: float  # To prepare one batch on one CPU core.
    workers: int = 0
    prefetch_factor: int = 2
    pinned_prefetch: bool = False  # Copies run ahead on a stream of their own.
    reads_loss: bool = False  # loss.item() in every step.
    module_frames: bool = False
    source_lines: dict = dataclasses.field(default_factory=dict)  # Where model.py defines forward(), by class of module.
    memory_events: bool = False
    sync_records: bool = False
    steps: int = 6
    warm_up: int = 3
    host_slowdown: float = 1.0
    ranks: int = 1  # Data parallel; `rank` is the recorded one.
    rank: int = 0
    late_load_us: float = 0  # Instead of load_us, on the last of several ranks.
    buckets: int = 3  # In which ranks add gradients up.

    def recording(self):
        return Training(self)


class Workers:
    """Processes that prepare batches ahead, each its own batch, in turn. They are not recorded, but the loop waits for their batches."""

    def __init__(self, count, factor, load_ns, chance, start):
        self._load_ns = load_ns
        self._chance = chance
        self._free = [start] * count
        self._ready = []
        self._taken = 0
        for _ in range(count * factor):
            self._request(start)

    def _request(self, now):
        worker = len(self._ready) % len(self._free)
        done = max(self._free[worker], now) + self._chance.around(self._load_ns, 0.15)
        self._free[worker] = done
        self._ready.append(done)

    def take(self, now):
        """The time when the next batch is ready. Requests another one."""
        ready = self._ready[self._taken]
        self._taken += 1
        self._request(max(now, ready))
        return ready


class Training:
    def __init__(self, settings, meeting=None):
        if settings.late_load_us and settings.rank == settings.ranks - 1:
            settings = dataclasses.replace(settings, load_us=settings.late_load_us)
        self.settings = settings
        self.meeting = meeting
        self.chance = Chance(settings.seed + settings.rank)
        self.recorder = Recorder()
        device = settings.device
        self.gpu = Gpu(self.recorder, self.chance, device.launch_ns, device.gap_ns, settings.sync_records)
        self.main = Thread(self.gpu, PROCESS, "python3", 0)
        self.autograd = Thread(self.gpu, PROCESS + 77, "pt_autograd_0", 0)
        self.allocator = Allocator(self.recorder, settings.parameters * 4 * 4) if settings.memory_events else None
        self.workers = None
        self._copied = None  # The event recorded after a prefetched copy.
        self._sequence = 0

    def run(self):
        settings = self.settings
        if settings.ranks == 1:
            return self._run()
        self.meeting = Meeting(settings.ranks)
        others = [Training(dataclasses.replace(settings, rank=rank), self.meeting)
                  for rank in range(settings.ranks) if rank != settings.rank]
        threads = [threading.Thread(target=other._run) for other in others]
        for thread in threads:
            thread.start()
        self._run()
        for thread in threads:
            thread.join()
        return self

    def _run(self):
        settings, main = self.settings, self.main
        if settings.workers:
            self.workers = Workers(settings.workers, settings.prefetch_factor, round(settings.load_us * 1150),
                                   self.chance, 0)
        for step in range(settings.warm_up + settings.steps):
            if step == settings.warm_up:
                # The profiler starts on an idle device, so that everything recorded has its cause in the recording.
                main.wait_until(self.gpu.idle_at())
                main.busy(900)
                self.recorder.on = True
            with main.op(f"ProfilerStep#{step}", category="user_annotation", before=12, behind=9):
                self.step()
            main.work(14)
        with main.op("aten::empty"):
            pass
        main.synchronize_device()
        return self

    def step(self):
        settings, main = self.settings, self.main
        self._input()
        tape, kept = [], []
        self._forward(settings.model, tape, kept)
        with main.op(f"Optimizer.zero_grad#{settings.optimizer[0]}.zero_grad", category="user_annotation"):
            main.work(70)
        self._backward(tape, kept)
        self._update()
        if settings.reads_loss:
            self._read_loss()

    def _read_loss(self):
        main = self.main
        with main.op("aten::item"), main.op("aten::_local_scalar_dense"):
            main.copy_out(4)
        main.work(20)

    # Input.

    def _input(self):
        if self.settings.pinned_prefetch:
            self._use_prefetched()
            return
        self._load()
        self._copy_pageable(self.settings.input_bytes)
        self._copy_pageable(self.settings.label_bytes)

    def _load(self):
        main = self.main
        kind = "_MultiProcessingDataLoaderIter" if self.workers else "_SingleProcessDataLoaderIter"
        with main.op(f"enumerate(DataLoader)#{kind}.__next__", category="user_annotation", before=20, behind=15):
            if self.workers:
                main.wait_until(self.workers.take(main.now))
                main.work(190)  # Takes the batch out of the queue and maps its memory.
                return
            for _ in range(6):
                main.busy(self.settings.load_us / 6, spread=0.12)
                with main.op("aten::to"), main.op("aten::_to_copy"), main.op("aten::copy_", behind=60):
                    pass
            with main.op("aten::stack"), main.op("aten::cat", behind=900):
                pass

    def _copy_pageable(self, size):
        main = self.main
        main.work(12)
        with main.op("aten::to"), main.op("aten::_to_copy", before=3):
            with main.op("aten::empty_strided", before=4):
                pass
            with main.op("aten::copy_", before=5):
                main.copy_in_pageable(size, self.settings.device.pageable)

    def _prefetch(self):
        """Takes the next batch and copies it on stream 20, while stream 7 computes."""
        settings, main = self.settings, self.main
        self._load()
        main.stream = 20
        for size in (settings.input_bytes, settings.label_bytes):
            with main.op("aten::to"), main.op("aten::_to_copy", before=3), main.op("aten::copy_", before=5):
                main.copy_in_pinned(size, settings.device.pinned)
        self._copied = main.record_event()
        main.stream = 7

    def _use_prefetched(self):
        if self._copied is None:
            self._prefetch()
        self.main.stream_waits_for(self._copied)
        self._prefetch()

    # Forward.

    def _forward(self, module, tape, kept):
        if isinstance(module, Module):
            if self.settings.module_frames:
                line = self.settings.source_lines.get(module.name.split("_")[0])
                with self.main.module(module.name), self.main.frame(f"model.py({line}): forward") if line else contextlib.nullcontext():
                    self._forward_children(module, tape, kept)
            else:
                self._forward_children(module, tape, kept)
            return
        self._forward_op(module, tape, kept)

    def _forward_children(self, module, tape, kept):
        for child in module.children:
            self._forward(child, tape, kept)

    def _forward_op(self, op, tape, kept):
        main, slow = self.main, self.settings.host_slowdown
        main.work(op.python_us * slow)
        sequence = None
        if op.grad:
            self._sequence += 1
            sequence = self._sequence
        started = []

        def inner(depth):
            if depth == len(op.names):
                with main.op("aten::empty", before=2.5 * slow, behind=1):
                    if self.allocator and op.output_bytes:
                        kept.append(self.allocator.allocate(main, op.output_bytes))
                for kernel in op.kernels:
                    main.launch(kernel)
                return
            args = {"Input Dims": op.shapes} if depth == 0 else {}
            if sequence and depth == len(op.names) - 1:
                args.update({"Fwd thread id": 0, "Sequence number": sequence})
            started.append(main.now)
            with main.op(op.names[depth], before=3.5 * slow, behind=1.5 * slow, **args):
                inner(depth + 1)

        inner(0)
        if op.grad:
            tape.append((op, sequence, started[-1]))

    # Backward, on the thread of the autograd engine, while the main thread waits.

    def _backward(self, tape, kept):
        thread = self.autograd
        self.main.work(45)
        thread.now = self.main.now
        thread.work(30)
        gradient = 1  # The seed of the gradients.
        with thread.op("aten::ones_like"), thread.op("aten::fill_"):
            thread.fill(gradient * 4)
        left, sums = sum(op.parameters for op, _, _ in tape), []
        bucket = -(-left // self.settings.buckets)
        for op, sequence, forward_start in reversed(tape):
            left -= op.parameters
            fills_bucket = self.meeting and op.parameters and left <= bucket * (self.settings.buckets - 1 - len(sums))
            self._backward_op(thread, op, sequence, forward_start, sums if fills_bucket else None)
            if self.allocator and kept and op.output_bytes:
                self.allocator.free(thread, kept.pop())
        thread.work(25)
        for done in sums[-1:]:
            thread.stream_waits_for(done)
        self.main.now = thread.now
        self.main.work(30)

    def _backward_op(self, thread, op, sequence, forward_start, sums):
        """The hook of the last gradient adds a bucket up over all ranks, unless `sums` is None, and appends the event of its end to it."""
        slow = self.settings.host_slowdown
        args = {"Fwd thread id": 1, "Sequence number": sequence}
        with thread.op(f"autograd::engine::evaluate_function: {op.grad.node}", before=2 * slow, **args):
            self.recorder.flow("s", "fwdbwd", sequence, PROCESS, self.main.tid, forward_start)
            self.recorder.flow("f", "fwdbwd", sequence, PROCESS, thread.tid, thread.now)
            with thread.op(op.grad.node, before=2.5 * slow, **args):
                for name, kernels in op.grad.ops:
                    with thread.op(name, before=4.5 * slow, behind=1.5 * slow):
                        for kernel in kernels:
                            thread.launch(kernel)
        for left in reversed(range(op.parameters)):
            with thread.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", before=1):
                with thread.op("torch::autograd::AccumulateGrad", before=2 * slow):
                    pass
                if sums is not None and left == 0:
                    sums.append(all_reduce(thread, self.settings.parameters * 4 // self.settings.buckets, self.meeting,
                                           self.settings.rank))
        thread.work(2)

    # Update.

    def _update(self):
        settings, main = self.settings, self.main
        name, ops = settings.optimizer
        with main.op(f"Optimizer.step#{name}.step", category="user_annotation", before=60, behind=12):
            for op, functor, touched in ops:
                main.work(38)
                with main.op(op, before=14):
                    main.launch(settings.device.memory(MULTI_TENSOR.format(touched, functor),
                                                       settings.parameters * 4 * touched))

    def _distributed(self):
        settings = self.settings
        return {"distributedInfo": {"backend": "nccl", "rank": settings.rank, "world_size": settings.ranks}} \
            if settings.ranks > 1 else {}

    def write(self, path):
        header = {
            "schemaVersion": 1,
            "synthetic": True,
            "generator": "foretrace scripts/make_samples.py",
            "description": self.settings.description,
            "deviceProperties": [self.settings.device.properties],
            "cuda_runtime_version": 12010,
            **self._distributed(),
            "record_shapes": 1,
            "with_stack": int(self.settings.module_frames),
            "profile_memory": int(self.settings.memory_events),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
        }
        threads = [(thread.tid, thread.name) for thread in (self.main, self.autograd)]
        write_trace(path, header, self.recorder.events,
                    lambda start: name_events(threads, self.gpu.streams(), start))
