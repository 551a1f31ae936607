"""A build folder, seen as commands: how a source is compiled, and what a program is linked from.

A program with one changed source is the same link command with the changed object in front of the
libraries: the linker then does not need the member that it replaces. If several sources were
compiled as one, the others are still needed, so the linker is told to take the first of two
definitions. That needs a build without inlining (-O0), because the compiler otherwise resolves calls
within one object file.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import threading

# Quick programs first; a survivor is tried with all of them.
PROGRAMS = ["base_tests", "trace_tests", "machine_tests", "network_tests", "schedule_tests", "workload_tests", "graph_tests", "timeline_tests",
            "allocator_tests", "simulate_tests", "generate_tests", "price_tests", "plan_tests", "serve_tests", "transform_tests", "infer_tests", "render_tests", "export_tests", "document_tests", "import_tests", "scenario_tests", "job_tests", "analysis_tests",
            "question_tests", "studies_tests", "cli_tests", "collect_tests"]
# These tests run the program itself, and the collector inside another program.
_RUN_THE_PROGRAM = {"cli_tests", "collect_tests"}
_GUESTS = {"foretrace_inject": "libforetrace_collect.so", "foretrace_preload": "libforetrace_preload.so"}


_INCLUDED = re.compile(r'^#include "(/.+\.cc)"$', re.MULTILINE)


class BuildError(Exception):
    """A sentence."""


def _run(command, cwd):
    ended = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if ended.returncode != 0:
        raise BuildError(f"{shlex.join(command)[:300]}\n{ended.stdout[-4000:]}")
    return ended.stdout


def _without_outputs(words):
    """A compile command without its output and its source."""
    kept = []
    skip = False
    for word in words:
        if skip or word in ("-MD", "-MMD", "-c"):
            skip = False
        elif word in ("-o", "-MT", "-MF"):
            skip = True
        else:
            kept.append(word)
    return kept


def _output(command):
    words = shlex.split(command["command"])
    return words[words.index("-o") + 1]


class Build:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()
        if not (self.folder / "build.ninja").exists():
            raise BuildError(f"{folder}: must be configured for Ninja, as with: cmake -S . -B {folder} -G Ninja")
        self.made, self.links, self.lock = set(), {}, threading.Lock()
        commands = json.loads((self.folder / "compile_commands.json").read_text(encoding="utf-8"))
        self.compiles = {}
        self.unity = set()  # Objects of several sources.
        for command in commands:
            file = pathlib.Path(command["file"])
            self.compiles.setdefault(file, []).append(command)
            if "/Unity/" in command["file"] and file.exists():
                self.unity.add(_output(command))
                for source in _INCLUDED.findall(file.read_text(encoding="utf-8")):
                    self.compiles.setdefault(pathlib.Path(source), []).append(command)

    def make(self, targets):
        """Builds the programs without a bug."""
        with self.lock:
            missing = sorted(set(targets) - self.made)
            if missing:
                _run(["ninja", "-C", str(self.folder), *missing], self.folder)
                self.made.update(missing)

    def program(self, name):
        return self.folder / "tests" / ("collect/" if name == "collect_tests" else "") / name

    def compile(self, file, text, folder):
        """{object of the build: the changed object}. A source may go into several libraries."""
        source = pathlib.Path(__file__).resolve().parents[2] / file
        changed = folder / source.name
        changed.write_text(text, encoding="utf-8")
        objects = {}
        for number, command in enumerate(self.compiles.get(source, [])):
            words = shlex.split(command["command"])
            original = _output(command)
            objects[original] = folder / f"{number}.o"
            words = [word for word in _without_outputs(words) if word != command["file"]]
            _run([*words, "-iquote", str(source.parent), "-o", str(objects[original]), "-c", str(changed)],
                 command["directory"])
        if not objects:
            raise BuildError(f"{file}: is not compiled in {self.folder}")
        return objects

    def link(self, name, objects, folder):
        """The program with these objects instead of its own; None if it has none of them."""
        self.make([name])
        linked = self._linked(name, self.program(name).name, objects, folder)
        if name in _RUN_THE_PROGRAM:
            linked |= self._linked("foretrace", "foretrace", objects, folder)
            for target, file in _GUESTS.items():
                linked |= self._linked(target, file, objects, folder)
        if not linked:
            return None
        return folder / self.program(name).name if (folder / self.program(name).name).exists() else self.program(name)

    def environment(self, folder):
        """The environment for the programs that link() made in `folder`; without a folder, for those of the build."""
        environment = {key: value for key, value in os.environ.items()
                       if not key.startswith(("FORETRACE", "GTEST", "XDG_CACHE"))}
        if folder is None:
            return environment
        if (folder / "foretrace").exists():
            environment["FORETRACE_TESTED"] = str(folder / "foretrace")
        environment["FORETRACE_LIBRARIES"] = str(folder)
        environment["TMPDIR"] = str(folder)
        for part in [*_GUESTS.values(), "site"]:
            if not (folder / part).exists() and (self.folder / part).exists():
                (folder / part).symlink_to(self.folder / part)
        return environment

    def _linked(self, target, file, objects, folder):
        """Links into `folder`. Returns False if the program has none of the objects."""
        if (folder / file).exists():
            return True
        words = self._link_command(target)
        libraries = {f"lib{original.split('/')[1].removesuffix('.dir')}.a": changed
                     for original, changed in objects.items() if original.startswith("CMakeFiles/")}
        in_front = [str(changed) for library, changed in libraries.items() if library in words]
        in_front += [str(objects[word]) for word in words if word in objects and word in self.unity]
        replaced = [word if word in self.unity else str(objects.get(word, word)) for word in words]
        if not in_front and replaced == words:
            return False
        if self.unity.intersection(objects):
            in_front.insert(0, "-Wl,-z,muldefs")
        replaced[replaced.index("-o") + 1] = str(folder / file)
        at = replaced.index("-o")
        _run(replaced[:at] + in_front + replaced[at:], self.folder)
        return True

    def _link_command(self, target):
        file = target if "_tests" not in target else str(self.program(target).relative_to(self.folder))
        file = _GUESTS.get(target, file)
        with self.lock:
            if not self.links:
                for line in _run(["ninja", "-C", str(self.folder), "-t", "commands"], self.folder).splitlines():
                    for step in line.split(" && "):
                        words = step.split()
                        if "-o" in words and "-c" not in words and "c++" in step:
                            self.links[words[words.index("-o") + 1]] = shlex.split(step)
        return self.links[file]
