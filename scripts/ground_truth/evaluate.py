"""Predictions for the cases of a ground truth, next to the measurements."""

import collections
import json
import pathlib
import statistics
import subprocess

from ground_truth import results


def predict(foretrace, trace, steps):
    """Foretrace's answer as JSON, or a text with the reason why there is none."""
    command = [str(foretrace), "predict", str(trace), "--format", "json", "--no-cache", "--quiet"]
    for step in steps:
        command += ["--with", step]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return "no answer within 300 s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"exit code {done.returncode}"
    return json.loads(done.stdout)


def peak_error(case, predicted):
    """Of the memory that the caching allocator hands out on the first device; None if either is not known."""
    measured = (case["after"].get("memory") or {}).get("peak_allocated_bytes")
    found = [peak["peak_allocated_bytes"] for peak in predicted["memory"] if peak["device"] == 0]
    return found[0] / measured - 1 if measured and found else None


def row_of(case, source, answer):
    before, after = case["before"]["step_time_ns"], case["after"]["step_time_ns"]
    row = {"id": case["id"], "change": case["change"], "source": source, "before_ns": before, "measured_ns": after,
           "noise": max(case[name]["noise"] for name in ("before", "after"))}
    if isinstance(answer, str):
        return {**row, "message": answer}
    predicted, baseline = answer["predicted"], answer["baseline"]["step_time_ns"]
    unprofiled = answer["unprofiled"]
    return {**row, "baseline_ns": baseline, "predicted_ns": predicted["step_time_ns"],
            "baseline_error": baseline / before - 1, "error": predicted["step_time_ns"] / after - 1,
            # The measurements had no profiler, which slows a program down that its host bounds.
            "unprofiled_error": unprofiled["predicted_step_time_ns"] / after - 1 if unprofiled else None,
            "peak_error": peak_error(case, predicted), "grade": answer["trust"]["grade"],
            "speedup_error": (predicted["step_time_ns"] / baseline) / (after / before) - 1,
            "covered": predicted["lower_ns"] <= after <= predicted["upper_ns"]}


def rows(path, foretrace):
    kept = results.read(path)
    found = []
    for case in kept["cases"]:
        if case["status"] != "done" or case["predict"] is None:
            continue
        for source in ("kineto", "ftrace"):
            trace = case["before"]["traces"].get(source)
            if trace is not None:
                answer = predict(foretrace, pathlib.Path(path).parent / trace["path"], case["predict"])
                found.append(row_of(case, source, answer))
    return found


def best_error(row):
    """The error of the step time without the profiler's work, where the answer has one."""
    return row["error"] if row["unprofiled_error"] is None else row["unprofiled_error"]


def classes(found):
    """Median and worst error of each change and source."""
    groups = collections.defaultdict(list)
    for row in found:
        if "error" in row:
            groups[row["change"], row["source"]].append(row)
    return [{"change": change, "source": source, "cases": len(group),
             "median_error": statistics.median(abs(row["error"]) for row in group),
             "worst_error": max((row["error"] for row in group), key=abs),
             "median_best_error": statistics.median(abs(best_error(row)) for row in group),
             "median_speedup_error": statistics.median(abs(row["speedup_error"]) for row in group),
             "worst_speedup_error": max((row["speedup_error"] for row in group), key=abs),
             "covered": sum(row["covered"] for row in group)}
            for (change, source), group in sorted(groups.items())]


def share(value):
    return "" if value is None else f"{value:+.1%}"


def ms(nanoseconds):
    return f"{nanoseconds / 1e6:.2f}"


def text(found, dry_run=False):
    lines = ["These times are made up (--dry-run): the errors mean nothing.", ""] if dry_run else []
    lines += [f"{'case':32} {'trace':7} {'before':>9} {'replayed':>9} {'measured':>9} {'predicted':>9} {'error':>8} "
              f"{'unprofiled':>10} {'speed-up':>8} {'noise':>6} {'peak':>7}  grade"]
    for row in found:
        line = f"{row['id']:32} {row['source']:7} {ms(row['before_ns']):>9} "
        if "message" in row:
            lines.append(line + row["message"])
            continue
        lines.append(line + f"{ms(row['baseline_ns']):>9} {ms(row['measured_ns']):>9} {ms(row['predicted_ns']):>9} "
                     f"{row['error']:>+8.1%} {share(row['unprofiled_error']):>10} {row['speedup_error']:>+8.1%} "
                     f"{row['noise']:>6.1%} {share(row['peak_error']):>7}  {row['grade']}"
                     + ("" if row["covered"] else "  outside the interval"))
    lines += ["", "Step times in ms. error: predicted against measured, which is without a profiler; unprofiled: the same for",
              "the prediction without the profiler's own work, where it is known; speed-up: for the ratio to the baseline;",
              "noise: how far the rounds of a measurement lie apart; peak: of memory, against torch.cuda.memory_stats.", ""]
    for heads in (("change", "trace", "cases", "median", "worst", "median", "median of", "worst of", "in the"),
                  ("", "", "", "error", "error", "unprofiled", "speed-up", "speed-up", "interval")):
        lines.append("{:20} {:7} {:>5} {:>8} {:>8} {:>10} {:>10} {:>9} {:>9}".format(*heads))
    for group in classes(found):
        covered = f"{group['covered']}/{group['cases']}"
        lines.append(f"{group['change']:20} {group['source']:7} {group['cases']:>5} {group['median_error']:>8.1%} "
                     f"{group['worst_error']:>+8.1%} {group['median_best_error']:>10.1%} {group['median_speedup_error']:>10.1%} "
                     f"{group['worst_speedup_error']:>+9.1%} {covered:>9}")
    return "\n".join(lines)
