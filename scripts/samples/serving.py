"""An engine that serves a language model: it captures a step as a CUDA graph, then replays it for each token."""

import dataclasses

from .chance import Chance
from .machine import Gpu, Thread
from .recorder import BASE_NS, PROCESS, Recorder, name_events, write_trace

GEMM = "ampere_bf16_s16816gemm_bf16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn"
NORM = "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, float, int, int)"
ROPE = "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*)"
CACHE = "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(__nv_bfloat16 const*)"
ATTENTION = "void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >(flash::Flash_fwd_params)"
SILU = "void vllm::act_and_mul_kernel<c10::BFloat16, vllm::silu_kernel<c10::BFloat16>, true>(c10::BFloat16*, c10::BFloat16 const*, int)"
ARGMAX = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4> >"
BYTES = 2  # Of an element of bf16.


@dataclasses.dataclass
class ServingSettings:
    description: str
    seed: int
    device: object
    layers: int
    width: int
    inner: int
    words: int
    sequences: int
    context: int  # Positions that a sequence attends to.
    captured: tuple = (16, 32)  # Sizes of batches.
    steps: int = 8
    is_capture: bool = False  # The recording of the capture, instead of that of the steps.

    def recording(self):
        return Serving(self)


class Serving:
    def __init__(self, settings):
        self.settings = settings
        self.recorder = Recorder()
        device = settings.device
        self.gpu = Gpu(self.recorder, Chance(settings.seed), device.launch_ns, device.gap_ns, True)
        self.main = Thread(self.gpu, PROCESS, "VllmWorker-0", 0)

    def run(self):
        self.recorder.on = True
        if self.settings.is_capture:
            for size in reversed(self.settings.captured):
                self._capture(size)
        else:
            for _ in range(self.settings.steps):
                self._decode()
            self.main.synchronize_device()
        return self

    def _linear(self, tokens, inner, outer):
        size = (inner * outer + tokens * (inner + outer)) * BYTES
        return "aten::linear", [[tokens, inner], [outer, inner], []], self.settings.device.memory(GEMM, size)

    def _layer(self, tokens):
        """Modules of a layer, each with ops: name, shapes and kernel."""
        settings, width = self.settings, self.settings.width
        def moved(op, name, columns, copies=3):
            return op, [[tokens, columns]], settings.device.memory(name, tokens * columns * BYTES * copies)
        cache = 2 * tokens * settings.context * width * BYTES // 4  # Four heads share keys and values.
        return [
            ("RMSNorm", [moved("_C::fused_add_rms_norm", NORM, width, 4)]),
            ("QKVParallelLinear", [self._linear(tokens, width, width * 3 // 2)]),
            ("RotaryEmbedding", [moved("_C::rotary_embedding", ROPE, width * 5 // 4)]),
            ("Attention", [moved("_C_cache_ops::reshape_and_cache_flash", CACHE, width // 2),
                           ("vllm::unified_attention_with_output", [[tokens, width], [tokens, width // 4]],
                            settings.device.memory(ATTENTION, cache))]),
            ("RowParallelLinear", [self._linear(tokens, width, width)]),
            ("RMSNorm", [moved("_C::fused_add_rms_norm", NORM, width, 4)]),
            ("MergedColumnParallelLinear", [self._linear(tokens, width, 2 * settings.inner)]),
            ("SiluAndMul", [moved("_C::silu_and_mul", SILU, 2 * settings.inner, 2)]),
            ("RowParallelLinear", [self._linear(tokens, settings.inner, width)]),
        ]

    def _capture(self, tokens):
        main = self.main
        with main.op(f"capture_{tokens}_FULL", category="user_annotation", before=90, behind=40), \
                main.module("LlamaForCausalLM_0"):
            main.call("cudaStreamBeginCapture", 3)
            for index in range(self.settings.layers):
                with main.module(f"LlamaDecoderLayer_{index}"):
                    for name, ops in self._layer(tokens):
                        with main.module(f"{name}_{index}"):
                            for op, shapes, kernel in ops:
                                main.work(14)
                                with main.op(op, before=6, **{"Input Dims": shapes}):
                                    main.call("cudaLaunchKernel", 3.2, kernel=kernel.name)
            main.call("cudaStreamEndCapture", 60)

    def _decode(self):
        settings, main = self.settings, self.main
        tokens = settings.sequences
        main.work(420)  # The scheduler, and the tables of blocks.
        # With sums over the sequences of new tokens, positions, and their products, as vLLM's detailed names have them.
        positions = tokens * settings.context
        prompts, decoded = "sq0sk0sqsq0sqsk0", f"sq{tokens}sk{positions}sqsq{tokens}sqsk{positions}"
        with main.op(f"execute_{tokens}_context_0({prompts})_generation_{tokens}({decoded})", category="user_annotation",
                     before=35, behind=10):
            main.copy_in_pinned(tokens * 64, settings.device.pinned)
            main.launch_graph([kernel for _ in range(settings.layers) for _, ops in self._layer(tokens)
                               for _, _, kernel in ops])
        name, shapes, kernel = self._linear(tokens, settings.width, settings.words)
        with main.op(name, before=6, **{"Input Dims": shapes}):
            main.launch(kernel)
        with main.op("aten::argmax", before=5, **{"Input Dims": [[tokens, settings.words]]}):
            main.launch(settings.device.memory(ARGMAX, tokens * settings.words * 4))
        with main.op("aten::to"), main.op("aten::copy_"):
            main.copy_out(tokens * 8)
        main.work(180)  # Answers go out.

    def write(self, path):
        header = {"schemaVersion": 1, "synthetic": True, "generator": "foretrace scripts/make_samples.py",
                  "description": self.settings.description, "deviceProperties": [self.settings.device.properties],
                  "cuda_runtime_version": 12010, "record_shapes": 1, "with_stack": 1, "displayTimeUnit": "ms",
                  "baseTimeNanoseconds": BASE_NS}
        write_trace(path, header, self.recorder.events,
                    lambda start: name_events([(self.main.tid, self.main.name)], self.gpu.streams(), start))
