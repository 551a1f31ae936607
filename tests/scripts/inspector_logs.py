"""Writes logs as NCCL Inspector writes them, for a job whose truth is known: ranks enter each collective at times that are drawn,
and all leave it together. One rank is late in every second collective of all ranks.

    inspector_logs.py FOLDER [--ranks 64] [--steps 100]"""

import argparse
import collections
import json
import pathlib
import random
import statistics

PER_HOST, LATE, LATENESS = 8, 5, 40_000                   # us
SIZES = {"AllReduce": 67108864, "ReduceScatter": 1048576, "AllGather": 1048576}    # As NCCL counts them.
TRANSFERS = {"AllReduce": 700, "ReduceScatter": 800, "AllGather": 600}             # us
WORDS = {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter"}
FACTORS = {"AllReduce": lambda n: 2 * (n - 1) / n, "ReduceScatter": lambda n: n - 1, "AllGather": lambda n: n - 1}


def record(communicator, rank, operation, number, time, version="v4.2"):
    """A line of the log; `communicator` is its id, its name, its ranks and its hosts."""
    identity, name, ranks, nodes = communicator
    size = SIZES[operation]
    whole = size * (1 if operation == "AllReduce" else ranks)
    return {"header": {"id": identity, "comm_name": name, "rank": rank, "n_ranks": ranks, "nnodes": nodes},
            "metadata": {"inspector_output_format_version": version, "git_rev": "", "rec_mechanism": "nccl_profiler_interface",
                         "dump_timestamp_us": 1748030377748202 + number, "hostname": f"host{rank // PER_HOST}", "pid": 1000 + rank},
            "coll_perf": {"coll": operation, "coll_algo": "RING", "coll_proto": "SIMPLE", "coll_sn": number, "coll_msg_size_bytes": size,
                          "coll_exec_time_us": time, "coll_algobw_gbs": round(whole / time / 1e3, 6),
                          "coll_busbw_gbs": round(size * FACTORS[operation](ranks) / time / 1e3, 6), "coll_timing_source": "kernel_gpu"}}


def logs(ranks=64, steps=100, seed=7):
    """The records of each rank."""
    draw = random.Random(seed)
    everyone = ("0xa11", "world", ranks, ranks // PER_HOST)
    found = [[] for _ in range(ranks)]
    for step in range(steps):
        groups = [(everyone, range(ranks), operation) for operation in SIZES]
        groups += [((f"0x7e{host:x}", "", PER_HOST, 1), range(PER_HOST * host, PER_HOST * (host + 1)), "AllReduce")
                   for host in range(ranks // PER_HOST)]
        for communicator, members, operation in groups:
            entries = {rank: draw.randrange(500) for rank in members}
            if communicator is everyone and step % 2:
                entries[LATE] += LATENESS
            left = max(entries.values()) + TRANSFERS[operation] + draw.randrange(50)
            for place, rank in enumerate(members):
                found[rank].append(record(communicator, place, operation, step + 1, left - entries[rank]))
    return found


def table_of(records):
    """Rows by operation, group and bytes, of logs in which all ranks recorded all."""
    kernels = collections.defaultdict(lambda: collections.defaultdict(dict))
    for one in records:
        header, found = one["header"], one["coll_perf"]
        whole = found["coll_msg_size_bytes"] * (1 if found["coll"] == "AllReduce" else header["n_ranks"])
        key = WORDS[found["coll"]], header["comm_name"] or header["id"], whole
        kernels[key][found["coll_sn"]][header["rank"]] = 1000 * found["coll_exec_time_us"], found["coll_busbw_gbs"]
    rows = {}
    for key, collectives in kernels.items():
        times = [[time for time, _ in ranks.values()] for ranks in collectives.values()]
        last = collections.Counter(min(ranks, key=lambda rank: (ranks[rank][0], rank)) for ranks in collectives.values())
        transfer = statistics.median_low(min(one) for one in times)
        bandwidth = next(rate for ranks in collectives.values() for time, rate in ranks.values() if time == transfer)
        rows[key] = {"count": len(times), "kernels": sum(map(len, times)), "kernel_total_ns": sum(map(sum, times)),
                     "kernel_ns": statistics.median_low(sum(times, [])), "matched": len(times), "transfer": transfer,
                     "skew": statistics.median_low(max(one) - min(one) for one in times),
                     "most": max(max(one) - min(one) for one in times), "last": last.most_common(1)[0][1], "rate": 1e9 * bandwidth}
    return rows


def write(folder, ranks=64, steps=100):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for rank, records in enumerate(logs(ranks, steps)):
        (folder / f"host{rank // PER_HOST}-pid{1000 + rank}.log").write_text("".join(json.dumps(one) + "\n" for one in records))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    asked = parser.parse_args()
    write(asked.folder, asked.ranks, asked.steps)
