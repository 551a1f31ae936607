"""What the compiled module offers, by running the program: in wheels without the compiled module. $FORETRACE names another program.

It takes the same settings and returns the same texts. The program reads the job anew for each question, also for those of job().
"""

import difflib as _difflib
import functools as _functools
import io as _io
import json as _json
import os as _os
import re as _re
import shutil as _shutil
import subprocess as _subprocess
import tempfile as _tempfile

# Settings that the command line takes by their place.
_PLACES = {"check": ("trace", "more"), "collective": ("name",), "diff": ("before", "after"), "generate": ("model",), "memory_replay": ("file",),
           "plan": ("model",), "plan_allocate": ("jobs",), "plan_serve": ("model",), "plan_show": ("plan",), "plan_system": ("file",),
           "serve": ("model",), "sweep": ("scenario",), "verify": ("prediction", "measured")}
_ANSWERED = (0, 1, 4)  # 1 and 4: also where an assertion fails or is undecided.


class Error(ValueError):
    """A wrong question or setting."""


class TraceError(Error):
    """A trace that cannot be used."""


def _program():
    inside = _os.path.join(_os.path.dirname(__file__), "program", "bin", "foretrace")
    found = _os.environ.get("FORETRACE") or (inside if _os.path.exists(inside) else _shutil.which("foretrace"))
    if not found:
        raise ImportError("foretrace: neither the compiled module nor the program is there; put the program `foretrace` on PATH")
    return found


def _run(*words, given=""):
    """Returns what the program prints, and its remarks."""
    done = _subprocess.run([_program(), *words], input=given, capture_output=True, encoding="utf-8", check=False)
    remarks = [line[len("foretrace: "):] for line in done.stderr.splitlines() if line.startswith("foretrace: ")]
    if done.returncode not in _ANSWERED:
        said = remarks[-1] if remarks else done.stderr.strip() or f"exit status {done.returncode}"
        raise {2: Error, 3: TraceError}.get(done.returncode, RuntimeError)(said)
    return done.stdout, remarks


@_functools.lru_cache(maxsize=None)
def _tools():
    listed, _ = _run("mcp", given='{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n')
    return {tool["name"]: tool for tool in _json.loads(listed)["result"]["tools"] if not tool["name"].startswith("list_")}


def _words(question, settings):
    """The command line that asks the question."""
    known = _tools().get(question)
    if known is None:
        raise Error(f"there is no question '{question}'; there are {', '.join(_tools())}")
    names = set(known["inputSchema"]["properties"]) - {"form", "limit"}
    places, options = {}, []
    for name, value in settings.items():
        if name not in names:
            near = _difflib.get_close_matches(name, names, 1)
            raise Error(f'{question}: there is no setting "{name}"' + (f' (did you mean "{near[0]}"?)' if near else ""))
        texts = [str(one) for one in (value if isinstance(value, list) else [value])]
        if name in _PLACES.get(question, ("trace",)):
            places[name] = texts
        elif isinstance(value, bool):
            options += ["--" + name.replace("_", "-")] * value
        elif value is not None:
            options += [f"--{name.replace('_', '-')}={text}" for text in texts]
    placed = [text for name in _PLACES.get(question, ("trace",)) for text in places.get(name, ())]
    return [*question.split("_", 1), *options, "--quiet"], ["--", *placed]


def _text(question, settings, form="text"):
    """What the command line prints in a form; asked when it is needed, so that it writes nothing."""
    read_only = {name: value for name, value in _json.loads(settings).items() if name not in ("ledger", "perfetto", "output")}
    options, places = _words(question, read_only)
    return _run(*options, *(["--format=" + form] if form != "text" else []), *places)[0]


def _asserts(remarks):
    found = (_re.fullmatch(r"assert (fails|is undecided): (.*), found (.*)", remark) for remark in remarks)
    return _json.dumps([{"text": one[2], "found": one[3], "verdict": one[1].split()[-1]} for one in found if one])


def _swept(options, places, output, form):
    """The summary of a sweep, or its rows."""
    if any(option.startswith("--shard") for option in options) or not output.endswith(".jsonl"):
        raise Error("shard, output: without the compiled module, output must end in .jsonl and shards are for `foretrace sweep --shard`")
    summary, _ = _run(*options, "--summary=json", f"--output={output}", *places)
    with _io.open(output, encoding="utf-8") as rows:
        return rows.read().partition("\n")[2] if form == "jsonl" else summary  # Below the line on the whole sweep.


def ask(question, settings, forms, files, job, ends_early):
    """The answer in each form (what makes the text instead of the text), the exit code of nothing, and remarks."""
    del ends_early
    asked = {**(_json.loads(job) if job else {}), **_json.loads(settings)}
    options, places = _words(question, {name: value for name, value in asked.items() if (question, name) != ("sweep", "output")})
    options += [f"--{form}={path}" for form, path in files.items()]
    if question == "sweep":
        with _tempfile.TemporaryDirectory() as folder:
            texts = [_swept(options, places, asked.get("output") or _os.path.join(folder, "rows.jsonl"), form) for form in forms[:1]]
        return texts + [texts[0]] * (len(forms) - 1), 0, []
    answer, remarks = _run(*options, *(["--format=json"] if "json" in forms else []), *places)
    given = {"json": answer, "asserts": _asserts(remarks), "text": _functools.partial(_text, question, _json.dumps(asked)),
             "csv": _functools.partial(_text, question, _json.dumps(asked), "csv")}
    return [given[form] for form in forms], 0, remarks


def open(settings):  # Named as in the compiled module.
    """Checks that the job can be read. It is not kept."""
    ask("info", _json.dumps({"trace": _json.loads(settings)["trace"]}), [], {}, None, False)
    return settings


def questions():
    """All questions with their summaries and the schemas of their settings."""
    def settings(schema):
        return {**schema, "properties": {name: one for name, one in schema["properties"].items() if name not in ("form", "limit")}}
    return _json.dumps({name: {"summary": tool["description"], "settings": settings(tool["inputSchema"])} for name, tool in _tools().items()})


def transforms():
    """All transforms, from the schema of scenarios."""
    listed, _ = _run("schema", "scenario")
    summaries = dict(line.split(None, 1) for line in _run("list", "transforms")[0].splitlines() if line[:1].strip() and " " in line)
    rows = []
    for one in _json.loads(listed)["properties"]["transforms"]["items"]["oneOf"]:
        settings = {name: value for name, value in one["properties"].items() if name not in ("use", "$comment")}
        name = one["title"]
        rows.append({"name": name, "summary": summaries.get(name, ""), "assumes": one.get("description", ""),
                     "defaults": {key: value.get("default") for key, value in settings.items()}, "settings": settings})
    return _json.dumps(rows)


def finish_abandoned():
    """Nothing goes on after a call."""


version = _run("--version")[0].split()[-1]
