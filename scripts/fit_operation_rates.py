#!/usr/bin/env python3
"""Fits src/machine/operation_rates.def to measured times of single operations.

    scripts/fit_operation_rates.py [--data FOLDER] [--pairs FOLDER] [--check | --write]

Every operation takes

    start + max(flops / (share x peak), bytes / (moved x bandwidth), inner x size)

with three numbers for each operation, arithmetic and family of devices, which least absolute errors of the logarithm
choose, and for products a fourth: each of a product's tiles walks along its inner size, however few tiles there are. --check prints how far half of the rows are off when the other half was fitted, and whole devices and families
when they were left out; without it, the table is printed, and written with --write. --data has ops.csv and layers.csv,
times that others have measured; --pairs has recordings of the same jobs on an H100 and an MI300X. The times in
traces/operations are ours.
"""

import argparse
import collections
import csv
import gzip
import json
import math
import pathlib
import random
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = ROOT / "src" / "machine" / "operation_rates.def"
DEVICES = {"a100_sxm": "a100-sxm4-80gb", "b200_sxm": "b200", "b300_sxm": "b300", "gb200": "gb200",
           "h100_sxm": "h100-sxm5-80gb", "h200_sxm": "h200-sxm5-141gb", "l40s": "l40s",
           "rtx_pro_6000_server": "rtx-pro-6000", "b60": "arc-pro-b60", "A100": "a100-sxm4-80gb",
           "A40": "a40", "A6000": "rtx-a6000", "RTX3090": "rtx-3090", "H100": "h100-sxm5-80gb"}
# Arithmetic by the types of the data: its name in the table, bytes of an element of the input and of the weights.
TYPES = {"bfloat16": ("half", 2, 2), "fp8": ("fp8", 1, 1), "fp8_block": ("fp8_blocks", 1, 1),
         "nvfp4": ("nvfp4", .5625, .5625), "sq": ("int8", 1, 1), "int8_wo": ("int8_weights", 2, 1),
         "int4_wo": ("int4_weights", 2, .5)}
OURS = {"bf16": "half", "fp32": "fp32", "tf32": "tf32", "fp64": "fp64"}
WIDTHS = {"bf16": 2, "fp32": 4, "tf32": 4, "fp64": 8}
# Tensors of the first operand's size that an operation reads and writes.
TENSORS = {"add": 3, "gelu": 2, "layer_norm": 2, "softmax": 2, "copy": 2, "dropout": 2.5, "sum": 1}
LEAST_START = 1  # Microseconds.
SHARPNESS = 8  # max(a, b) as the norm of this degree, which a fit can follow


def read_families():
    """Families of the table's head, and the peaks of the devices: what this script and the program must agree on."""
    families = {}
    for name, narrow, fp4, prefixes in re.findall(r"^FAMILY\((\w+), (\d), (\d), \{(.*?)\}\)", TABLE.read_text(), re.M):
        families[name] = (int(narrow), int(fp4), re.findall(r'"([^"]+)"', prefixes))
    devices = {}
    for line in (TABLE.parent / "devices.def").read_text().splitlines():
        found = re.match(r'DEVICE\("([^"]+)", ([^"]+), "', line)
        if found:
            numbers = [float(x) for x in found[2].split(",")]
            devices[found[1]] = dict(zip(("fp64", "fp32", "tf32", "fp16", "half", "int8", "bandwidth"), numbers))
    return families, devices


FAMILIES, PEAKS = read_families()


def family_of(device):
    return next((name for name, (_, _, prefixes) in FAMILIES.items() if device.startswith(tuple(prefixes))), "")


def peak(device, arithmetic):
    """Operations per microsecond."""
    narrow, fp4, _ = FAMILIES.get(family_of(device), (2, 4, []))
    if arithmetic in ("fp8", "fp8_blocks"):
        return PEAKS[device]["half"] * narrow * 1e6
    if arithmetic == "nvfp4":
        return PEAKS[device]["half"] * fp4 * 1e6
    if arithmetic.endswith("_weights"):
        arithmetic = "half"
    return PEAKS[device][arithmetic] * 1e6


def expert_work(row, value, wide, weights):
    """Uniform routing: a token hits an expert with probability topk / experts."""
    tokens, topk, experts = value("tokens"), value("topk"), value("experts")
    ways, parts = value("moe_ep") or 1, value("moe_tp") or 1
    matrix = value("hidden") * value("inter") / parts
    hit = experts / ways * (1 - (1 - topk / experts) ** tokens)
    return 6 * tokens * topk / ways * matrix, hit * 3 * matrix * weights + 4 * tokens * topk / ways * value("hidden")


def work(row):
    """(operation, arithmetic, flops, bytes, inner size of a product) of a row of ops.csv, or None for types that the
    table does not have."""
    value = lambda name: float(row[name] or 0)
    if row["dtype"] not in TYPES:
        return None
    arithmetic, wide, weights = TYPES[row["dtype"]]
    if row["op"] == "gemm":
        m, n, k = value("m"), value("n"), value("k")
        return "product", arithmetic, 2 * m * n * k, wide * m * k + weights * n * k + 2 * m * n, k
    if row["op"] == "moe":
        return ("experts", arithmetic) + expert_work(row, value, wide, weights)
    batch, heads, of_heads, size = value("batch"), value("heads"), value("kv_heads"), value("head_dim")
    new, past = value("isl"), value("past")
    entry = 1 if row["kv_dtype"] == "fp8" else 2
    if row["op"] == "attn_prefill":
        return ("attention", arithmetic, 4 * batch * heads * size * new * (past + new / 2),
                4 * batch * new * heads * size + 2 * entry * batch * (past + new) * of_heads * size)
    return ("decode", arithmetic, 4 * batch * heads * size * (past + 1),
            4 * batch * heads * size + 2 * entry * batch * (past + 1) * of_heads * size)


def row_of(device, operation, arithmetic, flops, moved, us, inner=0.0):
    return {"device": device, "family": family_of(device), "key": (operation, arithmetic), "us": us, "weight": 1.0,
            "inner": inner * 1e-3, "compute": flops / peak(device, arithmetic), "move": moved / (PEAKS[device]["bandwidth"] * 1e3)}


def read_csv(path):
    with open(path) as file:
        yield from csv.DictReader(file)


def read_ops(path):
    for row in read_csv(path):
        found = work(row)
        if found:
            operation, arithmetic, flops, moved, *inner = found
            yield row_of(DEVICES[row["system"]], operation, arithmetic, flops, moved, float(row["us"]), *inner)


def read_layers(path):
    """Norms, sums and activations of one layer; times are whole microseconds there, so short ones say nothing."""
    for row in read_csv(path):
        tensors = {"add": 3, "input_layernorm": 2, "mlp_act": 3 if row["gated"] == "True" else 2}.get(row["op"])
        if tensors is None or not row["hidden"] or row["device"] not in DEVICES or float(row["us"]) < 5:
            continue
        width = float(row["ffn"]) / float(row["tp"]) if row["op"] == "mlp_act" else float(row["hidden"])
        yield row_of(DEVICES[row["device"]], "stream", "half", 0, 2 * tensors * float(row["tokens"]) * width, float(row["us"]))


def read_ours(folder):
    for name, device in (("h100", "h100-sxm5-80gb"), ("h200", "h200-sxm5-141gb")):
        path = folder / f"{name}.csv"
        for row in read_csv(path):
            m, n, k, us = (float(row[name] or 0) for name in ("m", "n", "k", "time_us"))
            precision = row["precision"]
            if row["op"] == "gemm" and precision in ("fp32", "tf32", "fp64"):
                yield row_of(device, "product", OURS[precision], 2 * m * n * k,
                             WIDTHS[precision] * (m * k + n * k + m * n), us, k)
            elif row["op"] in TENSORS:
                yield row_of(device, "stream", "half", 0, TENSORS[row["op"]] * WIDTHS[precision] * m * n, us)


def time_of(rates, row):
    share, moved, start, inner = rates
    parts = (row["compute"] / share, row["move"] / moved, row["inner"] * inner)
    most = max(parts)
    return start + most * sum((part / most) ** SHARPNESS for part in parts) ** (1 / SHARPNESS)


def nelder_mead(loss, start, rounds=500):
    count = len(start)
    points = [list(start)] + [[x * (1.3 if i == j else 1) for j, x in enumerate(start)] for i in range(count)]
    points = sorted(([loss(p), p] for p in points), key=lambda x: x[0])
    for _ in range(rounds):
        if points[-1][0] - points[0][0] < 1e-7:
            break
        center = [statistics.fmean(p[j] for _, p in points[:-1]) for j in range(count)]
        at = lambda distance: [c + distance * (c - w) for c, w in zip(center, points[-1][1])]
        tries = [(loss(p), p) for p in (at(1),)]
        if tries[0][0] < points[0][0]:
            tries.append((loss(at(2)), at(2)))
        elif tries[0][0] >= points[-2][0]:
            tries.append((loss(at(-.5)), at(-.5)))
        best = min(tries, key=lambda x: x[0])
        if best[0] < points[-1][0]:
            points[-1] = list(best)
        else:
            points = [points[0]] + [[loss(q), q] for q in
                                    ([(a + b) / 2 for a, b in zip(p, points[0][1])] for _, p in points[1:])]
        points.sort(key=lambda x: x[0])
    return points[0][1]


def fit(rows):
    # The table of devices has the peak of the vector units in FP64: tensor units have twice as much.
    most = 2.2 if rows[0]["key"][1] == "fp64" else 1

    def loss(rates):
        if min(rates[:2]) < 1e-3 or rates[2] < LEAST_START or rates[3] < 0 or rates[0] > most or rates[1] > 1.3:
            return 1e9
        return sum(abs(math.log(time_of(rates, row) / row["us"])) * row["weight"] for row in rows) / len(rows)
    found = nelder_mead(lambda rates: loss((*rates, 0)), [.6, .8, 5.])
    tries = [(*found, 0)]
    if any(row["inner"] > 0 for row in rows):
        tries += [nelder_mead(loss, begin) for begin in ([*found, .1], [*found, 1.], [.6, .8, 5., 1.])]
    return tuple(min(tries, key=loss))


def error(rates, rows):
    return statistics.median(abs(time_of(rates, row) / row["us"] - 1) for row in rows)


def balanced(rows):
    """The rows with weights such that each family counts alike."""
    counts = collections.Counter(row["family"] for row in rows)
    return [{**row, "weight": len(rows) / len(counts) / counts[row["family"]]} for row in rows]


def left_out(rows, by):
    """Errors of each value of `by` when its rows were not fitted."""
    errors = {}
    for value in sorted({row[by] for row in rows}):
        rest = [row for row in rows if row[by] != value]
        if rest:
            errors[value] = error(fit(balanced(rest)), [row for row in rows if row[by] == value])
    return errors


# --- The MI300X, from pairs of recordings ---


def kernels_of(path):
    """Kernel times by (op, number of the op's launch), in the order of launches."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    ops = {e["args"].get("External id"): e for e in events if e.get("cat") == "cpu_op" and "args" in e}
    of_op = collections.defaultdict(list)
    for event in sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"]):
        op = ops.get(event["args"].get("External id"))
        if op:
            of_op[op["name"]].append(event["dur"])
    return of_op


def operation_of(op):
    if op in ("aten::mm", "aten::addmm", "aten::bmm"):
        return "product"
    if "attention" in op:
        return "attention"
    return None if "convolution" in op else "stream"


def read_pairs(folder):
    """(job, operation, time on the H100, time on the MI300X) of each kernel that both have."""
    for path in sorted(folder.glob("*_h100.json.gz")):
        here, there = kernels_of(path), kernels_of(path.with_name(path.name.replace("_h100", "_mi300")))
        for op in here:
            if len(here[op]) == len(there.get(op, [])) and operation_of(op):
                for pair in zip(here[op], there[op]):
                    yield path.name.removesuffix("_h100.json.gz"), operation_of(op), *pair


def moved_time(us, start, ratio, other_start):
    return other_start + (us - start) * ratio if us > start else us * other_start / start


def fit_pair(pairs, start):
    """(ratio of the work's time, start) on the other device."""
    jobs = collections.Counter(job for job, *_ in pairs)
    def loss(rates):
        if min(rates) <= 1e-3:
            return 1e9
        return sum(abs(math.log(moved_time(us, start, *rates) / there)) / jobs[job] for job, _, us, there in pairs)
    return nelder_mead(loss, [1., start])


def pair_error(rates, start, pairs):
    return statistics.median(abs(moved_time(us, start, *rates) / there - 1) for _, _, us, there in pairs)


def mi300_rows(pairs, table):
    """Rows of the table for the MI300X's family, from the H100's rates; errors with each job left out."""
    device, other = "h100-sxm5-80gb", "mi300x"
    for operation in ("product", "attention", "stream"):
        mine = [pair for pair in pairs if pair[1] == operation]
        share, moved, start, inner, _ = table[(operation, "half", "hopper")]
        ratio, other_start = fit_pair(mine, start)
        errors = {}
        for job in sorted({pair[0] for pair in mine}):
            rest = [pair for pair in mine if pair[0] != job]
            errors[job] = pair_error(fit_pair(rest, start), start, [pair for pair in mine if pair[0] == job])
        peaks = peak(device, "half") / peak(other, "half")
        bandwidths = PEAKS[device]["bandwidth"] / PEAKS[other]["bandwidth"]
        if operation == "stream":
            rates = (share, moved * bandwidths / ratio, other_start, inner)
        else:
            rates = (share * peaks / ratio, moved * bandwidths / ratio, other_start, inner * ratio)
        yield (operation, "half", "cdna3"), (*rates, max(errors.values())), errors


# --- Output ---


def table_of(rows):
    """The rates of each (operation, arithmetic, family), and of any family together, with the errors of devices or
    families that were left out."""
    table = {}
    for key in sorted({row["key"] for row in rows}):
        mine = [row for row in rows if row["key"] == key]
        families = sorted({row["family"] for row in mine})
        out = left_out(mine, "family").values()
        any_error = statistics.median(out) if out else None
        for family in families:
            of_family = [row for row in mine if row["family"] == family]
            errors = left_out(of_family, "device")
            found = max(errors.values()) if errors else any_error
            table[(*key, family)] = (*fit(of_family), found)
        table[(*key, "any")] = (*fit(balanced(mine)), any_error)
    return table


def check(rows, pairs):
    for key in sorted({row["key"] for row in rows}):
        mine = [row for row in rows if row["key"] == key]
        for device in sorted({row["device"] for row in mine}):
            own = [row for row in mine if row["device"] == device]
            random.Random(1).shuffle(own)
            half = len(own) // 2
            family = [row for row in mine if row["family"] == own[0]["family"] and row["device"] != device]
            others = [row for row in mine if row["family"] != own[0]["family"]]
            show = lambda fitted: f"{error(fit(balanced(fitted)), own):7.1%}" if fitted else "      -"
            print(f"{' '.join(key):24} {device:18} half {error(fit(own[:half]), own[half:]):6.1%}   from its family"
                  f" {show(family)}   from other families {show(others)}   {len(own)} rows")
    for key, rates, errors in mi300_rows(pairs, table_of([row for row in rows if row["key"][1] == "half"])) if pairs else ():
        print(f"{' '.join(key[:2]):24} mi300x             each job left out: "
              + ", ".join(f"{job} {value:.1%}" for job, value in errors.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, help="folder with ops.csv and layers.csv")
    parser.add_argument("--pairs", type=pathlib.Path, help="folder with NAME_h100.json.gz and NAME_mi300.json.gz")
    parser.add_argument("--check", action="store_true", help="print errors of what was left out instead")
    parser.add_argument("--write", action="store_true", help="write the table")
    options = parser.parse_args()
    rows = list(read_ours(ROOT / "traces" / "operations"))
    if options.data:
        rows += list(read_ops(options.data / "ops.csv")) + list(read_layers(options.data / "layers.csv"))
    pairs = list(read_pairs(options.pairs)) if options.pairs else []
    if options.check:
        return check(rows, pairs)
    table = table_of(rows)
    if pairs:
        table.update((key, rates) for key, rates, _ in mi300_rows(pairs, table))
    lines = []
    for key, (share, moved, start, inner, off) in sorted(table.items()):
        known = "0" if off is None else f"{off:.2f}"
        lines.append(f"RATE({key[0]}, {key[1]}, {key[2]}, {share:.3f}, {moved:.3f}, {start:.1f}, "
                     f"{f'{inner:.2f}' if inner else 0}, {known})")
    text = re.sub(r"^RATE\(.*\n", "", TABLE.read_text(), flags=re.M) + "\n".join(lines) + "\n"
    if options.write:
        TABLE.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
