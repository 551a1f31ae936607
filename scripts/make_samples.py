#!/usr/bin/env python3
"""Writes the sample traces in traces/: synthetic recordings of training loops.

Nothing here was measured. Each file comes from simulating a loop on a host thread, an autograd thread, loader
processes and a GPU whose streams, copy engines, launch queue and synchronizing calls behave as real ones do, with
times from a seeded generator. So the causes of every wait are in the file, and the same seed makes the same file.

    scripts/make_samples.py [FOLDER]      writes into FOLDER, by default traces/
"""

import pathlib
import sys

from samples.gpt import GEMM, TENSOR_GEMM, gpt, parameter_count
from samples.model import A100, V100
from samples.perceptron import WEIGHTS, perceptron
from samples.resnet import PARAMETERS, resnet18
from samples.serving import ServingSettings
from samples.training import ADAMW, SGD, Settings

IMAGES = 32 * 3 * 224 * 224 * 4


def image_training(workers):
    how = f"{workers} loader processes" if workers else "data loading inside the training process"
    return Settings(
        description=f"ResNet-18, batch 32 from pageable memory, one V100, {how}",
        seed=11, device=V100, model=resnet18(V100, 32), parameters=PARAMETERS, optimizer=SGD,
        input_bytes=IMAGES, label_bytes=256, load_us=74_000, workers=workers, host_slowdown=1.6)


def launch_bound():
    return Settings(
        description="a 4-layer language model of width 256, batch 4, one A100: the host cannot launch fast enough",
        seed=12, device=A100, model=gpt(A100, 4, 4, 128, 256, 8192, GEMM),
        parameters=parameter_count(4, 256, 8192), optimizer=ADAMW, input_bytes=4096, label_bytes=4096, load_us=900,
        workers=2, reads_loss=True, module_frames=True, steps=6)


def gpu_bound():
    return Settings(
        description="a 4-layer language model of width 1024, batch 16, one A100: the host waits for "
                    "the loss; the next batch is copied from pinned memory on a stream of its own",
        seed=13, device=A100, model=gpt(A100, 4, 16, 1024, 1024, 32000, TENSOR_GEMM),
        parameters=parameter_count(4, 1024, 32000), optimizer=ADAMW, input_bytes=16 * 1024 * 8, label_bytes=16 * 1024 * 8,
        load_us=2_500, workers=2, pinned_prefetch=True, reads_loss=True, memory_events=True, sync_records=True, steps=6)


def input_bound():
    return Settings(
        description="a perceptron on images, batch 512, one V100: the training process itself decodes each image, at 355 a "
                    "second, so that the device is idle nearly all of the time",
        seed=14, device=V100, model=perceptron(V100, 512), parameters=WEIGHTS, optimizer=SGD,
        input_bytes=512 * 3 * 224 * 224, label_bytes=512 * 8, load_us=1_440_000, reads_loss=True, steps=8, warm_up=1)


def two_ranks(rank):
    return Settings(
        description=f"rank {rank} of 2: a 2-layer language model of width 512, batch 8 on each of two A100, data parallel; the "
                    "loader of rank 1 takes three times as long, and rank 0 waits for it in the all-reduces",
        seed=15, device=A100, model=gpt(A100, 2, 8, 512, 512, 8192, TENSOR_GEMM),
        parameters=parameter_count(2, 512, 8192), optimizer=ADAMW, input_bytes=8 * 512 * 8, label_bytes=8 * 512 * 8,
        load_us=4_500, late_load_us=13_500, workers=1, reads_loss=True, module_frames=True, memory_events=True,
        source_lines={"CausalSelfAttention": 24, "MLP": 47, "Block": 61, "GPT": 83}, sync_records=True, steps=6, warm_up=8, ranks=2, rank=rank)


def decoding(is_capture):
    what = "the capture of its graphs" if is_capture else "eight steps that replay its graph for 16 sequences of 4096 positions"
    return ServingSettings(
        description=f"a decoder of 8 layers of width 2048 in bf16 that an engine like vLLM serves on one A100: {what}",
        seed=16, device=A100, layers=8, width=2048, inner=5632, words=32000, sequences=16, context=4096, is_capture=is_capture)


SAMPLES = {
    "input-bound-v100.pt.trace.json.gz": input_bound,
    "resnet18-v100-loader0.pt.trace.json.gz": lambda: image_training(0),
    "resnet18-v100-loader4.pt.trace.json.gz": lambda: image_training(4),
    "gpt-a100-launch-bound.pt.trace.json.gz": launch_bound,
    "gpt-a100-gpu-bound.pt.trace.json.gz": gpu_bound,
    "gpt-a100-two-ranks/rank0.pt.trace.json.gz": lambda: two_ranks(0),
    "gpt-a100-two-ranks/rank1.pt.trace.json.gz": lambda: two_ranks(1),
    "llama-a100-decode/decode.pt.trace.json.gz": lambda: decoding(False),
    "llama-a100-decode/capture_traces/graphs.pt.trace.json.gz": lambda: decoding(True),
}


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "traces"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    for name, settings in SAMPLES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        settings().recording().run().write(folder / name)
        print(f"{folder / name}: {(folder / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
