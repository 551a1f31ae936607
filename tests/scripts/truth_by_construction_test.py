"""Compares predictions with the truth: a loop is simulated before and after a change of the program, and foretrace predicts
the changed one from the recording of the original. FORETRACE names the program; skipped without it."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True

import make_samples  # noqa: E402
from changed_training import Change, ChangedTraining  # noqa: E402
from samples.gpt import GEMM, TENSOR_GEMM, gpt  # noqa: E402
from samples.model import A100, Device  # noqa: E402
from samples.recorder import DEVICE  # noqa: E402

FORETRACE = os.environ.get("FORETRACE")
GREATEST_ERROR = 0.04


def kernels(factor):
    def change(training):
        for thread in (training.main, training.autograd):
            def launch(kernel, unchanged=thread.launch):
                unchanged(dataclasses.replace(kernel, microseconds=kernel.microseconds * factor))
            thread.launch = launch
    return change


def host(factor):
    def change(training):
        for thread in (training.main, training.autograd):
            def work(microseconds, unchanged=thread.work):
                unchanged(microseconds * factor)
            thread.work = work
    return change


def scale(kind, factor):
    return f"scale:where.kind={kind},factor={factor}"


CHANGES = {
    "kernels at half the time": (kernels(0.5), [scale("kernel", 0.5)]),
    "kernels at a fifth": (kernels(0.2), [scale("kernel", 0.2)]),
    "kernels at three times the time": (kernels(3), [scale("kernel", 3)]),
    "kernels at eight times the time": (kernels(8), [scale("kernel", 8)]),
    "host at half the time": (host(0.5), [scale(kind, 0.5) for kind in ("host", "launch", "input")]),
    "host at twice the time": (host(2), [scale(kind, 2) for kind in ("host", "launch", "input")]),
}


HALF, FIFTH, THREE, EIGHT = [name for name in CHANGES if name.startswith("kernels")]
ALL = [name for name in CHANGES if name != EIGHT]


def language_model(gemm, device=A100, layers=4, **settings):
    """The sample that is bound by the device, with the model built for `device`; everything else stays as in the sample."""
    model = gpt(device, layers, 16, 1024, 1024, 32000, gemm)
    return dataclasses.replace(make_samples.gpu_bound(), model=model, memory_events=False, sync_records=False, **settings)


def small_language_model(**settings):
    """The sample that is bound by the host, with copies that are ordered by events."""
    return dataclasses.replace(make_samples.launch_bound(), pinned_prefetch=True, **settings)


def images_from_workers(**settings):
    """A perceptron that gets 77 MB in each step, as fast as it can process them."""
    return dataclasses.replace(make_samples.input_bound(), workers=8, load_us=30_000, reads_loss=False, steps=8, warm_up=8,
                               **settings)


@dataclasses.dataclass
class Classes(Device):
    """A device with 8 times the arithmetic, but `gain` times for kernels named `product`, as products that ran in TF32 gain less.
    Arrays take half of their bytes, except in norms, softmax and losses, which stay in FP32."""
    product: str = ""
    gain: float = 1

    def compute(self, name, flops):
        kernel = super().compute(name, flops)
        gain = self.gain if self.product in name else 8
        return dataclasses.replace(kernel, microseconds=max(2.6, flops / self.flops / gain * 1e6 + 2.0))

    def memory(self, name, size):
        in_full = any(word in name.lower() for word in ("norm", "softmax", "nll_loss"))
        return dataclasses.replace(super().memory(name, size if in_full else size / 2), blocks=max(1, int(size // 65536)))


def in_half_precision(product, gain):
    """The A100 in half precision: twice 19.5 of 312 TFLOP/s are an eighth."""
    return Classes(**{field.name: getattr(A100, field.name) for field in dataclasses.fields(A100)}, product=product, gain=gain)


class Truth(unittest.TestCase):
    def setUp(self):
        if not FORETRACE:
            self.skipTest("FORETRACE is not set")
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)

    def record(self, settings, program=Change(), retimed=lambda training: None, clock_us=0):
        """A recording whose device clock is behind by `clock_us`."""
        training = ChangedTraining(settings, program)
        retimed(training)
        training.run()
        for event in training.recorder.events:
            if event["pid"] == DEVICE:
                event["ts"] += clock_us * 1000
        path = pathlib.Path(self._folder.name) / "trace.json"
        training.write(path)
        return path

    def answer(self, trace, *changes):
        uses = [argument for change in changes for argument in ("--with", change)]
        answer = subprocess.run([FORETRACE, "predict", trace, "--no-cache", "--format", "json", *uses],
                                capture_output=True, text=True)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        return json.loads(answer.stdout)

    def measured(self, trace):
        return self.answer(trace)["measured"]["step_time_ns"]

    def compare(self, what, answer, truth):
        """Prints the error, good or bad, and fails on more than the limit."""
        before, predicted = (answer[of]["step_time_ns"] for of in ("measured", "predicted"))
        error = predicted / truth - 1
        print(f"{what:75} {before / 1e6:7.2f} ms, {truth / 1e6:7.2f} in truth, {predicted / 1e6:7.2f} predicted: "
              f"{100 * error:+5.2f} %")
        self.assertLess(abs(error), GREATEST_ERROR, what)

    def check(self, loop, settings, recordings, program=Change(), names=ALL):
        """`recordings` are the forms that a recording of the same loop may have: with or without sync records, with the clock behind or not."""
        truths = {name: self.measured(self.record(settings, program, CHANGES[name][0])) for name in names}
        for sync_records, clock_us in recordings:
            trace = self.record(dataclasses.replace(settings, sync_records=sync_records), program, clock_us=clock_us)
            for name in names:
                with self.subTest(name, sync_records=sync_records, clock_us=clock_us):
                    seen = (", sync records" if sync_records else "") + (f", clock {clock_us:+} us" if clock_us else "")
                    self.compare(f"{loop}{seen}, {name}", self.answer(trace, *CHANGES[name][1]), truths[name])

    def check_change(self, what, settings, program, *uses, base=None):
        """Compares the prediction with `uses`, from a recording of the unchanged program `base`, with the changed program."""
        truth = self.measured(self.record(settings, program))
        answer = self.answer(self.record(*(base or (settings, Change()))), *uses)
        with self.subTest(what):
            self.compare(what, answer, truth)

    def check_said(self, settings, program, says):
        """Whether the answer says that it rests on a rule about streams whose flags are not recorded."""
        said = json.dumps(self.answer(self.record(settings, program)))
        self.assertEqual("and blocking streams are assumed to wait for each other" in said, says)


class Retimed(Truth):
    def test_host_that_cannot_launch_fast_enough(self):
        self.check("launch-bound", make_samples.launch_bound(), [(False, 0)])

    def test_device_that_is_waited_for(self):
        self.check("device-bound", make_samples.gpu_bound(), [(True, 0), (False, 0)])
        self.check("device-bound", make_samples.gpu_bound(), [(True, 50), (False, 50), (True, -50)], names=[FIFTH, THREE])

    def test_host_that_waits_for_an_event(self):
        """Work launched after the event is not waited for: the host computes during the backward pass."""
        self.check("event wait", language_model(GEMM, reads_loss=False), [(True, 0), (False, 0)],
                   Change(beside_backward_us=60_000), [FIFTH, HALF, THREE])

    def test_full_launch_queue(self):
        """The host is more than 1,000 launches ahead, which is enough for its stalls only while kernels are long."""
        self.check("full queue", language_model(GEMM, layers=12, reads_loss=False, steps=5), [(False, 0)],
                   Change(stall_us=45_000), [FIFTH, HALF])

    def test_default_stream_that_waits_for_another(self):
        """In the recording nothing had to wait; with longer kernels everything does."""
        self.check("blocking, flags", small_language_model(), [(False, 0)],
                   Change(side_us=60, side_blocks=True, flags=True), [HALF, THREE, EIGHT])

    def test_default_stream_that_waits_without_flags(self):
        """The side work is long enough to show that the default stream waits for it, but not that it waits for the default stream."""
        self.check("blocking, no flags", small_language_model(), [(False, 0)],
                   Change(side_us=400, side_blocks=True), [HALF, THREE, EIGHT])
        self.check_said(small_language_model(), Change(side_us=400, side_blocks=True), True)

    def test_default_stream_beside_one_that_does_not_wait(self):
        for flags in (True, False):
            self.check(f"non-blocking, {'' if flags else 'no '}flags", small_language_model(), [(False, 0)],
                       Change(side_us=400, flags=flags), [HALF, EIGHT])
        self.check_said(small_language_model(), Change(side_us=400), False)


class Changed(Truth):
    def test_pinned_memory(self):
        pin = "pin_memory:bandwidth=12.1GB/s"
        self.check_change("pin_memory, ResNet-18", make_samples.image_training(4), Change(pinned=True), pin)
        self.check_change("pin_memory, 77 MB a step", images_from_workers(), Change(pinned=True), pin)

    def test_prefetch(self):
        uses = ["pin_memory:bandwidth=12.1GB/s", "prefetch:buffers={}"]
        for what, settings in (("ResNet-18", make_samples.image_training(4)), ("77 MB a step", images_from_workers())):
            for buffers in (1, 2, 3):
                self.check_change(f"prefetch, {what}, {buffers} buffers", settings, Change(pinned=True, buffers=buffers),
                                  *[use.format(buffers) for use in uses])

    def test_mixed_precision(self):
        single, tf32 = language_model(GEMM), language_model(TENSOR_GEMM)
        half = language_model(GEMM, in_half_precision("", 8))
        self.check_change("amp", half, Change(), "amp", base=(single, Change()))
        self.check_change("amp, with casts and a scaler", half, Change(cast_us=700, unscale_us=350),
                          "amp:cast_time=700us,scaler_time=350us", base=(single, Change()))
        self.check_change("amp, of products in TF32", language_model(TENSOR_GEMM, in_half_precision("s1688gemm", 2)),
                          Change(), "amp", base=(tf32, Change()))

    def test_recompute(self):
        settings = dataclasses.replace(language_model(GEMM, layers=6), memory_events=True, module_frames=True)
        blocks = tuple(f"Block_{i}" for i in range(5))
        self.check_change("recompute, block by block", settings, Change(checkpointed=blocks),
                          "recompute:policy=every,layers=9")
        small = dataclasses.replace(make_samples.launch_bound(), memory_events=True)
        self.check_change("recompute, launch-bound", small, Change(checkpointed=("Block_0", "Block_1", "Block_2")),
                          "recompute:policy=every,layers=9")

    def test_loader_workers(self):
        base = (make_samples.image_training(0), Change())
        for workers in (1, 2, 8):
            settings = dataclasses.replace(make_samples.image_training(workers), steps=8, warm_up=2 * workers + 2)
            self.check_change(f"loader, {workers} workers", settings, Change(),
                              f"loader:workers={workers},work_factor=1.15,hand_over=225us,first_touch=1000GB/s,host_factor=1",
                              base=base)

    def test_loss_that_is_not_read(self):
        model = gpt(A100, 4, 8, 256, 512, 8192, GEMM)
        for what, base in (("launch-bound", make_samples.launch_bound()),
                           ("balanced", dataclasses.replace(make_samples.launch_bound(), model=model)),
                           ("device-bound", language_model(GEMM, layers=12))):
            # Small copies from pageable memory wait for the device, too.
            base = dataclasses.replace(base, pinned_prefetch=True)
            self.check_change(f"remove_sync, {what}", dataclasses.replace(base, reads_loss=False), Change(),
                              "remove_sync:copies=go", base=(base, Change()))


if __name__ == "__main__":
    unittest.main()
