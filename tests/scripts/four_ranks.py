"""A recording of four data-parallel ranks whose truth is known: each computes a forward and a backward pass, sums its gradients
with the others, and updates. One rank is slower, so the others wait in the all-reduce; nothing overlaps."""

import json
import pathlib

RANKS, STEPS, SLOW = 4, 5, 3
FORWARD, BACKWARD, TRANSFER, UPDATE = 20_000.0, 40_000.0, 5_000.0, 2_000.0    # us
SLOWNESS = 1.5          # of the backward pass of the slow rank
ELEMENTS = 25_000_000   # of fp32: 100 MB of gradients
LAUNCH, LAG, GAP = 10.0, 3.0, 1.0   # us: of a launch, from its end to an idle device, between kernels
KERNELS = (("ampere_sgemm_128x64_nn", 4), ("ampere_sgemm_128x64_nt", 4))
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def backward_of(rank):
    return BACKWARD * (SLOWNESS if rank == SLOW else 1)


def events_of(rank):
    events, correlation = [], 0
    met = FORWARD + BACKWARD * SLOWNESS + 8 * GAP    # when the last rank enters the all-reduce, from the first kernel on

    def add(category, name, start, duration, thread, **arguments):
        events.append({"ph": "X", "cat": category, "name": name, "pid": 0 if thread == 7 else 4242, "tid": thread,
                       "ts": start, "dur": duration, "args": arguments})

    def launch(name, at, start, duration, **arguments):
        nonlocal correlation
        correlation += 1
        add("cuda_runtime", "cudaLaunchKernel", at, LAUNCH, 4242, correlation=correlation)
        add("kernel", name, start, duration, 7, device=0, context=1, stream=7, correlation=correlation, **arguments)

    begin = 1000.0
    for step in range(STEPS):
        at, device = begin, begin + LAUNCH + LAG
        for (name, count), time in zip(KERNELS, (FORWARD, backward_of(rank))):
            for _ in range(count):
                launch(name, at, device, time / count)
                at, device = at + LAUNCH, device + time / count + GAP
        end = begin + LAUNCH + LAG + met + TRANSFER
        launch(ALL_REDUCE, at, device, end - device,
               **{"Collective name": "allreduce", "In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS, "Group size": RANKS,
                  "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": str(list(range(RANKS)))})
        launch("multi_tensor_apply_kernel", at + LAUNCH, end + GAP, UPDATE)
        wait = at + 2 * LAUNCH
        correlation += 1
        done = end + GAP + UPDATE + LAG
        add("cuda_runtime", "cudaDeviceSynchronize", wait, done - wait, 4242, correlation=correlation)
        add("user_annotation", f"ProfilerStep#{step + 3}", begin, done + 5 - begin, 4242)
        begin = done + 10
    return events


def write(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    for rank in range(RANKS):
        content = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS},
                   "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42298834944,
                                         "computeMajor": 8, "computeMinor": 0, "numSms": 108}],
                   "traceEvents": events_of(rank)}
        (folder / f"rank{rank}.json").write_text(json.dumps(content))
