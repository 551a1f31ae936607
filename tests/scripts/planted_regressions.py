"""Changes that make a program slower, planted in copies of the sample traces, with their effects on all later times."""

import pathlib

from retimed_trace import (Recording, copy_call, delay, end_of, frame, grow_blocks, host_call, launch, op,
                           sync_call)

SAMPLE_FOLDER = pathlib.Path(__file__).resolve().parents[2] / "traces"
SAMPLES = {"resnet": "resnet18-v100-loader4", "loading": "resnet18-v100-loader0", "gpt": "gpt-a100-gpu-bound",
           "small": "gpt-a100-launch-bound", "input": "input-bound-v100"}
PINNED = "Memcpy HtoD (Pinned -> Device)"
PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"


def sample(name):
    return Recording(SAMPLE_FOLDER / (SAMPLES[name] + ".pt.trace.json.gz"))


def in_each_step(trace, name, items, which=0, of=None):
    """Work before an op of each step."""
    for step in trace.steps():
        found = (of or trace.ops)(step, name)
        trace.insert(found[which]["ts"], items)


def user_frame(line, items, function="training_step"):
    return frame(f"/home/user/project/train.py({line}): {function}", items)


# Each returns the recordings before and after.

def new_syncs_in_forward():
    before, after = sample("small"), sample("small")
    for which in (0, 2, 4):
        in_each_step(after, "aten::layer_norm", [user_frame(88, [sync_call()], "forward")], which)
    return before, after


def item_at_the_end_of_a_step():
    before, after = sample("resnet"), sample("resnet")
    item = op("aten::item", [op("aten::_local_scalar_dense", [
        copy_call("Memcpy DtoH (Device -> Pinned)", 2.0, 4), sync_call()])])
    for step in after.steps():
        after.insert(end_of(step) - 1.0, [user_frame(120, [item], "train")])
    return before, after


def with_copy(trace, stream, name=PINNED, **more):
    copy = op("aten::to", [op("aten::copy_", [copy_call(name, 2000.0, 12_000_000, stream, **more)])])
    in_each_step(trace, "aten::relu_", [user_frame(64, [copy], "prefetch")], which=2)
    return trace


def lost_overlap_of_copies():
    def waiting(trace):
        copy = op("aten::to", [op("aten::copy_", [host_call("cudaStreamWaitEvent"),
                                                  copy_call(PINNED, 2000.0, 12_000_000, 20, wait_for=(7,))])])
        in_each_step(trace, "aten::relu_", [user_frame(64, [copy, host_call("cudaStreamWaitEvent"),
                                                            sync_call("cudaEventSynchronize")], "prefetch")], which=2)
        return trace
    return with_copy(sample("resnet"), 20), waiting(sample("resnet"))


def pageable_instead_of_pinned():
    return with_copy(sample("resnet"), 7), with_copy(sample("resnet"), 7, PAGEABLE)


def slower_kernel():
    before, after = sample("resnet"), sample("resnet")
    after.slow(lambda e: "::bn_" in e["name"], 2.0)
    return before, after


def all_kernels_slower():
    before, after = sample("resnet"), sample("resnet")
    after.slow(lambda e: e["cat"] == "kernel", 1.1)
    return before, after


def unfused_op():
    before, after = sample("small"), sample("small")
    extra = [op("aten::" + name, [launch(f"void at::native::vectorized_elementwise_kernel<4, {name}>(int)", 3.0)])
             for name in ("mul", "tanh", "add")]
    for which in range(4):
        in_each_step(after, "aten::gelu", extra, which)
    return before, after


def extra_copy():
    before, after = sample("resnet"), sample("resnet")
    extra = op("aten::to", [op("aten::copy_", [copy_call("Memcpy HtoD (Pinned -> Device)", 900.0, 6_000_000)])])
    in_each_step(after, "aten::relu_", [user_frame(71, [extra])], which=5)
    return before, after


def memory_events(trace):
    return [e for e in trace.events if e.get("name") == "[memory]"]


def more_memory_of_an_op():
    before, after = sample("gpt"), sample("gpt")
    gelu = [(e["ts"], end_of(e)) for step in after.steps() for e in after.ops(step, "aten::gelu")]
    events = memory_events(after)
    grow_blocks(events, lambda e: e["args"]["Bytes"] // 2 // 512 * 512 if any(a <= e["ts"] <= b for a, b in gelu) else 0)
    for event in events:
        event["args"]["Total Reserved"] += 2_000_000_000
    return before, after


def leak_of_each_step():
    before, after = sample("gpt"), sample("gpt")
    leaked = []
    for i, step in enumerate(after.steps()):
        linear = after.ops(step, "aten::linear")[3]
        leaked.append((linear["ts"] + 1.5, 64 << 20, 0x7f0000000000 + i * (256 << 20), linear))
    for event in memory_events(after):
        event["args"]["Total Allocated"] += sum(size for ts, size, _, _ in leaked if ts < event["ts"])
        event["args"]["Total Reserved"] += 7 * (64 << 20)
    for ts, size, address, linear in leaked:
        total = sum(s for t, s, _, _ in leaked if t <= ts) + 1_900_000_000
        after.events.append({"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": linear["pid"],
                             "tid": linear["tid"], "ts": ts,
                             "args": {"Device Type": 1, "Device Id": 0, "Addr": address, "Bytes": size,
                                      "Total Allocated": total, "Total Reserved": 12_000_000_000}})
    return before, after


def longer_loading():
    before, after = sample("loading"), sample("loading")
    for step in after.steps():
        loading = [e for e in after.events if e.get("name", "").startswith("enumerate(DataLoader)")
                   and step["ts"] <= e["ts"] < end_of(step)]
        inside = [e for e in after.events if e.get("cat") == "cpu_op" and loading
                  and loading[0]["ts"] < e["ts"] < end_of(loading[0])]
        time = inside[len(inside) // 2]["ts"] if inside else loading[0]["ts"] + loading[0]["dur"] / 2
        after.insert(time, [delay(15_000.0)])
    return before, after


def new_collective():
    before, after = sample("resnet"), sample("resnet")
    reduce = op("c10d::allreduce_", [op("record_param_comms", [launch(NCCL, 3000.0)])])
    in_each_step(after, "aten::relu_", [user_frame(140, [reduce])], which=4)
    return before, after


def slower_host():
    before, after = sample("small"), sample("small")
    for event in [e for e in after.events if e.get("cat") == "cpu_op"]:
        after.insert(event["ts"], [delay(2.0)])
    return before, after


def more_kernels_in_a_layer():
    before, after = sample("small"), sample("small")
    extra = [op("aten::dropout", [launch("void at::native::fused_dropout_kernel<float>(int)", 4.0)])] * 6
    for step in after.steps():
        blocks = [e for e in after.ops(step, "nn.Module: Block_2", "python_function")]
        ops = [e for e in after.events if e.get("cat") == "cpu_op" and blocks
               and blocks[0]["ts"] < e["ts"] < end_of(blocks[0])]
        after.insert(min(ops, key=lambda e: e["ts"])["ts"], extra)
    return before, after


def wrong_stream():
    return with_copy(sample("resnet"), 20), with_copy(sample("resnet"), 7)


def bigger_tensors():
    before, after = sample("resnet"), sample("resnet")
    after.slow(lambda e: e["cat"] == "gpu_memcpy" and e["args"]["bytes"] > 1_000_000, 2.0)
    for event in after.device_events():
        if event["cat"] == "gpu_memcpy" and event["args"]["bytes"] > 1_000_000:
            event["args"]["bytes"] *= 2
    return before, after


def with_collective(trace, stream):
    reduce = op("c10d::allreduce_", [op("record_param_comms", [launch(NCCL, 3000.0, stream)])])
    in_each_step(trace, "aten::relu_", [user_frame(140, [reduce])], which=4)
    return trace


def collectives_no_longer_overlap():
    return with_collective(sample("resnet"), 30), with_collective(sample("resnet"), 7)


def single_precision():
    before, after = sample("gpt"), sample("gpt")
    for trace, name in ((before, "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn"),
                        (after, "ampere_sgemm_128x64_tn")):
        for event in trace.device_events():
            if "gemm" in event["name"]:
                event["name"] = name
    after.slow(lambda e: "gemm" in e["name"], 2.4)
    return before, after


def more_event_waits():
    before, after = sample("gpt"), sample("gpt")
    in_each_step(after, "aten::gelu", [user_frame(52, [host_call("cudaStreamWaitEvent")] * 2)], which=1)
    return before, after


def pause_in_each_step():
    before, after = sample("small"), sample("small")
    in_each_step(after, "aten::gelu", [delay(1500.0)], which=2)
    return before, after


# (planted change, metric that must fail, words that the greatest causes must contain)
REGRESSIONS = [
    (new_syncs_in_forward, "syncs", r"3 new cudaStreamSynchronize.*train\.py:88 in forward"),
    (item_at_the_end_of_a_step, "syncs", r"1 new cudaStreamSynchronize.*train\.py:120 in train.*aten::item"),
    (lost_overlap_of_copies, "overlap", r"lost overlap: Memcpy HtoD.*train\.py:64 in prefetch|new cudaEventSynchronize.*train\.py:64"),
    (pageable_instead_of_pinned, "pageable_copies", r"pageable memory.*train\.py:64 in prefetch"),
    (slower_kernel, "kernel_time", r"bn_\S+ slower: .*batch_norm|bn_\S+ slower: .*BatchNorm"),
    (all_kernels_slower, "kernel_time", r"kernels take 1\.10 times as long throughout"),
    (unfused_op, "kernels", r"(4|12) new .*vectorized_elementwise_kernel.*aten::(mul|tanh|add)"),
    (extra_copy, "copies", r"1 new Memcpy HtoD.*train\.py:71"),
    (more_memory_of_an_op, "peak_allocated", r"at the peak: aten::gelu"),
    (leak_of_each_step, "memory_growth", r"\+67\.11 MB in each step, never freed: aten::linear"),
    (longer_loading, "step_time", r"load|input|enumerate"),
    (new_collective, "collectives", r"1 new nccl.*train\.py:140"),
    (slower_host, "step_time", r"host work"),
    (more_kernels_in_a_layer, "kernels", r"6 new .*dropout.*Block_2"),
    (wrong_stream, "overlap", r"lost overlap: Memcpy HtoD.*now on the stream of the kernels.*train\.py:64"),
    (bigger_tensors, "bytes_copied", r"Memcpy HtoD.*larger: 19\.27 MB -> 38\.54 MB"),
    (collectives_no_longer_overlap, "overlap", r"lost overlap: nccl.*now on the stream of the kernels.*train\.py:140"),
    (single_precision, "kernel_time", r"ampere_sgemm.* in place of ampere_fp#_s#gemm"),
    (more_event_waits, "event_waits", r"2 new cudaStreamWaitEvent.*train\.py:52"),
    (pause_in_each_step, "step_time", r"host work|between records"),
]
