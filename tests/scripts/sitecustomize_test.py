"""The import hook of `foretrace collect` must mark the steps that it promises, and the program must not notice it."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "src" / "collect" / "site"

# A torch of a few lines with the hooks of the real one. It writes its calls into CALLS.
TORCH = {
    "__init__.py": """
        CALLS = []
        from . import cuda, autograd, optim, utils, compiler
    """,
    "compiler.py": """
        compiling = False
        def is_compiling(): return compiling
    """,
    "cuda/__init__.py": """
        _queued, _initialized = [], False
        def _lazy_call(function): function() if _initialized else _queued.append(function)
        def init():
            global _initialized
            _initialized = True
            while _queued: _queued.pop(0)()
        from . import memory, nvtx
    """,
    "cuda/nvtx.py": """
        import torch
        starts = 0
        def range_push(text): torch.CALLS.append("push " + text)
        def range_pop(): torch.CALLS.append("pop")
        def range_start(text):
            global starts
            starts += 1
            torch.CALLS.append("start %d %s" % (starts, text))
            return starts
        def range_end(number): torch.CALLS.append("end %d" % number)
    """,
    "cuda/memory.py": """
        import torch
        def _record_memory_history(enabled="all", context="all", stacks="all", max_entries=7):
            torch.CALLS.append("history %s %d" % (stacks, max_entries))
        def _dump_snapshot(path): open(path, "w").write("snapshot")
    """,
    "autograd/__init__.py": "from . import profiler",
    "autograd/profiler.py": """
        import torch
        running = None
        class profile:
            def __init__(self, use_cuda=False): pass
            def __enter__(self):
                global running
                if running: raise RuntimeError("Profiler is already enabled on this thread")
                running = self
                return self
            def __exit__(self, *_):
                global running
                running = None
        class emit_nvtx(profile):
            def __init__(self, enabled=True, record_shapes=False): self.shapes = record_shapes
            def __enter__(self):
                torch.CALLS.append("operators on, shapes %s" % self.shapes)
                return profile.__enter__(self)
            def __exit__(self, *_):
                torch.CALLS.append("operators off")
                return profile.__exit__(self)
    """,
    "optim/__init__.py": "from .optimizer import Optimizer, SGD",
    "optim/optimizer.py": """
        before, after = [], []
        def register_optimizer_step_pre_hook(hook): before.append(hook)
        def register_optimizer_step_post_hook(hook): after.append(hook)
        class Optimizer:
            def step(self, fail=False):
                for hook in before: hook(self, (), {})
                if fail: raise ValueError("no gradient")
                for hook in after: hook(self, (), {})
        class SGD(Optimizer): pass
    """,
    "utils/__init__.py": "from . import data",
    "utils/data/__init__.py": "from . import dataloader",
    "utils/data/dataloader.py": """
        class _BaseDataLoaderIter:
            def __init__(self, items): self.items = iter(items)
            def __iter__(self): return self
            def __next__(self): return next(self.items)
        class _SingleProcessDataLoaderIter(_BaseDataLoaderIter): pass
        def DataLoader(items): return _SingleProcessDataLoaderIter(items)
    """,
}


class Sitecustomize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        for name, text in TORCH.items():
            self.write("packages/torch/" + name, text)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run_program(self, text, *options, hooked=True, **variables):
        program = self.write("program.py", text)
        paths = [str(SITE)] * hooked + [str(self.folder / "packages")]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("FORETRACE", "PYTHON"))}
        environment.update(PYTHONPATH=os.pathsep.join(paths), PYTHONDONTWRITEBYTECODE="1", **variables)
        return subprocess.run([sys.executable, *options, str(program)], env=environment, capture_output=True, text=True,
                              cwd=self.folder)

    def calls(self, text, **variables):
        """The calls that a program and the hook made to torch."""
        done = self.run_program("import torch\n" + textwrap.dedent(text) + "\nprint('\\n'.join(torch.CALLS))", **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_steps_reach_from_one_update_to_the_next(self):
        self.assertEqual(self.calls("""
            sgd = torch.optim.SGD()
            for _ in range(3): sgd.step()
        """), ["push Optimizer.step#SGD.step", "pop", "start 1 ProfilerStep#1",
               "push Optimizer.step#SGD.step", "pop", "end 1", "start 2 ProfilerStep#2",
               "push Optimizer.step#SGD.step", "pop", "end 2", "start 3 ProfilerStep#3"])

    def test_a_second_optimizer_does_not_tell_steps(self):
        calls = self.calls("""
            one, two = torch.optim.SGD(), torch.optim.SGD()
            for _ in range(2): one.step(); two.step()
        """)
        self.assertEqual([call for call in calls if "Profiler" in call],
                         ["start 1 ProfilerStep#1", "start 2 ProfilerStep#2"])

    def test_an_optimizer_tells_steps_when_the_one_before_is_gone(self):
        calls = self.calls("""
            one = torch.optim.SGD(); one.step(); del one
            two = torch.optim.SGD(); two.step()
        """)
        self.assertIn("start 2 ProfilerStep#2", calls)

    def test_an_update_that_raises_leaves_no_range_open(self):
        calls = self.calls("""
            sgd = torch.optim.SGD()
            try: sgd.step(fail=True)
            except ValueError: pass
            sgd.step()
        """)
        self.assertEqual(sum(call.startswith("push") for call in calls), calls.count("pop"))

    def test_waiting_for_a_batch_is_a_range_also_for_the_last(self):
        self.assertEqual(self.calls("print(list(torch.utils.data.dataloader.DataLoader([5])))"),
                         ["[5]"] + ["push enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "pop"] * 2)

    def test_marks_can_be_left_out(self):
        self.assertEqual(self.calls("torch.optim.SGD().step()", FORETRACE_MARKS="0"), [""])

    def test_nothing_happens_while_compiling(self):
        self.assertEqual(self.calls("torch.compiler.compiling = True\ntorch.optim.SGD().step()"), [""])

    def test_operators_are_ranges_once_cuda_has_started(self):
        calls = self.calls("torch.CALLS.append('before'); torch.cuda.init(); torch.optim.SGD().step()", FORETRACE_OPS="1")
        self.assertEqual(calls, ["before", "operators on, shapes True", "start 1 ProfilerStep#1"])

    def test_operators_end_with_the_program(self):
        done = self.run_program("""
            import atexit, torch
            torch.CALLS = type("Printing", (list,), {"append": lambda self, text: print(text)})()
            torch.cuda.init()
        """, FORETRACE_OPS="1")
        self.assertEqual(done.stdout.splitlines(), ["operators on, shapes True", "operators off"])

    def test_operators_give_way_to_the_profiler_of_the_program(self):
        calls = self.calls("""
            torch.cuda.init()
            with torch.autograd.profiler.profile(): torch.CALLS.append("profiled")
            torch.optim.SGD().step()
        """, FORETRACE_OPS="1")
        self.assertEqual(calls[:3], ["operators on, shapes True", "operators off", "profiled"])
        self.assertNotIn("operators on, shapes True", calls[3:])

    def test_operators_give_way_to_ranges_of_the_program(self):
        calls = self.calls("""
            torch.cuda.init()
            with torch.autograd.profiler.emit_nvtx(): torch.CALLS.append("ranged")
        """, FORETRACE_OPS="1")
        self.assertEqual(calls[1:5], ["operators off", "operators on, shapes False", "ranged", "operators off"])

    def test_a_profiler_is_warned_of_once_and_only_when_asked(self):
        program = "import torch\nfor _ in range(2): torch.autograd.profiler.profile(use_cuda=True)\n"
        self.assertEqual(self.run_program(program, FORETRACE_WARN="1").stderr.count("torch.profiler too"), 1)
        self.assertEqual(self.run_program(program).stderr, "")

    def test_nothing_is_written_to_a_file_at_the_number_of_standard_error(self):
        path = self.folder / "data"
        self.run_program("import os\nos.close(2)\nos.open(%r, os.O_CREAT | os.O_WRONLY)\n"
                         "import torch\ntorch.autograd.profiler.profile(use_cuda=True)\n" % str(path),
                         FORETRACE_WARN="1", FORETRACE_DEBUG="1")
        self.assertEqual(path.read_text(), "")

    def test_memory_history_ends_in_a_snapshot(self):
        path = self.folder / "memory.pickle"
        calls = self.calls("torch.cuda.init()", FORETRACE_MEMORY_HISTORY="1", FORETRACE_SNAPSHOT=str(path))
        self.assertEqual((calls, path.read_text()), (["history python 200000"], "snapshot"))

    def test_a_snapshot_is_written_also_when_the_program_fails(self):
        path = self.folder / "memory.pickle"
        done = self.run_program("import torch\ntorch.cuda.init()\nraise SystemExit(5)", FORETRACE_MEMORY_HISTORY="1",
                                FORETRACE_SNAPSHOT=str(path))
        self.assertEqual((done.returncode, path.read_text()), (5, "snapshot"))

    def test_processes_do_not_overwrite_each_others_snapshots(self):
        for path in ("memory.pickle", "memory.pickle", "stem"):
            self.calls("torch.cuda.init()", FORETRACE_MEMORY_HISTORY="1", FORETRACE_SNAPSHOT=str(self.folder / path))
        self.assertEqual(len(list(self.folder.glob("memory*.pickle"))), 2)
        self.assertEqual(len(list(self.folder.glob("stem-[0-9]*.pickle"))), 1)

    def test_a_program_that_never_starts_cuda_is_left_alone(self):
        path = self.folder / "memory.pickle"
        self.assertEqual(self.calls("", FORETRACE_OPS="1", FORETRACE_MEMORY_HISTORY="1", FORETRACE_SNAPSHOT=str(path)), [""])
        self.assertFalse(path.exists())

    def test_forked_children_mark_and_write_nothing(self):
        path = self.folder / "memory.pickle"
        done = self.run_program("""
            import os, sys, torch
            torch.cuda.init()
            if os.fork() == 0:
                torch.CALLS.clear()
                torch.optim.SGD().step()
                list(torch.utils.data.dataloader.DataLoader([5]))
                print("child", torch.CALLS)
                sys.exit(0)
            os.wait()
            os._exit(0)
        """, FORETRACE_MEMORY_HISTORY="1", FORETRACE_SNAPSHOT=str(path))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "child []\n", ""))
        self.assertFalse(path.exists())

    def test_processes_started_by_the_program_are_hooked_for_themselves(self):
        done = self.run_program("""
            import subprocess, sys
            code = "import torch; torch.optim.SGD().step(); print(torch.CALLS[-1])"
            sys.exit(subprocess.run([sys.executable, "-c", code]).returncode)
        """)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "start 1 ProfilerStep#1\n", ""))

    def test_the_users_own_sitecustomize_still_runs(self):
        self.write("packages/sitecustomize.py", "print('mine', __name__)\nVALUE = 3\n")
        done = self.run_program("import sitecustomize\nprint(sitecustomize.VALUE)\nimport torch; torch.optim.SGD().step()\n"
                                "print(torch.CALLS[-1])")
        self.assertEqual(done.stdout.splitlines(), ["mine sitecustomize", "3", "start 1 ProfilerStep#1"])

    def test_an_error_in_the_users_own_sitecustomize_is_reported_as_without_us(self):
        for text in ("raise KeyError('mine')", "import no_such_module", "raise SystemExit(4)"):
            self.write("packages/sitecustomize.py", text)
            program = "import torch; torch.optim.SGD().step(); print('went on')"
            with_us, without = self.run_program(program), self.run_program(program, hooked=False)
            for done in (with_us, without):
                done.told = done.stderr.splitlines()[-1]  # Above it there may be a stack, which shows our frame.
            self.assertEqual((with_us.returncode, with_us.stdout, with_us.told),
                             (without.returncode, without.stdout, without.told), text)

    def test_the_folder_leaves_the_programs_path(self):
        program = "import sys; print(sys.path)"
        self.assertEqual(self.run_program(program).stdout, self.run_program(program, hooked=False).stdout)

    def test_exit_code_and_output_stay_what_they_were(self):
        program = "import sys, torch\nprint('out')\nsys.stderr.write('err\\n')\nsys.exit(7)"
        for variables in ({}, dict(FORETRACE_OPS="1", FORETRACE_MEMORY_HISTORY="1", FORETRACE_SNAPSHOT="/no/such/folder/x")):
            done = self.run_program(program, **variables)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "out\n", "err\n"))

    def test_what_fails_inside_is_swallowed_and_told_on_request(self):
        self.write("packages/torch/cuda/nvtx.py", "def range_push(text): raise RuntimeError('NVTX functions not installed')")
        self.write("packages/torch/optim/optimizer.py", "class Optimizer: pass\nclass SGD: pass")
        self.write("packages/torch/autograd/profiler.py", "emit_nvtx = profile = None")
        program = """
            import torch
            torch.cuda.init()
            print(list(torch.utils.data.dataloader.DataLoader([1, 2])))
        """
        done = self.run_program(program, FORETRACE_OPS="1")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "[1, 2]\n", ""))
        told = self.run_program(program, FORETRACE_OPS="1", FORETRACE_DEBUG="1")
        self.assertEqual((told.returncode, told.stdout), (0, "[1, 2]\n"))
        self.assertIn("NVTX functions not installed", told.stderr)
        self.assertIn("torch.optim.optimizer", told.stderr)

    def test_a_torch_that_cannot_be_imported_fails_as_without_us(self):
        self.write("packages/torch/cuda/__init__.py", "raise ImportError('libcudart.so.13: cannot open')")
        program = "try: import torch\nexcept ImportError as error: print(error)"
        self.assertEqual(self.run_program(program).stdout, "libcudart.so.13: cannot open\n")

    def test_loaders_are_left_as_they_were(self):
        self.assertEqual(self.calls("""
            import sys
            print([vars(torch.cuda.__loader__).get("exec_module"), len([f for f in sys.meta_path if "Finder" == type(f).__name__])])
        """, FORETRACE_OPS="1")[0], "[None, 0]")

    def test_isolated_pythons_run_without_the_hook(self):
        program = """
            import sys
            sys.path.insert(0, %r)
            import torch
            torch.optim.SGD().step()
            print(torch.CALLS)
        """ % str(self.folder / "packages")
        for option in ("-S", "-I", "-E"):
            done = self.run_program(program, option)
            self.assertEqual((done.returncode, done.stdout), (0, "[]\n"), option)


if __name__ == "__main__":
    unittest.main()
