"""Foretrace: how long would a training step take if ...?

    import foretrace

    answer = foretrace.predict("job.pt.trace.json.gz", "amp", "prefetch:buffers=3")
    answer["predicted"]["step_time_ns"], answer["speedup"]

Answers are the dictionaries that the command line prints with --format json (`foretrace schema
prediction` describes them): times are integer nanoseconds, sizes bytes. A notebook shows those of
predict(), vary(), advise() and diff() as small tables and figures, and plot() draws them. A wrong
scenario or argument raises foretrace.Error, and a trace that cannot be used raises
foretrace.TraceError; both are ValueErrors with one line of text.

Ctrl-C ends every call at once. The calculation goes on in the background until it is done, and
Python waits for it when it exits; another Ctrl-C ends that wait.
"""

import atexit as _atexit
import contextlib as _contextlib
import csv as _csv
import io as _io
import json as _json
import os as _os
import re as _re
import shutil as _shutil
import tempfile as _tempfile

try:
    from ._foretrace import Error, TraceError
    from . import _foretrace
except ModuleNotFoundError:  # The module was not compiled: the program answers.
    from ._program import Error, TraceError
    from . import _program as _foretrace
from .answers import Answer
from .profiling import LightningCallback, TrainerCallback, profile

__version__ = _foretrace.version
__all__ = ["Answer", "Error", "Job", "LightningCallback", "TraceError", "TrainerCallback", "advise", "ask", "bless", "check", "dataframe", "diff", "doctor",
           "info", "input", "job", "memory", "predict", "profile", "questions", "sweep", "transforms", "validate", "vary", "verify"]

_atexit.register(_foretrace.finish_abandoned)


def _path(value, name, default=""):
    if value is None:
        return default
    try:
        path = _os.fspath(value)
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise Error(f"{name}: must be a path, got {value!r}")
    return path


def _text(value, name):
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Error(f"{name}: must be a string, got {value!r}")
    return value


def _flag(value, name):
    if not isinstance(value, bool):
        raise Error(f"{name}: must be True or False, got {value!r}")
    return value


def _count(value, name, least=0, most=2**31 - 1):
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Error(f"{name}: must be a whole number from {least} to {most}, got {value!r}")
    return value


def _number(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e16:
        raise Error(f"{name}: must be a number, at least 0, got {value!r}")
    return float(value)


def _texts(values, name):
    try:
        texts = [] if isinstance(values, str) else list(values)
    except TypeError:
        texts = None
    if texts is None or isinstance(values, str) or not all(isinstance(text, str) for text in texts):
        raise Error(f"{name}: must be a list of strings, got {values!r}")
    return texts


def _json_text(value, name):
    if not isinstance(value, dict):
        raise Error(f"{name}: must be a dictionary, got {value!r}")
    try:
        return _json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Error(f"{name}: {error}") from None


def _changes(trace, steps, scenario, machine, memory, samples_per_step=0, tokens_per_step=0):
    """Returns the settings of a question about a job after changes."""
    settings = {"trace": _path(trace, "trace"), "machine": _path(machine, "machine"), "samples_per_step": _number(samples_per_step, "samples_per_step"),
                "tokens_per_step": _number(tokens_per_step, "tokens_per_step")}
    if memory:
        settings["allocator"] = _json_text(memory, "memory")
    if isinstance(scenario, (str, _os.PathLike)):
        settings["scenario"] = _path(scenario, "scenario")
    elif scenario is not None:
        settings["scenario"] = _json_text(scenario, "scenario")
    steps = list(steps)
    for step in steps:
        if not isinstance(step, (str, dict)):
            raise Error(f'steps: must be texts such as "amp" or dictionaries such as {{"use": "amp"}}, got {step!r}')
    if any(isinstance(step, dict) for step in steps):
        if scenario is not None or any(isinstance(step, str) for step in steps):
            raise Error("steps as dictionaries: give all steps so, and leave out scenario")
        settings["scenario"] = _json_text({"version": 1, "transforms": steps}, "steps")
        steps = []
    settings["with"] = steps
    return settings


def _how(cache=True, strict=False, perfetto=None, ledger=None, execution_trace=None, max_unpacked=0, steps="", window="", ranks=0, exact=False):
    """Returns the settings of how a recording is read and a question answered."""
    settings = {"no_cache": cache is False, "strict": _flag(strict, "strict"), "exact": _flag(exact, "exact"),
                "ranks": _count(ranks, "ranks", most=2**20), "steps": str(steps), "window": _text(window, "window")}
    if not isinstance(cache, bool):
        settings["cache_dir"] = _path(cache, "cache")
    if _count(max_unpacked, "max_unpacked", most=2**63 - 1):
        settings["max_unpacked"] = f"{max_unpacked}B"
    for name, path in (("perfetto", perfetto), ("ledger", ledger), ("execution_trace", execution_trace)):
        settings[name] = _path(path, name)
    return settings


_HOW = frozenset(_how.__code__.co_varnames[:_how.__code__.co_argcount]) | {"html"}


def _assigned(value, name=""):
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in _assigned(inner, f"{name}.{key}" if name else key)]
    return [f"{name}={str(value).lower() if isinstance(value, bool) else value}"]


def _named_steps(arguments):
    """Takes the steps out of keyword arguments: amp=True, num_workers=4, loader={"workers": 4}; a transform that is False is none."""
    steps = []
    for name in [name for name in arguments if name not in _HOW]:
        value = arguments.pop(name)
        if value is False and name not in {transform["name"] for transform in transforms()}:
            raise TypeError(f"there is no argument and no transform {name!r}")
        if value is True:
            steps.append(name)
        elif value is not False:
            steps.append(f"{name}:{','.join(_assigned(value))}" if isinstance(value, dict) else f"{name}={value}")
    return steps


def _call(function, *arguments):
    """Calls the program, whose messages name its options; here these are arguments."""
    try:
        return function(*arguments)
    except Error as error:
        parts = str(error).split("`")  # Commands between backquotes stay.
        for rule, to in ((r"--with (?=\S+:)", ""), (r"--with ([^\s,;]+)", r'the step "\1"'), (r"--([a-z][a-z-]*)", lambda option: option[1].replace("-", "_"))):
            parts[::2] = [_re.sub(rule, to, part) for part in parts[::2]]
        raise type(error)("`".join(parts)) from None


def _ask(question, settings, forms=("json",), files=None, job=None, ends_early=False):
    """Returns the answer in each form. Settings that are empty are left out, so that the question's own defaults hold."""
    kept = ("device", "step", "cached_share")  # Here 0 is not the default.
    given = {name: value for name, value in settings.items() if value or name in kept and value is not None}
    files = {form: path for form, path in (files or {}).items() if path}
    return _call(_foretrace.ask, question, _json.dumps(given, allow_nan=False), list(forms), files, job, ends_early)[0]


def _read(answer, text):
    answer = _json.loads(answer)
    return Answer(answer, text) if isinstance(answer, dict) else answer


def _answer(question, settings, **more):
    return _read(*_ask(question, settings, ("json", "text"), **more))


def ask(question, job=None, **settings):
    """Asks any question, with the settings that the command line has as options: ask("scale", trace="job.json", gpus="1..64").
    Returns the dictionary (or list) that the command line prints with --format json; see questions(). `job` is an open job()."""
    settings = {name: _os.fspath(value) if isinstance(value, _os.PathLike) else value for name, value in settings.items()}
    try:
        text = _json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Error(f"settings: {error}") from None
    return _read(*_call(_foretrace.ask, question, text, ["json", "text"], {}, job and job._open, False)[0])


def questions():
    """Lists all questions with their summaries and the JSON Schemas of their settings."""
    return _json.loads(_foretrace.questions())


@_contextlib.contextmanager
def _as_file(content, name):
    """Yields the path of a JSON file with `content`, which is a dictionary or already a path."""
    if not isinstance(content, dict):
        yield _path(content, name)
        return
    with _tempfile.TemporaryDirectory() as folder:
        path = _os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            _json.dump(content, file)
        yield path


def predict(trace, *steps, scenario=None, machine=None, memory=None, samples_per_step=0, tokens_per_step=0, **how):
    """Predicts the step time and the memory of the job in `trace` after changes. Returns a dictionary.

    steps      "amp", "num_workers=4", "amp,loader:workers=4", or {"use": "loader", "workers": 4}; applied in order
    scenario   the path of a scenario file, or its content as a dictionary
    machine    name or file of a device to predict for
    memory     {"limit": "16GB", ...}: the allocator of the predicted job
    samples_per_step, tokens_per_step    of the recorded job; if given, the answer contains rates
    how        more steps by name: amp=True, num_workers=4, loader={"workers": 4}; and cache (True, False, or the folder for cached copies of traces), strict, html, perfetto, ledger, execution_trace,
               max_unpacked (in bytes), steps, window, ranks, exact: like the options of `foretrace predict` with these names
    """
    steps += tuple(_named_steps(how))
    return _predict(None, _changes(trace, steps, scenario, machine, memory, samples_per_step, tokens_per_step), **how)


def _predict(job, settings, html=None, **how):
    files = {"html": _path(html, "html")}
    answer, asserts, text, csv = _ask("predict", {**settings, **_how(**how)}, ("json", "asserts", "text", "csv"), files, job)
    return Answer({**_json.loads(answer), "asserts_that_do_not_hold": _json.loads(asserts)}, text, csv)


def vary(trace, *steps, setting=None, values=None, until="", scenario=None, machine=None, memory=None, **how):
    """Predicts for many values of one setting: vary(trace, "loader", "loader.workers", "1..16"), or with setting= and values=.

    values     "1,2,4", "0..16", "0..1/20", or a list
    until      an assertion such as "peak_reserved <= 16GB": finds the last value of a range for which it holds
    """
    steps, setting, values = _varied(steps, setting, values)
    return _vary(None, _changes(trace, steps, scenario, machine, memory), setting, values, until, **how)


def _varied(steps, setting, values):
    if setting is None and values is None and len(steps) > 1:
        *steps, setting, values = steps
    if setting is None or values is None:
        raise Error('setting, values: must be given, as in vary(trace, "loader", "loader.workers", "1..16")')
    return steps, setting, values


def _vary(job, settings, setting, values, until, **how):
    if not isinstance(values, str):
        try:
            values = ",".join(str(value) for value in values)
        except TypeError:
            raise Error(f"values: must be a string or a list, got {values!r}") from None
    varied = {"vary": f"{_text(setting, 'setting')}={values}", "until": _text(until, "until")}
    return _answer("predict", {**settings, **varied, **_how(**how)}, job=job)


class Job:
    """A job that stays in memory to answer many questions; see job()."""

    def __init__(self, trace, ranks=0, **reading):
        self.trace = _path(trace, "trace")
        how = {name: value for name, value in _how(ranks=ranks, **reading).items() if value}
        self._open = _call(_foretrace.open, _json.dumps({"trace": self.trace, **how}))

    def __repr__(self):
        return f"foretrace.job({self.trace!r})"

    def predict(self, *steps, scenario=None, machine=None, memory=None, samples_per_step=0, tokens_per_step=0, **how):
        """Does what foretrace.predict() does for this job; `how` may have strict, html, perfetto, ledger and exact."""
        steps += tuple(_named_steps(how))
        return _predict(self._open, _changes(self.trace, steps, scenario, machine, memory, samples_per_step, tokens_per_step), **how)

    def vary(self, *steps, setting=None, values=None, until="", scenario=None, machine=None, memory=None, **how):
        """Does what foretrace.vary() does for this job."""
        steps, setting, values = _varied(steps, setting, values)
        return _vary(self._open, _changes(self.trace, steps, scenario, machine, memory), setting, values, until, **how)

    def advise(self, **settings):
        """Does what foretrace.advise() does for this job, with the settings of ask("advise")."""
        return ask("advise", self, trace=self.trace, **settings)


def job(trace, ranks=0, **reading):
    """Reads the job in `trace` once and keeps it in memory: job("run/").predict("amp") then takes only as long as the replay.

    ranks     ranks of the whole job, as in predict()
    reading   cache, execution_trace, max_unpacked, steps, window
    """
    return Job(trace, ranks, **reading)


def sweep(scenario, trace=None, intervals=False, memory=True, jobs=0, output=None, shard="", fresh=False, cache=True, max_unpacked=0):
    """Answers all questions of a scenario with "sweep" or "matrix". Returns a list of dictionaries in the order of the questions.

    scenario   the path of a scenario file, or its content as a dictionary
    intervals  also compute the interval of each answer, which takes longer
    memory     also compute memory peaks, which takes longer on traces that record memory
    jobs       number of threads; 0: one for each core
    output     a file (.jsonl or .csv) that gets each answer as soon as it is found; an existing file is continued, unless `fresh`
    shard      answer only part I of N, "I/N", and write it to its own file; "auto": take I and N from Slurm or MPI
    """
    if (shard or fresh) and output is None:
        raise Error("shard, fresh: need output")
    settings = {"scenario": _json_text(scenario, "scenario") if isinstance(scenario, dict) else _path(scenario, "scenario"), "trace": _path(trace, "trace"),
                "intervals": _flag(intervals, "intervals"), "no_memory": not _flag(memory, "memory"), "jobs": _count(jobs, "jobs", most=4096),
                "output": _path(output, "output"), "shard": _text(shard, "shard"), "fresh": _flag(fresh, "fresh")}
    rows, = _ask("sweep", {**settings, **_how(cache=cache, max_unpacked=max_unpacked)}, ("jsonl",), ends_early=True)
    return [_json.loads(row) for row in rows.splitlines()]


def advise(trace, until="", vary="", top=5, network="", cache=True, max_unpacked=0):
    """Finds what limits the job, what would help and by how much. With `until`, such as "step_time <= 100ms", also how much
    faster its parts must be. With `network`, the machine that it communicates on, also tries other bucket sizes, algorithms and
    more GPUs."""
    settings = {"trace": _path(trace, "trace"), "until": _text(until, "until"), "vary": _text(vary, "vary"), "top": _count(top, "top"),
                "network": _text(network, "network")}
    return _answer("advise", {**settings, **_how(cache=cache, max_unpacked=max_unpacked)})


def diff(before, after, cache=True, max_unpacked=0):
    """Finds what changed between two recordings of a job, and what each change did to the step time."""
    settings = {"before": _path(before, "before"), "after": _path(after, "after")}
    return _answer("diff", {**settings, **_how(cache=cache, max_unpacked=max_unpacked)})


def verify(prediction, measured, trace=None, ledger=None, cache=True, max_unpacked=0):
    """Compares a prediction, a dictionary or the path of its JSON file, with the trace recorded after the change. If `ledger`
    names a file, the outcome is added to it."""
    settings = {"measured": _path(measured, "measured"), "trace": _path(trace, "trace"), **_how(cache=cache, max_unpacked=max_unpacked, ledger=ledger)}
    with _as_file(prediction, "prediction.json") as path:
        return _answer("verify", {"prediction": path, **settings})


def bless(trace, *steps, add_to=None, scenario=None, machine=None, memory=None, cache=True, max_unpacked=0):
    """Returns a baseline for check(), as a dictionary; `foretrace check --bless` writes one to a file, with limits of your own.

    trace    a recording, or a list of recordings of the unchanged job; they differ by noise, which check() then allows for
    add_to   a baseline (a dictionary, or the path of its JSON file) whose recordings and limits are kept
    """
    traces = [_path(path, "trace") for path in trace] if isinstance(trace, (list, tuple)) else []
    if isinstance(trace, (list, tuple)) and not traces:
        raise Error("trace: must be a recording, or a list of at least one")
    settings = _changes(traces[0] if traces else trace, steps, scenario, machine, memory)
    settings.update(_how(cache=cache, max_unpacked=max_unpacked), more=traces[1:], bless=True, add=add_to is not None)
    with _tempfile.TemporaryDirectory() as folder:
        baseline = _os.path.join(folder, "baseline.json")
        if add_to is not None:
            with _as_file(add_to, "old.json") as old:
                _shutil.copyfile(old, baseline)
        _ask("check", {**settings, "baseline": baseline}, forms=())
        with open(baseline, encoding="utf-8") as file:
            return _json.load(file)


def check(trace, *steps, baseline, limits=(), structure_only=False, scenario=None, machine=None, memory=None, cache=True, max_unpacked=0):
    """Compares a job, or its prediction after `steps`, with a baseline: its metrics, which of them are worse, and why.

    baseline   as a dictionary of bless(), or the path of its JSON file
    limits     limits such as "step_time:5%" or "syncs:+0", which override those of the baseline
    """
    settings = {**_changes(trace, steps, scenario, machine, memory), **_how(cache=cache, max_unpacked=max_unpacked), "max": _texts(limits, "limits"),
                "structure_only": _flag(structure_only, "structure_only")}
    with _as_file(baseline, "baseline.json") as path:
        return _answer("check", {**settings, "baseline": path})


def transforms():
    """Lists all transforms, as dictionaries with name, summary, assumes, defaults and settings."""
    return _json.loads(_foretrace.transforms())


def info(trace, cache=True, max_unpacked=0):
    """Describes what each trace in a file or folder contains, as a list of dictionaries."""
    answer = _answer("info", {"trace": _path(trace, "trace"), **_how(cache=cache, max_unpacked=max_unpacked)})
    return answer if isinstance(answer, list) else [answer]


def doctor(trace, cache=True, max_unpacked=0):
    """Shows what the trace of each rank lacks, how that affects predictions, and how to record it."""
    return _answer("doctor", {"trace": _path(trace, "trace"), **_how(cache=cache, max_unpacked=max_unpacked)})


def memory(trace, limit=None, device=None, step=None, top=10, host_bandwidth=None, allocator=None, html=None, cache=True, max_unpacked=0):
    """Shows what the memory of a device is used for, and whether `limit` such as "16GB" is enough. `trace` is a trace with memory
    events or a memory snapshot. Returns the dictionary of `foretrace memory --format json`, with "fits".

    device, step    the numbers of the device and step to describe; by default the device with the highest peak, and the whole recording
    host_bandwidth  bandwidth of copies to the host and back: "24GB/s", or a pair for the two directions
    allocator       {"max_split_size": "512MiB", ...}
    """
    settings = dict(allocator or {})
    if limit is not None:
        settings["limit"] = _text(limit, "limit")
    rates = host_bandwidth if isinstance(host_bandwidth, (tuple, list)) else (host_bandwidth,) * 2
    if len(rates) != 2:
        raise Error(f"host_bandwidth: must be one text or two, got {host_bandwidth!r}")
    out, back = (_text(rate, "host_bandwidth") for rate in rates)
    asked = {"trace": _path(trace, "trace"), "allocator": _json_text(settings, "allocator") if settings else "", "top": _count(top, "top", 1),
             "host_bandwidth": f"{out},{back}" if out else "", **_how(cache=cache, max_unpacked=max_unpacked)}
    for name, value, least in (("device", device, -1), ("step", step, 0)):
        if value is not None:
            asked[name] = _count(value, name, least)
    return _answer("memory", asked, files={"html": _path(html, "html")})


def input(trace, synthetic=None, cached=None, samples_per_step=0, workers=0, cached_share=None, cache_policy="page_cache", cache=True, max_unpacked=0):
    """Shows how much of a step waits for loading and copies, and how many loader processes would hide it.

    synthetic, cached  traces of the same job with synthetic batches made on the device, and with all data cached in memory
    samples_per_step   of the recorded job, for rates
    workers            number of loader processes in the recorded job
    cached_share       share of the data that was cached, by `cache_policy`
    """
    if cache_policy not in ("minio", "page_cache", "lru"):
        raise Error(f"cache_policy: must be minio, page_cache or lru, got {cache_policy!r}")
    share = -1.0 if cached_share is None else _number(cached_share, "cached_share")
    if share > 1:
        raise Error(f"cached_share: must be from 0 to 1, got {cached_share!r}")
    settings = {"trace": _path(trace, "trace"), "synthetic": _path(synthetic, "synthetic"), "cached": _path(cached, "cached"),
                "samples_per_step": _number(samples_per_step, "samples_per_step"), "workers": _count(workers, "workers"),
                "cache_policy": cache_policy}
    if cached_share is not None:
        settings["cached_share"] = share
    return _answer("input", {**settings, **_how(cache=cache, max_unpacked=max_unpacked)})


def validate(trace, against=None, cache=True, max_unpacked=0):
    """Tests whether the graph explains the recorded times or merely copies them. Returns a dictionary for each rank, with the
    errors across steps and, in "broken", the relations that should hold for any graph but do not. `against` is another recording
    of the same job, from which the work is taken."""
    settings = {"trace": [_path(trace, "trace")], "against": _path(against, "against")}
    return _answer("validate", {**settings, **_how(cache=cache, max_unpacked=max_unpacked)})


def _flat(row, prefix=""):
    for key, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, "" if key == "settings" else f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _cell(text):
    """A cell of CSV as JSON would have it; None if it is empty."""
    try:
        return _json.loads(text) if text else None
    except ValueError:
        return text


def _rows(answers):
    """The rows of dataframe(), as dictionaries."""
    rows = answers["points"] if isinstance(answers, dict) and "points" in answers else answers
    for row in [rows] if isinstance(rows, dict) else rows:
        if getattr(row, "csv", ""):
            for cells in _csv.DictReader(_io.StringIO(row.csv)):
                yield {name: _cell(text) for name, text in cells.items()}
        else:
            yield {"refused": "", **dict(_flat(row))} if "point" in row else dict(_flat(row))


def dataframe(answers):
    """Returns a pandas.DataFrame of the points of vary(), the rows of a sweep, or a list of predictions. Columns have the names
    that they have with --format csv; the figures of a point, which are one column there, are columns such as
    "figures.prep_stall"."""
    import pandas

    return pandas.DataFrame(list(_rows(answers)))
