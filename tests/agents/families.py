"""Questions that an agent asks about one recording: what it calls, at most three tools, how it reads the answers, and the figure that
is computed from the events of the raw recording. Times are in ns, sizes in bytes."""

import collections
import dataclasses
import re
import typing

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
HOST = ("cpu_op", "cuda_runtime", "cuda_driver", "user_annotation", "python_function", "overhead")
CALLS = ("cuda_runtime", "cuda_driver")
ALLOCATIONS = r"^\[memory\]$", ("cpu_instant_event",)
WAITS = r"^(cuda|hip)(Device|Stream|Event)Synchronize$"


@dataclasses.dataclass
class Family:
    words: str
    calls: list                      # Of tools, with their arguments but the recording.
    found: typing.Callable           # Reads the answers.
    expected: typing.Callable        # Of the raw recording; None where it does not apply.
    tolerance: float = 1e-6          # Relative; floating-point microseconds round.


INFO = ("info", {"form": "json"})
TEXT = ("info", {})
KERNELS = ("kernels", {"form": "json", "top": 1000})
MEMORY = ("memory", {"form": "json"})
PREDICT = ("predict", {"form": "json"})
INPUT = ("input", {"form": "json"})


def ns(events):
    return sum(event["dur"] for event in events) * 1e3


def covered(events):
    """Time in which at least one of the events runs."""
    total, until = 0, 0
    for start, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        total += max(0, end - max(start, until))
        until = max(until, end)
    return total * 1e3


def span(raw):
    timed = [event for event in raw.events if event.get("ph") == "X" and event.get("cat") in (*DEVICE, *HOST)]
    return (max(event["ts"] + event["dur"] for event in timed) - min(event["ts"] for event in timed)) * 1e3


def heaviest(raw):
    """Name, total and number of the device work that takes longest in all."""
    totals = collections.defaultdict(list)
    for event in raw.of("", DEVICE):
        totals[event["name"]].append(event)
    name = max(totals, key=lambda one: ns(totals[one]))
    return name, ns(totals[name]), len(totals[name])


def computing(raw, pattern=""):
    """Kernels that compute, not communicate, and that are launched in a marked step."""
    calls = {call["args"].get("correlation"): call["ts"] for call in raw.of("", CALLS)}
    return [event for event in raw.of(pattern) if "nccl" not in event["name"].lower()
            and any(mark["ts"] <= calls.get(event["args"]["correlation"], -1) < mark["ts"] + mark["dur"] for mark in raw.marks)]


def each_step(pattern, share=False):
    """Time of such kernels in a step, or their share of the kernels' time."""
    def expected(raw):
        found = computing(raw, pattern)
        return ns(found) / (ns(computing(raw)) if share else len(raw.marks)) if found else None
    return expected


def device_blocks(info):
    return next(one for one in info["allocators"] if one["device"] == 0)


def rows(kernels, pattern):
    return sum(row["time_ns"] for row in kernels["kernels"] if re.search(pattern, row["kernel"]))


def count(name, categories, pattern=""):
    return lambda raw: len(raw.of(pattern, categories)) or None


def marked(function):
    return lambda raw: function(raw) if len(raw.marks) > 2 else None


def with_memory(function):
    return lambda raw: function(raw) if raw.of(*ALLOCATIONS) else None


def bytes_of(raw):
    return [event["args"]["Bytes"] for event in raw.of(*ALLOCATIONS) if event["args"].get("Device Type") == 1]


def number_before(text, words):
    found = re.search(rf"([\d,]+) {words}", text)
    return int(found[1].replace(",", "")) if found else None


def loading(found):
    waits = found["stalls"]["waiting_for_workers"]
    return found["loading_work_ns"] or waits["stall_ns"] + waits["hidden_ns"]


def launched(raw):
    """Whether all work has a call that launched it, by which it belongs to a step."""
    calls = {call["args"].get("correlation") for call in raw.of("", ("cuda_runtime",))}
    return all(event["args"].get("correlation") in calls for event in raw.of("", DEVICE))


def record(name):
    return lambda info: info["records"][name]


GEMM, ATTENTION, OPTIMIZER, POINTWISE = "gemm", "fmha|flash", "multi_tensor_apply", "elementwise"

FAMILIES = [
    Family("How many kernels ran?", [INFO], record("kernels"), count("kernels", ("kernel",))),
    Family("How many copies?", [INFO], record("copies"), count("copies", ("gpu_memcpy",))),
    Family("How often was memory set?", [INFO], record("fills"), count("fills", ("gpu_memset",))),
    Family("How many operators ran?", [INFO], record("ops"), count("ops", ("cpu_op",))),
    Family("How many calls of the driver and the runtime?", [INFO], record("calls"), count("calls", CALLS)),
    Family("How many ranges did the program mark?", [INFO], record("annotations"), count("annotations", ("user_annotation",))),
    Family("How many bytes were copied?", [INFO], lambda info: info["copied_bytes"],
           lambda raw: sum(event["args"]["bytes"] for event in raw.of("", ("gpu_memcpy",))) or None),
    Family("How long did the device work in all?", [INFO], lambda info: info["device_time_ns"], lambda raw: ns(raw.of("", DEVICE)), 1e-5),
    Family("How long was the device busy?", [INFO], lambda info: info["device_busy_ns"], lambda raw: covered(raw.of("", DEVICE)), 1e-5),
    Family("How much of the recording was the device idle?", [INFO], lambda info: 1 - info["device_busy_ns"] / info["window_ns"],
           lambda raw: 1 - covered(raw.of("", DEVICE)) / span(raw), 1e-4),
    Family("How long is the recording?", [INFO], lambda info: info["window_ns"], span, 1e-5),
    Family("How many streams?", [INFO], lambda info: info["streams"],
           lambda raw: len({(event["args"].get("device"), event["args"]["stream"]) for event in raw.of("", DEVICE)})),
    Family("How many threads?", [INFO], lambda info: info["threads"], lambda raw: len({event["tid"] for event in raw.of("", HOST)})),
    Family("How many steps?", [INFO], lambda info: len(info["steps_on_host_ns"]), marked(lambda raw: len(raw.marks))),
    Family("Which step took longest on the host?", [INFO], lambda info: max(info["steps_on_host_ns"]),
           marked(lambda raw: max(mark["dur"] for mark in raw.marks) * 1e3)),
    Family("How long is a step?", [PREDICT], lambda answer: answer["measured"]["step_time_ns"], marked(lambda raw: raw.step * 1e9 if launched(raw) else None), 5e-3),
    Family("Which kernel is the heaviest?", [INFO], lambda info: info["heaviest"][0]["name"], lambda raw: heaviest(raw)[0]),
    Family("How long does it run in all?", [INFO], lambda info: info["heaviest"][0]["total_ns"], lambda raw: heaviest(raw)[1], 1e-5),
    Family("How often does it run?", [INFO], lambda info: info["heaviest"][0]["count"], lambda raw: heaviest(raw)[2]),
    Family("Which share of the device's time is that?", [INFO], lambda info: info["heaviest"][0]["total_ns"] / info["device_time_ns"],
           lambda raw: heaviest(raw)[1] / ns(raw.of("", DEVICE)), 1e-5),
    Family("How long do kernels run in a step?", [KERNELS], lambda kernels: kernels["kernel_time_ns"], each_step(""), 5e-3),
    Family("How many kernels does a step launch?", [KERNELS], lambda kernels: sum(row["count"] for row in kernels["kernels"]),
           marked(lambda raw: len(computing(raw)) / len(raw.marks)), 1e-2),
    Family("How many different kernels are there?", [KERNELS], lambda kernels: len({row["kernel"] for row in kernels["kernels"]}),
           marked(lambda raw: len({event["name"] for event in computing(raw)}))),
    Family("How long is a kernel on average?", [KERNELS],
           lambda kernels: kernels["kernel_time_ns"] / sum(row["count"] for row in kernels["kernels"]),
           marked(lambda raw: ns(computing(raw)) / len(computing(raw))), 1e-2),
    Family("Which share of the kernels' time are matrix products?", [KERNELS],
           lambda kernels: rows(kernels, GEMM) / kernels["kernel_time_ns"], each_step(GEMM, share=True), 5e-3),
    Family("How long does attention take in a step?", [KERNELS], lambda kernels: rows(kernels, ATTENTION), each_step(ATTENTION), 1e-2),
    Family("How long does the optimizer take in a step?", [KERNELS], lambda kernels: rows(kernels, OPTIMIZER), each_step(OPTIMIZER), 1e-2),
    Family("Which share are element-wise kernels?", [KERNELS], lambda kernels: rows(kernels, POINTWISE) / kernels["kernel_time_ns"],
           each_step(POINTWISE, share=True), 1e-2),
    Family("What is the longest kernel?", [INFO], lambda info: info["longest"]["duration_ns"],
           lambda raw: max(event["dur"] for event in raw.of("", DEVICE)) * 1e3, 1e-5),
    Family("How many calls wait for the device?", [TEXT], lambda text: number_before(text, "synchronizing calls?"), count("", CALLS, WAITS)),
    Family("How long do they take?", [INFO], lambda info: info["waits"]["synchronizing_ns"],
           lambda raw: ns(raw.of(WAITS, CALLS)) if raw.of(WAITS, CALLS) else None, 1e-5),
    Family("How much memory is allocated at the peak?", [MEMORY], lambda memory: memory["peak_allocated_bytes"],
           with_memory(lambda raw: max(raw.memory()))),
    Family("How much does the allocator reserve?", [MEMORY], lambda memory: memory["allocator"]["recorded_peak_reserved_bytes"],
           with_memory(lambda raw: max(raw.memory("Total Reserved")))),
    Family("How much was allocated before?", [MEMORY], lambda memory: memory["at_begin_bytes"], with_memory(lambda raw: raw.held_before)),
    Family("How many blocks were allocated?", [INFO], lambda info: device_blocks(info)["allocations"],
           with_memory(lambda raw: sum(size > 0 for size in bytes_of(raw)) or None)),
    Family("How many were freed?", [INFO], lambda info: device_blocks(info)["frees"],
           with_memory(lambda raw: sum(size < 0 for size in bytes_of(raw)) or None)),
    Family("How many bytes of input does a step copy to the device?", [INPUT], lambda found: found["copies"]["bytes"] or None,
           marked(lambda raw: sum(event["args"]["bytes"] for event in raw.of("HtoD", ("gpu_memcpy",))) / len(raw.marks)
                  if raw.of("DataLoader", ("user_annotation",)) else None)),
    Family("How long does a step load, or wait for workers that load?", [INPUT], loading,
           marked(lambda raw: raw.each(r"DataLoader.*__next__", ("user_annotation",)) * 1e9 or None), 4e-2),
]

# Of a folder with all ranks of a job, whose truth is known (tests/scripts/four_ranks.py).
JOB_TABLE = ("collective", {"name": "auto", "form": "json"})


def all_reduce(answer, name, operation="all_reduce"):
    return next(row[name] for row in answer["recorded"] if row["operation"] == operation)


def job_families(truth):
    """`truth` is the module that writes the ranks."""
    met = truth.STEPS * truth.RANKS
    bus = 2 * (truth.RANKS - 1) / truth.RANKS * 4 * truth.ELEMENTS / truth.TRANSFER * 1e6
    late = truth.BACKWARD * (truth.SLOWNESS - 1) * 1e3
    table = [
        ("How many all-reduces?", lambda answer: all_reduce(answer, "count"), truth.STEPS, 0),
        ("How many kernels of them, on all ranks?", lambda answer: all_reduce(answer, "kernels"), met, 0),
        ("How many bytes has each?", lambda answer: all_reduce(answer, "bytes"), 4 * truth.ELEMENTS, 0),
        ("How many ranks take part?", lambda answer: all_reduce(answer, "ranks"), truth.RANKS, 0),
        ("How long is a transfer?", lambda answer: all_reduce(answer, "transfer")["typical_ns"], truth.TRANSFER * 1e3, 1e-3),
        ("With which bus bandwidth?", lambda answer: all_reduce(answer, "busbw_bytes_per_second"), bus, 1e-3),
        ("How much later is the last rank?", lambda answer: all_reduce(answer, "skew")["typical_ns"], late, 1e-2),
        ("Which rank is last?", lambda answer: all_reduce(answer, "last")["rank"], truth.SLOW, 0),
        ("How often?", lambda answer: all_reduce(answer, "last")["times"], truth.STEPS, 0),
        ("How long do all wait and transfer?", lambda answer: all_reduce(answer, "kernel_total_ns"),
         met * truth.TRANSFER * 1e3 + truth.STEPS * (truth.RANKS - 1) * late, 1e-2)]
    step = truth.FORWARD + truth.BACKWARD * truth.SLOWNESS + truth.TRANSFER + truth.UPDATE
    others = [
        ("How many ranks are there?", INFO, lambda answer: len(answer["answers"]), truth.RANKS, 0),
        ("How long is a step?", PREDICT, lambda answer: answer["measured"]["step_time_ns"], step * 1e3, 1e-3),
        ("Which share of a step does communication take that nothing hides?", PREDICT,
         lambda answer: answer["baseline"]["rates"]["exposed_communication"], (late / 1e3 + truth.TRANSFER) / step, 1e-3)]
    return [Family(words, [call], found, lambda _, expected=expected: expected, tolerance)
            for words, call, found, expected, tolerance in [(words, JOB_TABLE, *rest) for words, *rest in table] + others]


def log_families(rows):
    """Of logs of NCCL Inspector, whose rows are computed from their lines."""
    asked = []
    for (operation, group, size), truth in rows.items():
        def row(answer, name, key=(operation, group, size)):
            return next(one[name] for one in answer["recorded"] if (one["operation"], one["group"], one["bytes"]) == key)
        for words, found, expected in (
                ("How many are there?", lambda answer, row=row: row(answer, "count"), truth["count"]),
                ("How long is a transfer?", lambda answer, row=row: row(answer, "transfer")["typical_ns"], truth["transfer"]),
                ("How much later is the last?", lambda answer, row=row: row(answer, "skew")["typical_ns"], truth["skew"]),
                ("With which bus bandwidth?", lambda answer, row=row: row(answer, "busbw_bytes_per_second"), truth["rate"])):
            asked.append(Family(f"{operation} of {group}: {words}", [JOB_TABLE], found, lambda _, expected=expected: expected, 1e-5))
    return asked
