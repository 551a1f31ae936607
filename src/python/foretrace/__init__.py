"""Foretrace: how long would a training step take if ...?

    import foretrace

    answer = foretrace.predict("job.pt.trace.json.gz", "amp", "prefetch:buffers=3")
    answer["predicted"]["step_time_ns"], answer["speedup"]

Answers are the dictionaries that the command line prints with --format json (`foretrace schema
prediction` describes them): times are integer nanoseconds, sizes bytes. Errors of a scenario are
foretrace.Error, those of a trace foretrace.TraceError; both are ValueErrors with one line of text.
"""

import contextlib as _contextlib
import json as _json
import os as _os
import tempfile as _tempfile

from . import _foretrace
from ._foretrace import Error, TraceError

__version__ = _foretrace.version
__all__ = ["Error", "TraceError", "advise", "bless", "check", "dataframe", "diff", "info", "predict", "sweep", "transforms", "vary",
           "verify"]


def _asked(trace, steps, scenario, machine, memory):
    asked = _foretrace.Asked()
    asked.trace = _os.fspath(trace) if trace is not None else ""
    asked.machine = machine or ""
    if memory:
        asked.memory_json = _json.dumps(memory)
    if isinstance(scenario, (str, _os.PathLike)):
        asked.scenario_file = _os.fspath(scenario)
    elif scenario is not None:
        asked.scenario_json = _json.dumps(scenario)
    given = list(steps)
    if any(isinstance(step, dict) for step in given):
        if scenario is not None or any(isinstance(step, str) for step in given):
            raise Error("steps as dictionaries: give all steps so, and no scenario beside them")
        asked.scenario_json = _json.dumps({"version": 1, "transforms": given})
        given = []
    asked.steps = given
    return asked


def _how(cache=True, strict=False, html=None, perfetto=None, ledger=None, execution_trace=None, max_unpacked=0, steps="", window=""):
    how = _foretrace.How()
    how.cache, how.strict, how.max_unpacked = cache, strict, max_unpacked
    how.steps, how.window = str(steps), window
    for name, path in (("html", html), ("perfetto", perfetto), ("ledger", ledger), ("execution_trace", execution_trace)):
        setattr(how, name, _os.fspath(path) if path is not None else "")
    return how


@_contextlib.contextmanager
def _as_file(content, name):
    """The path of a JSON file with it: what is a path already is its own."""
    if not isinstance(content, dict):
        yield _os.fspath(content)
        return
    with _tempfile.TemporaryDirectory() as folder:
        path = _os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            _json.dump(content, file)
        yield path


def predict(trace, *steps, scenario=None, machine=None, memory=None, **how):
    """What becomes of the step time and the memory of the job in `trace`, as a dictionary.

    steps      "amp", "loader:workers=4", or {"use": "loader", "workers": 4}; applied in order
    scenario   the path of a scenario file, or its content as a dictionary
    machine    name or file of a device to predict for
    memory     {"limit": "16GB", ...}: the allocator of the predicted job
    how        cache, strict, html, perfetto, ledger, execution_trace, max_unpacked (in bytes), steps, window: as the options of the same names
    """
    return _json.loads(_foretrace.predict(_asked(trace, steps, scenario, machine, memory), _how(**how)))


def vary(trace, *steps, setting, values, until="", scenario=None, machine=None, memory=None, **how):
    """One setting, many values: vary(trace, "loader:workers=1", setting="loader.workers", values="1..16").

    values     "1,2,4", "0..16", "0..1/20", or a list
    until      an assertion such as "peak_reserved <= 16GB": ranges are searched for where it ceases to hold
    """
    if not isinstance(values, str):
        values = ",".join(str(value) for value in values)
    asked = _asked(trace, steps, scenario, machine, memory)
    return _json.loads(_foretrace.vary(asked, _how(**how), setting, values, until))


def sweep(scenario, trace=None, intervals=False, memory=True, jobs=0, cache=True, max_unpacked=0):
    """The answers to the many questions of a scenario with "sweep" or "matrix", as a list of dictionaries in their order.

    scenario   the path of a scenario file, or its content as a dictionary
    intervals  also how far each answer may be off, which takes its time
    memory     also peaks of memory, which take their time where the trace knows them
    jobs       threads; 0: one for each core
    """
    asked = _asked(trace, (), scenario, None, None)
    return [_json.loads(row) for row in _foretrace.sweep(asked, _how(cache=cache, max_unpacked=max_unpacked), intervals, memory, jobs)]


def advise(trace, until="", vary="", top=5, cache=True, max_unpacked=0):
    """What bounds the job, what would help by how much, and, with `until` such as "step_time <= 100ms", how much faster its
    parts would have to be."""
    return _json.loads(_foretrace.advise(_os.fspath(trace), _how(cache=cache, max_unpacked=max_unpacked), until, vary, top))


def diff(before, after, cache=True, max_unpacked=0):
    """What changed between two recordings of a job, and what each change did to the step time."""
    return _json.loads(_foretrace.diff(_os.fspath(before), _os.fspath(after), _how(cache=cache, max_unpacked=max_unpacked)))


def verify(prediction, measured, trace=None, ledger=None, cache=True, max_unpacked=0):
    """A prediction, as a dictionary or the path of its JSON file, against the trace that was measured after the change; `ledger`
    names a file to which the outcome is added."""
    how, trace = _how(cache=cache, max_unpacked=max_unpacked, ledger=ledger), _os.fspath(trace) if trace is not None else ""
    with _as_file(prediction, "prediction.json") as path:
        return _json.loads(_foretrace.verify(path, _os.fspath(measured), how, trace))


def bless(trace, *steps, scenario=None, machine=None, memory=None, cache=True, max_unpacked=0):
    """A baseline for check(), as a dictionary; `foretrace check --bless` writes one to a file, with limits of your own."""
    return _json.loads(_foretrace.bless(_asked(trace, steps, scenario, machine, memory), _how(cache=cache, max_unpacked=max_unpacked)))


def check(trace, *steps, baseline, limits=(), structure_only=False, scenario=None, machine=None, memory=None, cache=True, max_unpacked=0):
    """A job, or what becomes of it after `steps`, held against a baseline: its figures, which of them are worse, and why.

    baseline   as a dictionary of bless(), or the path of its JSON file
    limits     "step_time:5%", "syncs:+0" ...: in place of those of the baseline
    """
    asked, how = _asked(trace, steps, scenario, machine, memory), _how(cache=cache, max_unpacked=max_unpacked)
    with _as_file(baseline, "baseline.json") as path:
        return _json.loads(_foretrace.check(asked, how, path, list(limits), structure_only))


def transforms():
    """All that can be changed: a list of dictionaries with name, summary, assumes, defaults, settings."""
    return _json.loads(_foretrace.transforms())


def info(trace, cache=True, max_unpacked=0):
    """What each trace in a file or folder holds, as a list of dictionaries."""
    return _json.loads(_foretrace.info(_os.fspath(trace), _how(cache=cache, max_unpacked=max_unpacked)))


def _flat(row, prefix=""):
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def dataframe(answers):
    """A pandas.DataFrame of the points of vary(), of the rows of a sweep, or of a list of predictions; what is
    nested becomes columns such as "settings.factor"."""
    import pandas

    rows = answers["points"] if isinstance(answers, dict) and "points" in answers else answers
    if isinstance(rows, dict):
        rows = [rows]
    return pandas.DataFrame([dict(_flat(row)) for row in rows])
