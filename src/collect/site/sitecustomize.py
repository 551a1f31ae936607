"""The hooks that `foretrace collect` adds to a Python program, without a change to its script.

Python imports a module of this name by itself when it starts and finds it on PYTHONPATH. This one waits until the
program imports torch and then, by torch's own hooks,

    marks training steps      NVTX ranges "ProfilerStep#N" from the end of one optimizer step to the end of the next,
                              "Optimizer.step#Adam.step", and "enumerate(DataLoader)#..." around waiting for a batch
    FORETRACE_OPS=1           makes each operator an NVTX range with its input shapes (emit_nvtx), once CUDA has started
    FORETRACE_MEMORY_HISTORY=1    records the allocator's history and writes a snapshot to FORETRACE_SNAPSHOT at the end
                              (a file.pickle, or a stem that gets "-PID.pickle"; FORETRACE_MEMORY_ENTRIES, 200000,
                              limits its length)
    FORETRACE_WARN=1          says once if the program uses torch.profiler, which competes for the same records
    FORETRACE_MARKS=0         leaves the marks out
    FORETRACE_DEBUG=1         tells on stderr what was done and what failed

The program must not notice: every step swallows its errors, nothing is printed unless asked for, a sitecustomize of
the user's own still runs, and this folder leaves sys.path. A child made by fork marks and writes nothing. Python
started with -S, -I or -E does not come here and runs as if this did not exist. The syntax is kept plain because any
Python of the program, however old, reads this file.
"""

import functools
import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))


def standard_error():
    """Identifies the file behind standard error. A program that closes it may have a file of its own with its number."""
    try:
        found = os.fstat(2)
        return found.st_dev, found.st_ino
    except Exception:
        return None


STANDARD_ERROR = standard_error()


def tell(text):
    try:
        if STANDARD_ERROR is not None and standard_error() == STANDARD_ERROR:
            os.write(2, ("foretrace: %s\n" % text).encode("utf-8", "replace"))
    except Exception:
        pass


def debug(text):
    if os.environ.get("FORETRACE_DEBUG", "0") not in ("", "0"):
        tell(text)


def harmless(function):
    """Returns the function with its errors swallowed, because an error of ours must not stop the program."""
    def guarded(*arguments, **named):
        try:
            return function(*arguments, **named)
        except Exception as error:
            debug("%s%s: %s: %s" % (function.__name__, arguments[1:2], type(error).__name__, error))
            return None
    return guarded


def wanted(variable, default="0"):
    return os.environ.get(variable, default) not in ("", "0")


class Nvtx(object):
    """Calls torch.cuda.nvtx, or does nothing if torch was built without CUDA."""

    def __init__(self):
        self.broken = False

    def call(self, name, *arguments):
        if self.broken:
            return None
        try:
            return getattr(sys.modules["torch.cuda.nvtx"], name)(*arguments)
        except Exception as error:
            self.broken = True
            debug("no NVTX marks: %s" % error)
            return None


class Operators(object):
    """Makes every operator a range. torch allows one profiler per thread, so the program's own takes precedence."""

    def __init__(self):
        self.ranges = None
        self.thread = None
        self.given_up = False

    @property
    def active(self):
        return self.ranges is not None

    @harmless
    def enter(self):
        import threading
        profiler = sys.modules["torch.autograd.profiler"]
        if self.active or self.given_up or threading.current_thread() is not threading.main_thread():
            return
        ranges = profiler.emit_nvtx(record_shapes=True)
        ranges.foretrace = True
        ranges.__enter__()
        self.ranges = ranges
        self.thread = threading.current_thread()
        debug("operators are NVTX ranges from here")

    @harmless
    def leave(self):
        import threading
        self.given_up = True
        if self.active and threading.current_thread() is self.thread:
            ranges, self.ranges = self.ranges, None
            ranges.__exit__(None, None, None)


class Steps(object):
    """Marks steps. A program may have several optimizers; the one that steps first defines the steps."""

    def __init__(self, nvtx, operators):
        self.nvtx = nvtx
        self.operators = operators
        self.process = os.getpid()
        self.teller = None
        self.count = 0
        self.open_step = None
        self.updating = []
        self.is_compiling = bool  # bool() is False; replaced by torch's own function once that is imported.

    # torch.compile traces through these two functions. While it compiles nothing runs, and marks would split its graph.
    def before(self, optimizer, *_):
        if self.is_compiling() or os.getpid() != self.process:
            return
        self.begin_update(optimizer)

    def after(self, optimizer, *_):
        if self.is_compiling() or os.getpid() != self.process:
            return
        self.end_update(optimizer)

    @harmless
    def begin_update(self, optimizer):
        if wanted("FORETRACE_OPS"):
            self.operators.enter()
        # With operators on, torch marks the update itself.
        if self.operators.active:
            return
        while self.updating:  # An optimizer step that raised an exception and so never ended.
            self.updating.pop()
            self.nvtx.call("range_pop")
        self.updating.append(id(optimizer))
        self.nvtx.call("range_push", "Optimizer.step#%s.step" % type(optimizer).__name__)

    @harmless
    def end_update(self, optimizer):
        if self.updating and self.updating[-1] == id(optimizer):
            self.updating.pop()
            self.nvtx.call("range_pop")
        if self.teller is None or self.teller() is None:
            import weakref
            self.teller = weakref.ref(optimizer)
        if self.teller() is not optimizer:
            return
        # Use start and end instead of push and pop, because a step need not nest with the program's own ranges.
        if self.open_step is not None:
            self.nvtx.call("range_end", self.open_step)
        self.count += 1
        self.open_step = self.nvtx.call("range_start", "ProfilerStep#%d" % self.count)


class Hooks(object):
    """The hooks that run when modules of torch have been imported."""

    def __init__(self):
        self.nvtx = Nvtx()
        self.operators = Operators()
        self.steps = Steps(self.nvtx, self.operators)
        self.process = os.getpid()
        self.warned = False

    def by_module(self):
        hooks = {"torch.autograd.profiler": self.on_profiler}
        if wanted("FORETRACE_OPS") or wanted("FORETRACE_MEMORY_HISTORY"):
            hooks["torch.cuda"] = self.on_cuda
        if wanted("FORETRACE_MARKS", "1"):
            hooks["torch.compiler"] = self.on_compiler
            hooks["torch.optim.optimizer"] = self.on_optimizer
            hooks["torch.utils.data.dataloader"] = self.on_loader
        return hooks

    def on_cuda(self, cuda):
        # Wait until the program itself starts CUDA, which takes memory and time and may never be needed.
        cuda._lazy_call(self.cuda_started)

    @harmless
    def cuda_started(self):
        import atexit
        if os.getpid() != self.process:
            return
        if wanted("FORETRACE_OPS"):
            self.operators.enter()
            atexit.register(self.operators.leave)
        if wanted("FORETRACE_MEMORY_HISTORY"):
            self.record_history()
            atexit.register(self.write_snapshot)

    @harmless
    def record_history(self):
        memory = sys.modules["torch.cuda.memory"]
        entries = int(os.environ.get("FORETRACE_MEMORY_ENTRIES", "200000"))
        try:
            memory._record_memory_history(max_entries=entries, stacks="python")
        except TypeError:  # Before torch 2.1.
            memory._record_memory_history(True, trace_alloc_max_entries=entries)
        debug("the allocator's history is recorded")

    @harmless
    def write_snapshot(self):
        path = os.environ.get("FORETRACE_SNAPSHOT", "")
        if not path or os.getpid() != self.process:
            return
        stem, ending = os.path.splitext(path)
        if ending != ".pickle":
            path = "%s-%d.pickle" % (path, os.getpid())
        elif os.path.exists(path):  # Another process of this program wrote it.
            path = "%s-%d.pickle" % (stem, os.getpid())
        sys.modules["torch.cuda.memory"]._dump_snapshot(path)
        debug("snapshot of the allocator in %s" % path)

    def on_compiler(self, compiler):
        self.steps.is_compiling = getattr(compiler, "is_compiling", bool)

    def on_optimizer(self, optimizer):
        optimizer.register_optimizer_step_pre_hook(self.steps.before)
        optimizer.register_optimizer_step_post_hook(self.steps.after)

    def on_loader(self, loader):
        iterator = loader._BaseDataLoaderIter
        wrapped = iterator.__next__
        hooks = self

        @functools.wraps(wrapped)
        def __next__(self):
            if hooks.operators.active or os.getpid() != hooks.process:
                return wrapped(self)
            name = getattr(self, "_profile_name", None)
            hooks.nvtx.call("range_push", name or "enumerate(DataLoader)#%s.__next__" % type(self).__name__)
            try:
                return wrapped(self)
            finally:
                hooks.nvtx.call("range_pop")

        iterator.__next__ = __next__

    def on_profiler(self, profiler):
        for name in ("profile", "emit_nvtx", "emit_itt"):
            if hasattr(profiler, name):
                self.give_way(getattr(profiler, name), warn=name == "profile")

    def give_way(self, rival, warn):
        """Ends the operators' ranges before the program starts its own profiler, which would otherwise refuse to start."""
        method = "__init__" if warn else "__enter__"
        wrapped = getattr(rival, method)
        hooks = self

        @functools.wraps(wrapped)
        def giving_way(self, *arguments, **named):
            if not getattr(self, "foretrace", False):
                if hooks.operators.active:
                    hooks.operators.leave()
                hooks.operators.given_up = True
                if warn:
                    hooks.warn()
            return wrapped(self, *arguments, **named)

        setattr(rival, method, giving_way)

    @harmless
    def warn(self):
        if self.warned or not wanted("FORETRACE_WARN"):
            return
        self.warned = True
        tell("the program uses torch.profiler too, and only one of the two can record the GPU; leave torch.profiler "
             "out, or give its trace to foretrace instead")


class Finder(object):
    """Comes before Python's own finders, lets them find a module, and runs its hook once the module has been executed."""

    def __init__(self, hooks):
        self.hooks = hooks

    def find_spec(self, name, path=None, target=None):
        if name not in self.hooks:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                self.follow(name, spec.loader)
                return spec
        return None

    @harmless
    def follow(self, name, loader):
        execute = loader.exec_module

        # Replace the method of this one loader only, so that its type, which others may check, stays the same.
        def exec_module(module):
            execute(module)
            if module.__name__ == name:
                self.restore(loader)
                self.run(name, module)

        loader.exec_module = exec_module

    @harmless
    def restore(self, loader):
        del loader.exec_module

    @harmless
    def run(self, name, module):
        hook = self.hooks.pop(name, None)
        if not self.hooks and self in sys.meta_path:
            sys.meta_path.remove(self)
        if hook is not None:
            hook(module)
            debug("hooked %s" % name)


@harmless
def install():
    if sys.version_info < (3, 6):
        return
    finder = Finder(Hooks().by_module())
    for name in list(finder.hooks):
        if name in sys.modules:
            finder.run(name, sys.modules[name])
    if finder.hooks:
        sys.meta_path.insert(0, finder)


@harmless
def leave_path():
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != FOLDER]


def chain():
    """Runs the sitecustomize that Python would have found without this one. Its errors are raised as they would be."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    leave_path()
    install()
    if sys.version_info >= (3, 6):
        chain()
