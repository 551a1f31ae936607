"""A host thread and a GPU that obey the rules of real ones.

A launch costs the host a few microseconds; its kernel starts when the launch has reached the device and the stream
is free. A synchronizing call returns when the work it waits for is done. Nothing else orders anything, so every
wait in a trace has its cause in the trace.
"""

import contextlib

from .recorder import DEVICE, PROCESS

DEFAULT_STREAM = 7
QUEUE_LENGTH = 1024  # Launches that a stream holds before the next launch has to wait.
SYNC_RETURN_NS = 4_000  # From the end of the work to the return of the call that waits for it.


class Gpu:
    """Streams that run one thing at a time in order, and one copy engine for each direction."""

    def __init__(self, recorder, chance, launch_ns, gap_ns, sync_records):
        self.recorder = recorder
        self.chance = chance
        self.launch_ns = launch_ns
        self.gap_ns = gap_ns
        self.sync_records = sync_records
        self.blocking = set()  # Streams that the default stream waits for, and that wait for it.
        self.free = {}  # stream -> when its last work ends
        self._engine_free = {"in": 0, "out": 0}
        self._not_before = {}  # stream -> the time that an event makes it wait for
        self._ends = {}  # stream -> ends of queued work, oldest first

    def streams(self):
        return sorted(self.free)

    def idle_at(self):
        return max(self.free.values(), default=0)

    def room_at(self, stream):
        """The time at which the queue has room for a launch."""
        ends = self._ends.get(stream, [])
        return ends[-QUEUE_LENGTH] if len(ends) >= QUEUE_LENGTH else 0

    def wait_for(self, stream, time):
        self._not_before[stream] = max(self._not_before.get(stream, 0), time)

    def run(self, stream, issued, duration, engine=None):
        """Start and end of work that a call ending at `issued` put on `stream`."""
        for other in self._ordered_with(stream):
            self.wait_for(stream, self.free.get(other, 0))
        ready = issued + self.chance.around(self.launch_ns, 0.3)
        behind = self.free.get(stream, 0) + self.chance.around(self.gap_ns, 0.2)
        start = max(ready, behind, self._not_before.get(stream, 0) + self.gap_ns)
        if engine:
            start = max(start, self._engine_free[engine])
            self._engine_free[engine] = start + duration
        self.free[stream] = start + duration
        self._ends.setdefault(stream, []).append(start + duration)
        return start, start + duration

    def extend(self, stream, end):
        """The last work on `stream` ends then."""
        self.free[stream] = self._ends[stream][-1] = end

    def _ordered_with(self, stream):
        """Streams whose work so far must, by CUDA's own rules, finish before the next work on `stream`."""
        if stream == DEFAULT_STREAM:
            return sorted(self.blocking)
        return [DEFAULT_STREAM] if stream in self.blocking else []


class Thread:
    """A CPU thread with its own clock."""

    def __init__(self, gpu, tid, name, start):
        self.gpu = gpu
        self.recorder = gpu.recorder
        self.chance = gpu.chance
        self.tid = tid
        self.name = name
        self.now = start
        self.stream = DEFAULT_STREAM
        self._externals = []
        self._frames = []
        self._last_call_start = start

    def work(self, microseconds):
        """Code that is not recorded: Python, the dispatcher, the allocator."""
        self.now += self.chance.host(round(microseconds * 1000))

    def busy(self, microseconds, spread=0.05):
        """A long stretch of ordinary computing."""
        self.now += self.chance.around(round(microseconds * 1000), spread)

    def wait_until(self, time):
        self.now = max(self.now, time)

    @contextlib.contextmanager
    def op(self, name, before=1.5, behind=1.0, category="cpu_op", **args):
        """An op around other calls; `before` and `behind` are its own microseconds before and after them."""
        external = self.recorder.next_external()
        self._externals.append(external)
        start = self.now
        self.work(before)
        yield external
        self.work(behind)
        self._externals.pop()
        self.recorder.complete(category, name, PROCESS, self.tid, start, self.now,
                               {"External id": external, **args})

    @contextlib.contextmanager
    def frame(self, name, before=0, behind=0):
        """A Python frame; `before` and `behind` are its own microseconds."""
        number = self.recorder.next_python()
        parent = self._frames[-1] if self._frames else None
        self._frames.append(number)
        start = self.now
        if before:
            self.work(before)
        yield
        if behind:
            self.work(behind)
        self._frames.pop()
        self.recorder.complete("python_function", name, PROCESS, self.tid, start, self.now,
                               {"Python id": number, "Python parent id": parent})

    def module(self, name):
        """The frame of a module's call."""
        return self.frame(f"nn.Module: {name}", before=3, behind=1)

    def external(self):
        return self._externals[-1] if self._externals else 0

    def call(self, name, microseconds, until=0, **args):
        """A CUDA call with a duration of its own, which returns no earlier than `until`. Returns its number."""
        correlation = self.recorder.next_correlation()
        start = self.now
        self.work(microseconds)
        self.wait_until(until)
        self.recorder.complete("cuda_runtime", name, PROCESS, self.tid, start, self.now,
                               {"External id": self.external(), "cbid": CALL_NUMBERS[name], "correlation": correlation, **args})
        self._last_call_start = start
        return correlation

    def _device_event(self, category, name, stream, start, end, correlation, args):
        common = {"External id": self.external(), "device": DEVICE, "context": 1, "stream": stream,
                  "correlation": correlation}
        self.recorder.complete(category, name, DEVICE, stream, start, end, {**common, **args})
        self.recorder.flow("s", "ac2g", correlation, PROCESS, self.tid, self._last_call_start)
        self.recorder.flow("f", "ac2g", correlation, DEVICE, stream, start)

    def launch(self, kernel):
        room = self.gpu.room_at(self.stream)
        correlation = self.call("cudaLaunchKernel", 4.6, until=room)
        duration = self.chance.device(round(kernel.microseconds * 1000))
        start, end = self.gpu.run(self.stream, self.now, duration)
        self._device_event("kernel", kernel.name, self.stream, start, end, correlation,
                           {"grid": [kernel.blocks, 1, 1], "block": [256, 1, 1]})
        self.work(1.2)

    def launch_graph(self, kernels):
        """One call for kernels that were captured before; the device starts them without the host."""
        correlation = self.call("cudaGraphLaunch", 28, until=self.gpu.room_at(self.stream))
        for node, kernel in enumerate(kernels):
            duration = self.chance.device(round(kernel.microseconds * 1000))
            start, end = self.gpu.run(self.stream, self.now, duration)
            self._device_event("kernel", kernel.name, self.stream, start, end, correlation,
                               {"grid": [kernel.blocks, 1, 1], "block": [256, 1, 1], "graph id": 1, "graph node id": node + 1})

    def launch_until(self, name, ends, args):
        """Launches a kernel that ends at the time that `ends` says for its start."""
        correlation = self.call("cudaLaunchKernel", 4.6, until=self.gpu.room_at(self.stream))
        start, _ = self.gpu.run(self.stream, self.now, 0)
        end = ends(start)
        self.gpu.extend(self.stream, end)
        self._device_event("kernel", name, self.stream, start, end, correlation,
                           {"grid": [24, 1, 1], "block": [512, 1, 1], **args})
        self.work(1.2)

    def fill(self, size):
        correlation = self.call("cudaMemsetAsync", 4.2, until=self.gpu.room_at(self.stream))
        start, end = self.gpu.run(self.stream, self.now, self.chance.device(900 + size // 800))
        self._device_event("gpu_memset", "Memset (Device)", self.stream, start, end, correlation, {"bytes": size})

    def copy_in_pageable(self, size, gigabytes_per_second):
        """The driver stages such a copy itself: the call lasts until the stream has reached the copy and the copy is done."""
        correlation = self.recorder.next_correlation()
        begin = self.now
        self.work(9)
        duration = self.chance.around(1_600 + round(size / gigabytes_per_second), 0.04)
        start, end = self.gpu.run(self.stream, self.now, duration, "in")
        if size > 65536:
            self.wait_until(end - 3_000)
        self._finish_copy("Memcpy HtoD (Pageable -> Device)", begin, correlation, start, end, size)
        self.synchronize_stream()

    def copy_in_pinned(self, size, gigabytes_per_second):
        correlation = self.recorder.next_correlation()
        begin = self.now
        self.work(6)
        duration = self.chance.around(1_600 + round(size / gigabytes_per_second), 0.02)
        start, end = self.gpu.run(self.stream, self.now, duration, "in")
        self._finish_copy("Memcpy HtoD (Pinned -> Device)", begin, correlation, start, end, size)

    def copy_out(self, size):
        correlation = self.recorder.next_correlation()
        begin = self.now
        self.work(8)
        start, end = self.gpu.run(self.stream, self.now, self.chance.device(1_500 + size // 8), "out")
        self.wait_until(end + 1_500)
        self._finish_copy("Memcpy DtoH (Device -> Pageable)", begin, correlation, start, end, size)
        self.synchronize_stream()

    def _finish_copy(self, name, begin, correlation, start, end, size):
        self.recorder.complete("cuda_runtime", "cudaMemcpyAsync", PROCESS, self.tid, begin, self.now,
                               {"External id": self.external(), "cbid": CALL_NUMBERS["cudaMemcpyAsync"],
                                "correlation": correlation})
        self._last_call_start = begin
        rate = round(size / max(end - start, 1), 3)
        self._device_event("gpu_memcpy", name, self.stream, start, end, correlation,
                           {"bytes": size, "memory bandwidth (GB/s)": rate})

    def synchronize_stream(self):
        done = self.gpu.free.get(self.stream, 0) + SYNC_RETURN_NS
        start = self.now
        correlation = self.call("cudaStreamSynchronize", 2.5, until=done)
        self._sync_record("Stream Sync", start, correlation, self.stream, {})

    def synchronize_device(self):
        start = self.now
        correlation = self.call("cudaDeviceSynchronize", 5, until=self.gpu.idle_at() + SYNC_RETURN_NS)
        self._sync_record("Context Sync", start, correlation, -1, {})

    def synchronize_event(self, event):
        recorded, stream, time = event
        start = self.now
        correlation = self.call("cudaEventSynchronize", 2.5, until=time + SYNC_RETURN_NS)
        self._sync_record("Event Sync", start, correlation, -1,
                          {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": recorded,
                           "wait_on_cuda_event_id": recorded})

    def record_event(self):
        """Returns the arguments of stream_waits_for() and synchronize_event(): the call, the stream, and when its work so far is done."""
        correlation = self.call("cudaEventRecord", 1.8)
        seen = self.recorder.on  # A profiler knows nothing of events recorded before it was started.
        return correlation if seen else -1, self.stream if seen else -1, self.gpu.free.get(self.stream, 0)

    def stream_waits_for(self, event):
        recorded, stream, time = event
        start = self.now
        correlation = self.call("cudaStreamWaitEvent", 1.5)
        self.gpu.wait_for(self.stream, time)
        self._sync_record("Stream Wait Event", start, correlation, self.stream,
                          {"wait_on_stream": stream, "wait_on_cuda_event_record_corr_id": recorded,
                           "wait_on_cuda_event_id": recorded})

    def _sync_record(self, kind, start, correlation, stream, args):
        """CUPTI's record of a wait; only newer profilers request it."""
        if self.gpu.sync_records:
            self.recorder.complete("cuda_sync", kind, DEVICE, stream, start + 600, self.now - 300,
                                   {"External id": self.external(), "cuda_sync_kind": kind, **args,
                                    "stream": stream, "correlation": correlation, "device": DEVICE, "context": 1})


CALL_NUMBERS = {
    "cudaGraphLaunch": 311,
    "cudaStreamBeginCapture": 317,
    "cudaStreamEndCapture": 318,
    "cudaLaunchKernel": 211,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaDeviceSynchronize": 165,
    "cudaEventRecord": 135,
    "cudaEventSynchronize": 137,
    "cudaStreamWaitEvent": 147,
}
