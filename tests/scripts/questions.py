"""Questions as people ask them, for questions_test.py. `#` in a pattern is a number with its unit, blanks are any white space; each
number is compared with one that is computed here, from the raw recording or from what the question gives."""

import dataclasses
import json
import pathlib

import four_ranks
from raw_recording import Raw

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADER, WORKERS, GPU, SMALL = "loader0.json.gz", "loader4.json.gz", "gpu.json.gz", "small.json.gz"
RANKS, LOST = "ranks", "lost.json"
LINKS = {LOADER: "resnet18-v100-loader0", WORKERS: "resnet18-v100-loader4", GPU: "gpt-a100-gpu-bound",
         SMALL: "gpt-a100-launch-bound"}
GRAPHS = "traces/ground_truth/llama-1b-decode.bf16.cuda_graphs.ftrace"
MISSING = 7                              # kernels that are deleted from LOST
A100_TF32, A100_BANDWIDTH = 156e12, 1555e9   # FLOP/s and byte/s, from NVIDIA's data sheet
PRICE, WATTS = 2.5, 400.0                # USD an hour and W of an A100, as in prices.json and power.json
FILES = {"prices.json": {"prices": {"a100": f"{PRICE} USD/h", "h100": "4 USD/h", "v100": "1 USD/h"}},
         "power.json": {"power": {"a100": f"{WATTS:.0f} W"}}}


@dataclasses.dataclass
class Asked:
    words: str                # The question; empty in lists of mere words.
    first: str                # What is typed first, without "foretrace".
    led: str = ""             # A part of its message, which leads to `further`; empty if the first try is answered.
    further: str = ""         # The one further try.
    answer: list = dataclasses.field(default_factory=list)   # (pattern, expected numbers): a number or a range (low, high) each.
    codes: tuple = (0,)       # Exit statuses of an answer.


loader, workers, gpu, small = (Raw(ROOT / "traces" / f"{name}.pt.trace.json.gz") for name in LINKS.values())


def write_inputs(folder):
    """Puts the files that the questions name into a folder."""
    folder = pathlib.Path(folder)
    for name, target in LINKS.items():
        (folder / name).symlink_to(ROOT / "traces" / f"{target}.pt.trace.json.gz")
    (folder / "traces").symlink_to(ROOT / "traces")
    four_ranks.write(folder / RANKS)
    for name, content in FILES.items():
        (folder / name).write_text(json.dumps(content))
    kernels = {id(kernel) for kernel in small.of("layer_norm_kernel")[:MISSING]}
    left = [event for event in small.events if id(event) not in kernels]
    (folder / LOST).write_text(json.dumps({"schemaVersion": 1, "traceEvents": left}))


def percent(part, whole):
    return 100 * part / whole


# Figures of the samples, in seconds and bytes.
LATE = four_ranks.BACKWARD * (four_ranks.SLOWNESS - 1) / 1e6       # what the others wait for the slow rank, in a step
TRANSFER = four_ranks.TRANSFER / 1e6
BUS = 2 * (four_ranks.RANKS - 1) / four_ranks.RANKS * 4 * four_ranks.ELEMENTS / TRANSFER / 1e9    # GB/s
UPDATE = gpu.each("multi_tensor_apply")
PRODUCTS, OTHERS = gpu.each("gemm"), gpu.each() - gpu.each("gemm")
SYNCS = small.each("Synchronize|MemcpyAsync", ("cuda_runtime",)) + small.each(r"^aten::item$", ("cpu_op",))
LOADING = loader.each(r"^enumerate\(DataLoader\)", ("user_annotation",))
COPIES = loader.each("HtoD", ("gpu_memcpy",))
PEAK, RESERVED = max(gpu.memory()), max(gpu.memory("Total Reserved"))
GRADIENTS = 4 * gpu.parameters
ESTIMATE = [(0.75 * GRADIENTS, 1.25 * GRADIENTS), (0, GRADIENTS), (GRADIENTS, 2 * GRADIENTS)]   # What says so holds the truth.
LEAST, MOST = ESTIMATE[0]
GPU_HOURS = 1e5 * gpu.step / 3600        # of 100,000 steps on one GPU
GRAPH_STEP = next(case["after"]["collected_step_time_ns"] / 1e9
                  for case in json.loads((ROOT / "traces/ground_truth.json").read_text())["cases"]
                  if case["id"] == "llama-1b-decode/cuda_graphs")

# A new user at a shell.
NEW_USER = [
    Asked("Is the GPU idle because of loading?", f"idle {LOADER}", "foretrace advise", f"advise {LOADER}",
          [("Bound by input: #", [(50, 100)]), ("without it a step would take #", [workers.step]),
           ("kernels run # of the time", [percent(loader.each(), loader.step)])]),
    Asked("What if I use FP8?", f"predict {GPU} --with fp8", "faster_device:to=h100-sxm5-80gb", f"predict {GPU} --with faster_device:to=h100-sxm5-80gb,fp8",
          [("then quantize:to=fp8 How much # -> #", [gpu.step, (3 * gpu.forward_products[0] / 6 / 1979e12, gpu.step)])]),
    Asked("What if the batch is 64?", f"predict {GPU} --with batch=64", "batch_size:from=", f"predict {GPU} --with batch_size:from=16,to=64",
          [("How much # -> #", [gpu.step, 4 * (gpu.step - UPDATE) + UPDATE]), ("a step has # times the samples", [4])]),
    Asked("What does torch.compile bring?", f"predict {SMALL} --torch-compile", "--with torch_compile", f"predict {SMALL} --with torch_compile",
          [("How much # -> #", [small.step, (small.each("gemm"), small.step)])]),
    Asked("Why is rank 3 slow?", f"info {RANKS} --rank 3", "foretrace advise FOLDER", f"advise {RANKS}",
          [("rank # is the straggler", [four_ranks.SLOW]), ("and wait # for it", [LATE])]),
    Asked("Does it fit in 24 GB?", f"memory {GPU} 24GB", "--memory-limit 24GB", f"memory {GPU} --memory-limit 24GB",
          [("fits in 24 GB: peak # allocated, # reserved", [PEAK, RESERVED])]),
    Asked("Is a 4090 faster?", f"predict {GPU} --with 4090", "faster_device:to=rtx-4090", f"predict {GPU} --with faster_device:to=rtx-4090",
          [("How much # -> #", [gpu.step, (gpu.step * A100_BANDWIDTH / 1008e9, gpu.step * A100_TF32 / 82.6e12)])]),
    Asked("How many dollars on 64 GPUs?", f"cost {GPU} --gpus 64", "foretrace scale",
          f"scale {GPU} --machine dgx-a100 --gpus 64 --total-steps 100k --prices prices.json",
          [("price from to scheme 64 # # # #", [(GPU_HOURS * 3600 / 64, GPU_HOURS * 3600 / 64 / 0.7)] + 2 * [(0, 1000)]
            + [(GPU_HOURS * PRICE * 0.95, GPU_HOURS * PRICE / 0.7)])]),
    Asked("What is my MFU?", f"mfu {GPU}", "foretrace kernels", f"kernels {GPU}",
          [("known shapes take # of that and reach # of what a100-sxm4-40gb allows",
            [gpu.forward_products[1] / len(gpu.marks),
             percent(gpu.forward_products[0] / gpu.forward_products[1], A100_TF32)])]),
    Asked("Which kernels take longest?", f"top-kernels {GPU}", "foretrace kernels", f"kernels {GPU}",
          [("kernels take # of a step", [gpu.each()]), (r"# 17 # - - tf32 aten::mm", [gpu.each("gemm.*_nn_"), gpu.each("gemm.*_nn_") / 17])]),
    Asked("What if attention were twice as fast?", f"predict {GPU} --with flash", "/fmha|flash/",
          f"predict {GPU} --with 'scale:where.kind=kernel,where.name=/fmha|flash/,factor=0.5'",
          [("How much # -> #", [gpu.step, gpu.step - gpu.each("fmha") / 2])]),
    Asked("What does NCCL cost?", f"nccl {RANKS}", "collective auto --against", f"collective auto --against {RANKS}",
          [("all_reduce ranks 0-3 # 5 # # # 3, 100 % #", [4 * four_ranks.ELEMENTS, 1e6 * (TRANSFER + LATE), 1e6 * LATE, 1e6 * LATE, 1e6 * TRANSFER]),
           ("5000.00 to 5000.00 #", [BUS])]),
    Asked("Why is the utilization 30 %?", f"util {SMALL}", "foretrace advise", f"advise {SMALL}",
          [("Bound by the host", []), ("kernels run # of the time", [percent(small.each(), small.step)])]),
    Asked("How long do 100,000 steps take?", f"predict {GPU} --steps 100k", "--total-steps", f"predict {GPU} --total-steps 100k",
          [("Training #, between # and #", 3 * [GPU_HOURS * 3600])]),
    Asked("What if FSDP replaces DDP?", f"predict {GPU} --with fsdp", "zero:stage=3",
          f"scale {GPU} --machine dgx-a100 --gpus 8 --scheme data_parallel --scheme zero:stage=3",
          [("# data_parallel", [(PEAK + LEAST, PEAK + MOST)]), ("gradients take #, between # and #, estimated from", ESTIMATE)]),
    Asked("Who holds the memory?", f"memory-usage {GPU}", "foretrace memory", f"memory {GPU}",
          [("peak # allocated, # reserved", [PEAK, RESERVED]), (r"# # - - \(before the recording", [gpu.held_before, percent(gpu.held_before, PEAK)])]),
    Asked("What does .item() cost?", f"predict {SMALL} --with .item()", "", "",
          [("What if remove_sync How much # -> #", [small.step, (small.step - SYNCS, small.step)])]),
    Asked("What if I use bf16?", f"predict {GPU} --precision bf16", "--with amp:precision=bf16", f"predict {GPU} --with amp:precision=bf16",
          [("How much # -> #", [gpu.step, (gpu.each() / 2, PRODUCTS / 2 + OTHERS)])]),
    Asked("Which of two recordings is faster, and why?", f"{LOADER} {WORKERS}", "foretrace diff", f"diff {LOADER} {WORKERS}",
          [("B takes # less a step .* data loading takes less", [loader.step - workers.step]), ("Step # -> #", [loader.step, workers.step])]),
    Asked("What if I checkpoint and accumulate?", f"predict {GPU} --checkpointing --accumulation 4", "--with recompute",
          f"predict {GPU} --with recompute,accumulation=4",
          [("How much # -> #", [gpu.step, (gpu.step, gpu.step + 2 * gpu.forward_products[1] / 6)]),
           ("a step has the same samples in # parts", [4])]),
]

# What users of similar tools asked for in public, in the order of a survey; properties of a tool that no one asks at a shell were left out.
USERS = [
    Asked("An op gets faster: what does the step gain? (AMD-AGI/TraceLens#114)", f"predict {GPU} --with gemm=0.5", "where.name=/gemm/",
          f"predict {GPU} --with scale:where.kind=kernel,where.name=/gemm/,factor=0.5", [("How much # -> #", [gpu.step, gpu.step - PRODUCTS / 2])]),
    Asked("In what range, under which assumptions? (TraceLens#893)", f"predict {GPU} --with amp", "", "",
          [("How sure between # and #", [(PRODUCTS / 4, gpu.step), (gpu.each() / 2, gpu.step)]), ("Assumes - ", [])]),
    Asked("What is the critical path? (TraceLens#306)", f"critical-path {SMALL}", "--explain", f"predict {SMALL} --explain",
          [(r"# [\d.]+ us enumerate\(DataLoader\)", [small.each(r"^enumerate\(DataLoader\)", ("user_annotation",)) * 6])]),
    Asked("Are kernels of CUDA graphs on it? (HolisticTraceAnalysis#290)", f"predict {GRAPHS} --critical-path", "--explain",
          f"predict {GRAPHS} --explain", [("How much # a step", [GRAPH_STEP]), ("waits for cudaGraphLaunch .* on the critical path .* nvjet", [])]),
    Asked("Where does the time go? (astra-sim#148)", f"breakdown {GPU}", "foretrace predict", f"predict {GPU}",
          [("step # 100.0 % compute #", [gpu.step, gpu.each()])]),
    Asked("Must I trace 10,000 GPUs? (astra-sim#248)", f"predict {GPU} --gpus 10000", "foretrace scale",
          f"scale {GPU} --machine dgx-a100 --gpus 10000",
          [("10000 # # # #x #", [(gpu.step, 2 * gpu.step), (gpu.step, 2 * gpu.step), (gpu.step, 3 * gpu.step), (5000, 10000), (50, 100)])]),
    Asked("How is it validated? (astra-sim#281)", "validate", "", "", [("loader:workers=4 # # #", [loader.step, workers.step, workers.step])]),
    Asked("Does it reproduce what was measured? (SimAI#166)", f"replay {GPU}", "foretrace validate", f"validate {GPU}",
          [(f"{GPU} 6693 # # 0 ", [gpu.step, (0, 0.1)])]),
    Asked("What do 64 GPUs bring over 32? (SimAI#208)", f"speedup {GPU} --gpus 32,64", "foretrace scale",
          f"scale {GPU} --machine dgx-a100 --gpus 32,64",
          [("32 # # # #x", [(gpu.step, 2 * gpu.step)] * 2 + [(gpu.step, 3 * gpu.step), (20, 32)]),
           ("64 # # # #x", [(gpu.step, 2 * gpu.step)] * 2 + [(gpu.step, 3 * gpu.step), (40, 64)])]),
    Asked("How large is the bubble of 1F1B? (SimAI#163)", "schedule 1f1b", "foretrace plan show", "plan show 1f1b:stages=4,micro_batches=16",
          [("bubble rate #", [(4 - 1) / (16 + 4 - 1)])]),
    Asked("And without a GPU? (SimAI#285)", "model llama3-70b", "foretrace generate llama3-70b --machine", "generate llama3-70b --machine dgx-h100",
          [("Step time #, .* Throughput # tokens/s, .* MFU #", [(6 * 70.6e9 * 8192 / 989e12, 20), (400, 1100), (20, 60)]),
           ("Memory # allocated", [(16 * 70.6e9, 1.3 * 16 * 70.6e9)])]),
    Asked("Were kernels lost? (pytorch#192021)", f"lost {LOST}", "foretrace doctor", f"doctor {LOST}",
          [("# of 798 launches .* without a kernel", [MISSING])]),
    Asked("Is it transfer, or does someone come late? (pytorch#128292)", f"skew {RANKS}", "foretrace info", f"info {RANKS}",
          [("3 # # # 0 ns", [gpu.step and (0.08, 0.09), (four_ranks.FORWARD + four_ranks.backward_of(3) + four_ranks.UPDATE) / 1e6, TRANSFER]),
           ("wait # in all for rank 3", [LATE * four_ranks.STEPS])]),
    Asked("Would the allocator's settings help? (DeepSpeed#4093)", f"memory {GPU} --expandable-segments", "--conf expandable_segments:True",
          f"memory {GPU} --conf expandable_segments:True", [("peak # allocated, # reserved", [PEAK, (PEAK, RESERVED)])]),
    Asked("How accurate is that kind of what-if? (Megatron-LM#3138)", "accuracy --pairs traces/ground_truth_h200.json", "foretrace validate",
          "validate --pairs traces/ground_truth_h200.json",
          [(rf"{case['id']} \(kineto\) \S+ # # #", [(0, 1), (0, 1), case["after"]["profiled_step_time_ns"] / 1e9])
           for case in json.loads((ROOT / "traces/ground_truth_h200.json").read_text())["cases"]]),
    Asked("Does a prefetcher speed it up, at what memory? (apex#304)", f"predict {LOADER} --data-prefetcher", "--with prefetch",
          f"predict {LOADER} --with prefetch", [("How much # -> #", [loader.step, loader.step - COPIES]), ("2 at once on the device: # more memory", [19.27e6])]),
    Asked("A gate with a verdict and a cause? (hyperfine#830)", f"check {LOADER} --against {WORKERS}", "--bless",
          f"check {LOADER} --baseline baseline.json",
          [("REGRESSION: step_time # -> # .#", [workers.step, loader.step, (73, 76)]),
           ("loading slower", [])], (1,)),
    Asked("Which figure decides about OOM? (torchtitan#735)", f"oom {GPU} --limit 10GB", "memory", f"memory {GPU} --memory-limit 10GB",
          [("DOES NOT FIT in 10 GB: peak # allocated, # reserved", [PEAK, RESERVED])], (1,)),
    Asked("Which formats does it read? (param#23)", "formats", "list importers", "list importers", [("kineto", []), ("nsys", [])]),
    Asked("How fast must loading be for 500 images a second? (inverse questions)", f"advise {LOADER} --target 500", "--until",
          f"advise {LOADER} --samples-per-step 32 --until 'throughput >= 500'",
          [("throughput >= 500 is reached by .* input.time # times as fast", [LOADING / (LOADING - (loader.step - 32 / 500))])]),
]

# What a buyer asks, mostly with one command. The training is that of 70.6 G parameters with 15 T tokens on 1,024 H100: 1,024 sequences of
# 8,192 tokens a step. Where two numbers of an answer depend on each other, one is computed from the other.
BIG, TOKENS, TOKENS_OF_STEP, BIG_GPUS, PARAMETERS = 989.4e12, 15e12, 1024 * 8192, 1024, 70.55e9
TRAINING = ("generate llama3-70b --machine dgx-h100 --layout tp=8,pp=4,dp=32,micro_batch=1,global_batch=1024 --tokens 15T "
            "--prices prices.json")
BETWEEN, CHECKPOINT, RESTART = 50000 / BIG_GPUS * 3600, 120.0, 600.0     # seconds: failures of the job, a checkpoint, a restart


def whole_training(step):
    seconds = TOKENS / TOKENS_OF_STEP * step
    useful = 6 * PARAMETERS * TOKENS / BIG_GPUS / BIG     # at the peak
    return [(useful / 0.6, useful / 0.2), seconds, BIG_GPUS * seconds / 3600 * 4]


def goodput():
    """Young's optimum, to the first order in checkpoint and restart; Daly's is near it."""
    every = (2 * CHECKPOINT * BETWEEN) ** 0.5 - CHECKPOINT
    return every, 100 / (1 + CHECKPOINT / every + (every / 2 + CHECKPOINT + RESTART) / BETWEEN)


BUYER = [
    Asked("What do 15 T tokens take on 1,024 GPUs, and cost?", TRAINING, answer=[
        ("Step time #,", lambda step: [(TOKENS_OF_STEP * 6 * PARAMETERS / BIG_GPUS / BIG / 0.6, 20)]),
        ("Step time #, .* Training # days, .* Price #M USD", lambda step, days, price: [
            step, *[(0.99 * one, 1.01 * one) for one in (whole_training(step)[1] / 86400, whole_training(step)[2] / 1e6)]]),
        ("Training # days", [tuple(bound / 86400 for bound in whole_training(1)[0])])]),
    Asked("And with failures and checkpoints?", TRAINING + " --mtbf-hours 50000 --checkpoint-time 2min", answer=[
        ("fails every #; with a checkpoint every #, # of the time trains", [BETWEEN, (0.97 * goodput()[0], 1.03 * goodput()[0]), goodput()[1]])]),
    Asked("How much energy?", f"predict {GPU} --total-steps 100k --power power.json", answer=[
        ("Energy #, between # and # .*, at # W", [GPU_HOURS * WATTS] * 3 + [WATTS])]),
    Asked("Which GPU is the cheapest for this job?",
          f"predict {GPU} --with faster_device --vary faster_device.to=a100-sxm4-40gb,h100-sxm5-80gb,v100-sxm2-32gb --total-steps 100k "
          "--prices prices.json", answer=[
              ("a100-sxm4-40gb # # h100-sxm5-80gb # # v100-sxm2-32gb # # ", lambda a, pa, h, ph, v, pv: [
                  GPU_HOURS * 3600, GPU_HOURS * PRICE, (GPU_HOURS * 3600 * 312 / 989.4 / 1.5, GPU_HOURS * 3600 * 1555 / 3350), h / 3600 * 4,
                  (GPU_HOURS * 3600, 1e6), v / 3600]),
              ("the cheapest that fits is h100-sxm5-80gb", [])]),
    Asked("From how many GPUs on is it inefficient?", f"scale {SMALL} --machine dgx-a100 --gpus 1..64 --scheme data_parallel:gradient_bytes=20MB", answer=[
        (" 1 # # # 1.00x 100.0 % 0 ns 0 ns - 2 # # # #x #", lambda one, *rest: [small.step, *rest[:5], 2 * one / rest[2], 100 * one / rest[2]]),
        ("from # GPUs on, .* limits it", [2])]),
    Asked("Does it fit on a smaller card?", f"memory {GPU} --memory-limit rtx-3080", answer=[
        ("DOES NOT FIT in # GB: peak #", [10 * 2**30 / 1e9, PEAK])], codes=(1,)),
    Asked("Is InfiniBand worth it against 10 Gb/s Ethernet?",
          f"scale {GPU} --gpus 16 --scheme data_parallel:machine=dgx-a100,gradient_bytes={GRADIENTS:.0f}B "
          f"--scheme data_parallel:bandwidth=1.25GB/s,latency=20us,gradient_bytes={GRADIENTS:.0f}B", answer=[
              (r"16 # # # #x # # # \S+ GB data_parallel:machine", lambda *found: [(gpu.step, 1.2 * gpu.step), *found[1:5], (0, 0.02)]),
              (r"# # \S+ \S+ \S+ GB data_parallel:bandwidth", []),
              (r"#x # # # \S+ GB data_parallel:bandwidth", lambda times, share, sent, exposed: [
                  times, share, (2 * 15 / 16 * GRADIENTS / 1.25e9, 1.3 * 2 * 15 / 16 * GRADIENTS / 1.25e9), (sent - gpu.step, sent)])]),
    Asked("H100 or A100 for Llama-3 8B?", "generate llama3-8b --machine dgx-h100 --layout dp=8,zero=3,global_batch=8", "",
          "generate llama3-8b --machine dgx-a100 --layout dp=8,zero=3,global_batch=8",
          [("on 8 devices of dgx-h100.* Step time #, .* on 8 devices of dgx-a100.* Step time #,", lambda fast, slow: [
              (6 * 8.03e9 * 8192 / BIG, 5), (fast * 2.0 / 3.35 * 1.5, fast * BIG / 312e12)])]),
    Asked("What do a million tokens cost, answered within 500 ms and 50 ms?",
          "serve llama3-8b --machine dgx-h100 --load concurrency=64,input=1024,output=256 --goodput ttft=500ms,tpot=50ms --prices prices.json",
          answer=[("# output tokens a second a GPU, # to #; # with prompts .* # USD for a million output tokens, # to #; # USD for a million with prompts, # to #;",
                  lambda rate, low, high, all, *_: [rate, low, high, all, *[4 / 3600 / one * 1e6 for one in (rate, high, low, all, all * high / rate, all * low / rate)]])]),
    Asked("What does one more node bring?", f"scale {GPU} --machine dgx-a100 --gpus 8,16", answer=[
        (" 8 # # # #x # .* 16 # # # #x #", lambda *found: [
            *found[:3], 8 * gpu.step / found[0], 100 * gpu.step / found[0], *found[5:8], 16 * gpu.step / found[5], 100 * gpu.step / found[5]])]),
]

# Words that are answered at once, or whose message names what to ask.
WORDS = [Asked("", *words) for words in (
    (f"predict {GPU} --with bf16",),
    (f"predict {LOADER} --with num_workers=4",),
    (f"predict {GPU} --with checkpointing",),
    (f"predict {GPU} --with 'gradient checkpointing' --memory-limit 8GB",),
    (f"predict {LOADER} --with amp,loader:workers=4",),
    (f"predict {SMALL} --with compile",),
    (f"predict {SMALL} --with torch.compile=reduce-overhead",),
    (f"predict {SMALL} --with cudagraphs",),
    (f"predict {SMALL} --with 'fused adam'",),
    (f"predict {LOADER} --with pin_memory=True",),
    (f"predict {GPU} --with grad_accum=4",),
    (f"predict {GPU} --with gpu=h100-sxm5-80gb",),
    (f"predict {GPU} --with 'bigger batch'",),
    (f"predict {GPU} --with batch=64", "batch_size:from=32,to=64", f"predict {GPU} --with batch_size:from=8,to=64"),
    (f"predict {GPU} --with seq_len=2048", "sequence_length:from=512,to=1024", f"predict {GPU} --with sequence_length:from=1024,to=2048"),
    (f"predict {GPU} --with h100", "faster_device:to=h100-sxm5-80gb", f"predict {GPU} --with faster_device:to=h100-sxm5-80gb"),
    (f"predict {GPU} --with fsdp", "zero:stage=3,workers=8", f"predict {GPU} --with zero:stage=3,workers=8,optimizer_bytes=1GB"),
    (f"predict {GPU} --with ddp", "data_parallel:gpus=8,machine=dgx-a100", f"predict {GPU} --with data_parallel:gpus=8,machine=dgx-a100,gradient_bytes=500MB"),
    (f"predict {GPU} --with steps=4", "gradient_accumulation:micro_batches=4", f"predict {GPU} --with gradient_accumulation:micro_batches=4"),
    (f"predict {GPU} --with 'flash attention'", "scale:where.kind=kernel,where.name=/softmax/,factor=0.5", f"predict {GPU} --with scale:where.kind=kernel,where.name=/softmax/,factor=0.5"),
    (f"predict {LOADER} --with 'no dataloader'", "scale:where.kind=input,factor=0", f"predict {LOADER} --with scale:where.kind=input,factor=0"),
    (f"predict {GPU} --samples-per-step 8",),
    (f"predict {GPU} --with oom", "foretrace memory TRACE", f"memory {GPU} --memory-limit 16GB"),
    (f"predict {LOADER} --num-workers 4", "--with loader", f"predict {LOADER} --with loader:workers=4"),
    (f"predict {GPU} amp", "--with amp", f"predict {GPU} --with amp"),
    (f"predict {GPU} --with 'amp + prefetch'", 'did you mean "amp,prefetch"?', f"predict {GPU} --with amp,prefetch"),
    (f"predict {GPU} --with scale:name=softmax,kind=kernel,factor=0.5",),
    (f"predict {LOADER} --vary num_workers=1,2,4", "add it with --with loader", f"predict {LOADER} --with loader --vary num_workers=1,2,4"),
    (f"predict {GPU} --memory 16GB", "--memory-limit", f"predict {GPU} --memory-limit 16GB"),
    (f"predict {GPU} --format html", "--html FILE"),
    (f"memory {GPU} --limit 16GB", "--memory-limit", f"memory {GPU} --memory-limit 16GB"),
    (f"{GPU}", "foretrace advise", f"advise {GPU}"),
    (f"analyze {GPU}", "advise", f"advise {GPU}"),
    (f"compare {LOADER} {LOADER}", "diff", f"diff {LOADER} {LOADER}"),
    (f"predict {GPU} --gpus 8", "data_parallel:gpus=8,machine=dgx-a100", f"scale {GPU} --machine dgx-a100 --gpus 8 --scheme data_parallel:gradient_bytes=500MB"),
    (f"predict {GPU} --mfu", "--samples-per-step 32", f"predict {GPU} --samples-per-step 32"),
    (f"mfu {GPU}", "--samples-per-step 32", f"predict {GPU} --samples-per-step 32"),
    (f"predict {LOADER} --with 'num_workers 8'",),
    (f"predict {GPU} --with max-autotune",),
    ("help bf16",),
    ("help num_workers",),
)]
