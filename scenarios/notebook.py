# A notebook as a script: editors run it cell by cell, Python all at once. It needs the Python module (see
# docs/python-cpp-agents.md) and, for the tables, pandas.
#
#     PYTHONPATH=build/python python3 scenarios/notebook.py

# %% One question.
import pathlib

import foretrace

traces = pathlib.Path(__file__).resolve().parent.parent / "traces"
job = traces / "gpt-a100-gpu-bound.pt.trace.json.gz"

answer = foretrace.predict(job, "amp")
predicted = answer["predicted"]
print(f"{answer['baseline']['step_time_ns'] / 1e6:.1f} ms -> {predicted['step_time_ns'] / 1e6:.1f} ms a step, "
      f"between {predicted['lower_ns'] / 1e6:.1f} and {predicted['upper_ns'] / 1e6:.1f} ms")

# %% Where the time of a step goes, before and after.
for part, before in answer["baseline"]["breakdown_ns"].items():
    print(f"{part:14} {before / 1e6:8.2f} ms {predicted['breakdown_ns'][part] / 1e6:8.2f} ms")

# %% Several changes, applied one after the other.
for steps in (["amp"], ["amp", "recompute"], ["amp", "recompute", "batch_size:factor=2"]):
    answer = foretrace.predict(job, *steps)
    peak = answer["predicted"]["memory"][0]["peak_allocated_bytes"]
    print(f"{' + '.join(steps):42} {answer['predicted']['step_time_ns'] / 1e6:7.1f} ms {peak / 1e9:6.2f} GB")

# %% One setting, many values: time against memory.
curve = foretrace.vary(job, "recompute:policy=budget", setting="recompute.share", values="0..1/10")
for point in curve["points"]:
    front = "  best of its size" if point["on_front"] else ""
    print(f"{point['value']:>4} {point['step_time_ns'] / 1e6:7.1f} ms {point['peak_allocated_bytes'] / 1e9:6.2f} GB{front}")

# %% The same answers as a table.
try:
    print(foretrace.dataframe(curve)[["value", "step_time_ns", "peak_allocated_bytes"]].to_string(index=False))
except ImportError:
    print("for tables: apt-get install python3-pandas")

# %% How many loader processes does a job need that prepares its input itself?
curve = foretrace.vary(traces / "input-bound-v100.pt.trace.json.gz", "loader", setting="loader.workers", values="1..32/8",
                       until="step_time <= 100ms")
print(curve["answer_text"])

# %% Hundreds of questions: every combination of two speeds, and which of them decides the step time.
scenario = {
    "version": 1,
    "trace": str(traces / "gpt-a100-launch-bound.pt.trace.json.gz"),
    "transforms": [{"use": "scale", "where": {"kind": "host"}}, {"use": "scale", "where": {"kind": "kernel"}}],
    "sweep": {"transforms[0].factor": "0.1..1/19", "transforms[1].factor": "0.1..1/19"},
}
rows = foretrace.sweep(scenario)
fastest = min(rows, key=lambda row: row["step_time_ns"])
print(f"{len(rows)} answers; fastest: {fastest['settings']}, {fastest['step_time_ns'] / 1e6:.2f} ms a step")

# %% What would help?
for line in foretrace.advise(job)["verdict"].values():
    print(line)
