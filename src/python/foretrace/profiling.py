"""Records a training loop with PyTorch's profiler, with all that predictions need.

    with foretrace.profile("run/", steps=6) as steps:
        for batch in loader:
            train(batch)
            steps.step()
"""

import os as _os
import pathlib as _pathlib
import sys as _sys

from . import Error

_LEAST_STEPS = 3  # So that warm-up, steady state and variation can be distinguished.


def _rank():
    """Returns the rank of this process in its job, from the framework or else from its launcher."""
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        if _os.environ.get(name, "").isdigit():
            return int(_os.environ[name])
    return 0


class profile:  # Named like a function, because users call it like one.
    """Records `steps` steps of a loop, after `wait` steps without recording and `warmup` steps whose records are discarded.

    folder    gets a file for each rank, rank0.pt.trace.json.gz and so on; pass this folder to predict(), advise() and the others
    steps     at least 3, so that warm-up, steady state and variation can be distinguished
    memory    also record allocations
    stack     also record the names of modules, which slows down the host
    snapshot  also write a memory snapshot with the source lines that allocated

    Call step() after every step. Recording stops when enough steps are recorded; the loop may go on.
    """

    def __init__(self, folder, steps=6, wait=5, warmup=2, memory=True, stack=False, snapshot=False):
        for name, value, least in (("steps", steps, _LEAST_STEPS), ("wait", wait, 0), ("warmup", warmup, 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise Error(f"{name}: must be a whole number, at least {least}, got {value!r}")
        try:
            import torch.profiler
        except ImportError:
            raise Error("profile: needs PyTorch, which cannot be imported here") from None
        self._torch = torch
        self.folder = _pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = None  # The path of the trace, once it is written.
        self._steps, self._discarded, self._ended = steps, wait + warmup, 0
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._snapshot = snapshot and torch.cuda.is_available()
        self._profiler = torch.profiler.profile(
            activities=activities, schedule=torch.profiler.schedule(wait=wait, warmup=warmup, active=steps, repeat=1), record_shapes=True,
            profile_memory=memory, with_stack=stack, on_trace_ready=self._write, **self._waits())

    def _waits(self):
        """Asks the profiler to record which stream waited for which; PyTorch can since version 2.1."""
        try:
            from torch._C._profiler import _ExperimentalConfig

            return {"experimental_config": _ExperimentalConfig(enable_cuda_sync_events=True)}
        except (ImportError, TypeError):
            return {}

    def _write(self, profiler):
        path = self.folder / f"rank{_rank()}.pt.trace.json.gz"
        profiler.export_chrome_trace(str(path))
        if self._snapshot:
            self._torch.cuda.memory._dump_snapshot(str(self.folder / f"rank{_rank()}.snapshot.pickle"))
            self._torch.cuda.memory._record_memory_history(enabled=None)
        self.path = path

    def step(self):
        """Ends a step."""
        self._ended += 1
        if self._snapshot and self._ended == self._discarded:
            self._torch.cuda.memory._record_memory_history()
        if self.path is None:
            self._profiler.step()

    def __enter__(self):
        self._profiler.__enter__()
        return self

    def __exit__(self, *error):
        self._profiler.__exit__(*error)
        if error[0] is not None:
            return
        recorded = min(self._steps, self._ended - self._discarded)
        if recorded < _LEAST_STEPS:
            if self.path is not None:
                self.path.unlink()
            raise Error(f"profile: the loop ended after {self._ended} steps, and {self._discarded + self._steps} are needed; record fewer "
                        "(steps=, wait=, warmup=), and call step() after each")
        if _rank() == 0:
            print(f"foretrace: recorded {recorded} steps to {self.path}; next: foretrace doctor {self.folder}, foretrace advise {self.folder}",
                  file=_sys.stderr)


def _recorder(base, folder, settings, begin, step, end):
    """Returns an object of a subclass of `base` whose methods `begin`, `step` and `end` run profile() around the steps of a
    framework's loop."""
    recording = []
    methods = {begin: lambda self, *_, **__: recording.append(profile(folder, **settings).__enter__()),
               step: lambda self, *_, **__: recording[-1].step(),
               end: lambda self, *_, **__: recording.pop().__exit__(None, None, None)}
    return type("Recorder", (base,), methods)()


def LightningCallback(folder, **settings):
    """Returns a callback for Lightning's Trainer that records like profile(folder, **settings)."""
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        try:
            from pytorch_lightning.callbacks import Callback
        except ImportError:
            raise Error("LightningCallback: needs Lightning, which cannot be imported here") from None
    return _recorder(Callback, folder, settings, "on_train_start", "on_train_batch_end", "on_train_end")


def TrainerCallback(folder, **settings):
    """Returns a callback for Hugging Face's Trainer that records like profile(folder, **settings)."""
    try:
        from transformers import TrainerCallback as Callback
    except ImportError:
        raise Error("TrainerCallback: needs transformers, which cannot be imported here") from None
    return _recorder(Callback, folder, settings, "on_train_begin", "on_step_end", "on_train_end")
