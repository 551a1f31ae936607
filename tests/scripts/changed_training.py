"""The training loop of the samples, as a programmer would change it: the calls and their order, the memory that it copies
from, its buffers. Nothing here knows how Foretrace models the same change."""

import dataclasses
import json

from samples.machine import DEFAULT_STREAM
from samples.model import Kernel, Module
from samples.training import Training

COPY_STREAM = 20
SIDE_STREAM = 13
# CUPTI's numbers: how a stream was created.
BLOCKING, NON_BLOCKING, NULL = 1, 2, 3
CAST = Kernel("void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda>", 1)
UNSCALE = Kernel("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<amp_unscale>", 1)


@dataclasses.dataclass
class Change:
    """The difference from the original loop; none by default."""
    pinned: bool = False  # Input copies come from pinned memory, and are not waited for.
    buffers: int = 0  # ... on a stream of their own, into this many buffers in turn.
    cast_us: float = 0  # Duration of converting all weights before the forward pass.
    unscale_us: float = 0  # Duration of a gradient scaler, whose result the host reads.
    checkpointed: tuple = ()  # Names of modules whose forward pass runs again before the backward pass.
    side_us: float = 0  # Duration of a small kernel on a stream of its own, three times in a step, ordered by no call.
    side_blocks: bool = False  # That stream is a blocking one.
    beside_backward_us: float = 0  # The host waits for the forward pass, and computes while the device goes on.
    stall_us: float = 0  # The host does something else for this long before each step.
    flags: bool = False  # The profiler recorded how streams were created.


class ChangedTraining(Training):
    def __init__(self, settings, change=Change()):
        super().__init__(settings)
        self.change = change
        self._used = []  # For each step, the event after its work.
        self._again = {}  # For the tape: where the work of a module ends, and the module.
        if change.side_blocks:
            self.gpu.blocking.add(SIDE_STREAM)

    def step(self):
        if self.change.stall_us:
            self.main.busy(self.change.stall_us)
        super().step()

    # Input.

    def _input(self):
        change, main = self.change, self.main
        if not change.pinned:
            super()._input()
            return
        self._load()
        if change.buffers:
            main.stream = COPY_STREAM
            if len(self._used) >= change.buffers:
                main.stream_waits_for(self._used[-change.buffers])
        for size in (self.settings.input_bytes, self.settings.label_bytes):
            main.work(12)
            with main.op("aten::to"), main.op("aten::_to_copy", before=3):
                with main.op("aten::empty_strided", before=4):
                    pass
                with main.op("aten::copy_", before=5):
                    main.copy_in_pinned(size, self.settings.device.pinned)
        if change.buffers:
            copied = main.record_event()
            main.stream = DEFAULT_STREAM
            main.stream_waits_for(copied)

    # Forward.

    def _forward(self, module, tape, kept):
        change, main = self.change, self.main
        outermost = module is self.settings.model
        if outermost and change.cast_us:
            with main.op("aten::to"), main.op("aten::copy_"):
                main.launch(dataclasses.replace(CAST, microseconds=change.cast_us))
        super()._forward(module, tape, kept)
        if isinstance(module, Module) and module.name in change.checkpointed:
            self._again[len(tape)] = module
        if outermost:
            self._forward_done = main.record_event() if change.beside_backward_us else None
            self._side_work()

    # Backward.

    def _backward(self, tape, kept):
        self._tape = len(tape)
        super()._backward(tape, kept)
        self._again = {}
        if self._forward_done:
            self.main.synchronize_event(self._forward_done)
            self.main.busy(self.change.beside_backward_us)
        self._side_work()

    def _backward_op(self, *op):
        module = self._again.get(self._tape)
        if module:
            self._run_again(module)
        self._tape -= 1
        super()._backward_op(*op)

    def _run_again(self, module):
        """Recomputes on the thread of the backward pass, as torch.utils.checkpoint does."""
        main, self.main = self.main, self.autograd
        allocator, self.allocator = self.allocator, None
        super()._forward(module, [], [])
        self.main, self.allocator = main, allocator

    # Update.

    def _update(self):
        change, main = self.change, self.main
        if change.unscale_us:
            with main.op("aten::_amp_foreach_non_finite_check_and_unscale_"):
                main.launch(dataclasses.replace(UNSCALE, microseconds=change.unscale_us))
            self._read_loss()
        super()._update()
        if change.buffers:
            self._used.append(main.record_event())
        self._side_work()

    def _side_work(self):
        if not self.change.side_us:
            return
        main = self.main
        main.stream = SIDE_STREAM
        with main.op("my_extension::collect_metrics"):
            for _ in range(2):
                main.launch(Kernel("collect_metrics(float const*, float*)", self.change.side_us, blocks=8))
        main.stream = DEFAULT_STREAM

    def write(self, path):
        super().write(path)
        if not self.change.flags:
            return
        flags = {DEFAULT_STREAM: NULL, COPY_STREAM: NON_BLOCKING,
                 SIDE_STREAM: BLOCKING if self.change.side_blocks else NON_BLOCKING}
        add_header(path, "cuda_stream_flags", [[0, stream, flag] for stream, flag in flags.items()])


def add_header(path, key, value):
    """Adds one more member in front of the others of a trace."""
    text = path.read_text().lstrip()
    path.write_text("{" + json.dumps(key) + ": " + json.dumps(value) + "," + text[1:])
