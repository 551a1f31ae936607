#!/usr/bin/env python3
"""Predicts recorded before/after pairs from the recording before alone, and prints the errors.

    scripts/accuracy.py FOLDER [--markdown]

FOLDER holds the public recordings that the pairs name. What a pair's recording after says is used
for nothing but the comparison. The program is $FORETRACE, or build/foretrace."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("FORETRACE", str(ROOT / "build" / "foretrace"))

# What changed, before, after, how it is asked, and what is compared.
PAIRS = [
    ("DataLoader workers 0 -> 4, ResNet-50, June 2021 (fitted)", "rn50-dl-v100/w0_runA.pt.trace.json.gz",
     "rn50-dl-v100/w4_runA.pt.trace.json.gz", ["loader:workers=4"], "step"),
    ("the same, second repeat (fitted)", "rn50-dl-v100/w0_runB.pt.trace.json.gz", "rn50-dl-v100/w4_runB.pt.trace.json.gz",
     ["loader:workers=4"], "step"),
    ("DataLoader workers 0 -> 4, January 2021 (fitted)", "rn50-dl-2021jan/w0.pt.trace.json.gz", "rn50-dl-2021jan/w4.pt.trace.json.gz",
     ["loader:workers=4"], "step"),
    ("copies pageable -> pinned, both ways, A100", "pinned-copy/pageable_sync.json", "pinned-copy/pinned_overlap.json", ["pin_memory"], "step"),
    ("copies pageable non_blocking -> pinned", "pinned-copy/pageable_nonblocking.json", "pinned-copy/pinned_overlap.json", ["pin_memory"], "step"),
    ("batch 4 -> 32, small LM, RTX 3060", "tinylm-ladder/trace_05.json", "tinylm-ladder/trace_06.json", ["batch_size:factor=8"], "step"),
    ("batch 32 -> 4, the same", "tinylm-ladder/trace_06.json", "tinylm-ladder/trace_05.json", ["batch_size:factor=0.125"], "step"),
    ("CUDA graphs, small LM, RTX 3060", "tinylm-ladder/trace_04.json", "tinylm-ladder/trace_05.json", ["cuda_graphs"], "step"),
    ("batch 2 -> 64, ParticleTransformer forward, A100", "ptf-batch/single_epoch_forward_pass_batch_size_2.json",
     "ptf-batch/single_epoch_forward_pass_batch_size_64.json", ["batch_size:factor=32"], "step"),
    ("the same, peak allocated", "ptf-batch/single_epoch_forward_pass_batch_size_2.json",
     "ptf-batch/single_epoch_forward_pass_batch_size_64.json", ["batch_size:factor=32"], "allocated"),
    ("batch 64 -> 2, peak allocated", "ptf-batch/single_epoch_forward_pass_batch_size_64.json",
     "ptf-batch/single_epoch_forward_pass_batch_size_2.json", ["batch_size:factor=0.03125"], "allocated"),
    ("fp32 -> bf16 autocast, LM, peak allocated", "snap-lm-seqlen/forward_and_backward_memory_snapshot_200.pickle",
     "snap-lm-seqlen/forward_and_backward_memory_snapshot_200_mixed_precision.pickle", ["amp"], "allocated"),
    ("the same, peak reserved", "snap-lm-seqlen/forward_and_backward_memory_snapshot_200.pickle",
     "snap-lm-seqlen/forward_and_backward_memory_snapshot_200_mixed_precision.pickle", ["amp"], "reserved"),
    ("sequence 100 -> 200, LM, peak allocated", "snap-lm-seqlen/forward_and_backward_memory_snapshot_100.pickle",
     "snap-lm-seqlen/forward_and_backward_memory_snapshot_200.pickle", ["resize:where.use=activation,factor=2", "resize:where.use=temporary,factor=2"], "allocated"),
    ("torch.compile, 2.7B LM forward, A100", "nsys-27b-eager-graph/result_2_7B_clean.sqlite",
     "nsys-27b-eager-graph/result_2_7B_compile_ro.sqlite", ["torch_compile:mode=reduce-overhead"], "step"),
    ("H100 -> MI300X, Qwen 0.5B forward", "dev-pair-h100-mi300/qwen05b_h100.json.gz", "dev-pair-h100-mi300/qwen05b_mi300.json.gz",
     ["faster_device:to=mi300x"], "step"),
    ("H100 -> MI300X, BERT-small forward", "dev-pair-h100-mi300/bertsmall_h100.json.gz",
     "dev-pair-h100-mi300/bertsmall_mi300.json.gz", ["faster_device:to=mi300x"], "step"),
]


def predicted(trace, steps):
    """The prediction as JSON, or the reason why there is none."""
    command = [PROGRAM, "predict", str(trace), "--format", "json", "--quiet", "--no-cache"]
    for step in steps:
        command += ["--with", step]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return None, answer.stderr.strip()
    return json.loads(answer.stdout), ""


def recording(folder, name):
    """Its path, packed or not; None if it is not there."""
    for path in (folder / name, folder / (name + ".gz")):
        if path.exists():
            return path
    return None


def figure(side, what):
    if what == "step":
        return side["step_time_ns"]
    peaks = [peak for peak in side["memory"] if peak["device"] >= 0]
    if what == "allocated":
        return max(peak["peak_allocated_bytes"] for peak in peaks)
    recorded = [peak.get("recorded_reserved_bytes") for peak in peaks]
    return max(recorded[i] or peak["peak_reserved_bytes"] for i, peak in enumerate(peaks))


def in_words(value, what):
    return f"{value / 1e6:.4g} ms" if what == "step" else f"{value / 1e6:.4g} MB"


def compare(folder, pair):
    title, before, after, steps, what = pair
    before_path, after_path = recording(folder, before), recording(folder, after)
    if before_path is None or after_path is None:
        return None
    before_answer, problem = predicted(before_path, steps)
    after_answer, other = predicted(after_path, [])
    if before_answer is None or after_answer is None:
        return [title, "; ".join(steps), "", "", "", problem or other], None
    recorded = after_answer["measured"] if what == "step" else after_answer["baseline"]
    now = figure(before_answer["baseline"], what)
    guess = figure(before_answer["predicted"], what)
    truth = figure(recorded, what)
    error = guess / truth - 1
    row = [title, "; ".join(steps), in_words(now, what), in_words(guess, what), in_words(truth, what), f"{100 * error:+.1f} %"]
    return row, error


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    errors = []
    rows = [["what changed", "asked as", "before", "predicted", "recorded", "error"]]
    for pair in PAIRS:
        result = compare(options.folder, pair)
        if result is None:
            continue
        rows.append(result[0])
        if result[1] is not None:
            errors.append(abs(result[1]))
    if not errors:
        sys.exit("accuracy: found none of the recordings in " + str(options.folder))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    for number, row in enumerate(rows):
        if options.markdown:
            print("| " + " | ".join(f"`{c}`" if i == 1 and number else c for i, c in enumerate(row)) + " |")
            if number == 0:
                print("|---|---|--:|--:|--:|--:|")
        else:
            print("  ".join(cell.ljust(widths[i]) if i < 2 else cell.rjust(widths[i]) for i, cell in enumerate(row)))
    print(f"\n{len(errors)} pairs: median error {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %")


if __name__ == "__main__":
    main()
