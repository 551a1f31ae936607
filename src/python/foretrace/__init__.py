"""Foretrace: how long would a training step take if ...?

    import foretrace

    answer = foretrace.predict("job.pt.trace.json.gz", "amp", "prefetch:buffers=3")
    answer["predicted"]["step_time_ns"], answer["speedup"]

Answers are the dictionaries that the command line prints with --format json (`foretrace schema
prediction` describes them): times are integer nanoseconds, sizes bytes. Errors of a scenario are
foretrace.Error, those of a trace foretrace.TraceError; both are ValueErrors with one line of text.
"""

import json as _json
import os as _os

from . import _foretrace
from ._foretrace import Error, TraceError

__version__ = _foretrace.version
__all__ = ["Error", "TraceError", "dataframe", "info", "predict", "transforms", "vary"]



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


def _how(cache=True, strict=False, html=None, perfetto=None, ledger=None, execution_trace=None):
    how = _foretrace.How()
    how.cache, how.strict = cache, strict
    for name, path in (("html", html), ("perfetto", perfetto), ("ledger", ledger), ("execution_trace", execution_trace)):
        setattr(how, name, _os.fspath(path) if path is not None else "")
    return how


def predict(trace, *steps, scenario=None, machine=None, memory=None, **how):
    """What becomes of the step time and the memory of the job in `trace`, as a dictionary.

    steps      "amp", "loader:workers=4", or {"use": "loader", "workers": 4}; applied in order
    scenario   the path of a scenario file, or its content as a dictionary
    machine    name or file of a device to predict for
    memory     {"limit": "16GB", ...}: the allocator of the predicted job
    how        cache, strict, html, perfetto, ledger, execution_trace: as the options of the same names
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


def transforms():
    """All that can be changed: a list of dictionaries with name, summary, assumes, defaults, settings."""
    return _json.loads(_foretrace.transforms())


def info(trace, cache=True):
    """What each trace in a file or folder holds, as a list of dictionaries."""
    return _json.loads(_foretrace.info(_os.fspath(trace), _how(cache=cache)))


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
