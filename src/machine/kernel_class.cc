#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "foretrace/machine.h"

namespace foretrace {
namespace {

// Kernels have no declared kind, but their libraries follow naming conventions. The lists contain
// fragments of lower-case names; the first list with a match decides.

/// Messages between devices, and bookkeeping too small for its work to matter.
constexpr std::string_view kLatency[] = {
    "nccl",
    "rccl",
    "offsetskernel",
    "kern_precompute",
    "num_blocks_kernel",
    "devicescaninit",
    "devicecompactinit",
    "nvshmem",
    "deep_ep::",
    "spin_kernel",
    "getrsbatched",
};

/// Kernels that are always bound by memory, whatever else the name contains: the name of a fused
/// kernel also mentions its neighbors (triton_poi_fused_mm_relu is the relu after a matrix
/// product).
constexpr std::string_view kMemory[] = {
    "elementwise_kernel",
    "reduce_kernel",
    "multi_tensor_apply",
    "triton_poi_",
    "triton_red_",
    "triton_per_",
    "triton_for_",
    "splitkreduce",
    "splitk_reduce",
    "reduce_wgrad",
    "reducesplitk",
    "softmax_warp",
    "cunn_softmax",
    "bn_fw_",
    "bn_bw_",
    "batch_norm",
    "batchnorm",
    "bnorm",
    "layer_norm",
    "layernorm",
    "rmsnorm",
    "rms_norm",
    "group_norm",
    "groupnorm",
    "bwd_dot_do_o",
    "bwd_convert",
    "bwdpreprocess",
    "bwdpostprocess",
    "splitkv_combine",
    "fwdcombine",
    "im2col",
    "col2im",
    "nchwtonhwc",
    "nhwctonchw",
    "winogradforward",
    "winogradwgrad",
    "winogradinverse",
    "generatewinograd",
    "winograd_filter",
    "winogradfilter",
    "gemv",
    "gemmk1_kernel",
    "scalepackedtensor",
    "addpackedtensor",
    "op_generic_tensor",
    "optensor",
    "tensortransform",
    "subtensorop",
    "depthwise",
    "embedding",
    "pool_",
    "pooling",
    "fft",
    "cat_batched_copy",
    "catarraybatchedcopy",
    "memset",
    "memcpy",
    "fillbuffer",
    "copybuffer",
    "elementwise_",
    "dot_kernel",
    "nrm2",
    "quantize",
    "transpose_read",
    "batchedtranspose",
    "rotary",
    "tensor_transform",
};

/// Matrix products: dense layers, convolutions, attention.
constexpr std::string_view kCompute[] = {
    "gemm",        "cijk_",     "nvjet",
    "matmul",      "_mm_",      "bmm",
    "triton_tem_", "triton_mm", "triton_convolution",
    "conv",        "scudnn",    "hcudnn",
    "884cudnn",    "1688cudnn", "16816cudnn",
    "dgrad",       "wgrad",     "fprop",
    "winograd",    "igemm",     "gridwise",
    "fmha",        "flash",     "attention",
    "mha_",        "attn_fwd",  "attn_bwd",
    "_mma_",       "mfma",      "hmma",
    "imma",        "wgmma",     "tensorop",
    "xdlops",      "marlin",    "cudnn_ampere",
    "sm80_xmma",   "sm90_xmma", "grouped_mm",
    "syrk",        "trsm",      "miopensp3",
};

/// Names of instructions that only tensor units have.
constexpr std::string_view kTensor[] = {
    "884",
    "1688",
    "16816",
    "16832",
    "16864",
    "tensorop",
    "hmma",
    "imma",
    "wgmma",
    "gmma",
    "nvjet",
    "mfma",
    "xdlops",
    "_mi16x16",
    "_mi32x32",
    "_mi4x4",
    "tf32",
    "xmma",
    "flash_",
    "flashattn",
    "gtcx",
    "xdl_",
    "fmha_cutlassf_bf16",
    "fmha_cutlassf_f16",
    "fmha_cutlassb_bf16",
    "fmha_cutlassb_f16",
    "flash_attn",
    "triton_tem_",
    "aiter::fmha",
};

/// Kernels on vector units, although the tile may contain a fragment of the list above.
constexpr std::string_view kVector[] = {"simt", "ffma"};

/// Types of sixteen bits or fewer.
constexpr std::string_view kHalf[] = {
    "bf16",  "fp16",   "_f16",   "f16_",      "f16f",          "half",
    "h884",  "s884",   "h1688",  "16816",     "16832",         "16864",
    "hgemm", "hcudnn", "e4m3",   "e5m2",      "fp8",           "float8",
    "int8",  "_i8",    "bfloat", "flash_fwd", "flash_bwd",     "flashattn",
    "df16b", "imma_",  "int_mm", "scaled_mm", "scaled_matmul", "scaled_2_bias_matmul",
};

/// In front of the number of tensors among class_words().
constexpr std::string_view kTensors = "tensors:";

/// Types of eight bits or fewer, and libraries for them.
constexpr std::string_view kNarrow[] = {
    "fp8",           "f8f8",
    "e4m3",          "e5m2",
    "float8",        "int8",
    "i8i8",          "s8s8",
    "imma",          "nvfp4",
    "fp4",           "int4",
    "4bit",          "marlin",
    "awq",           "gptq",
    "w8a8",          "w4a16",
    "int_mm",        "scaled_mm",
    "scaled_matmul", "scaled_2_bias_matmul",
};

constexpr std::string_view kDouble[] = {"double", "f64", "fp64", "dgemm"};

/// Names that TorchInductor gives; in PyTorch 2.0 and 2.1 without the kind of kernel.
constexpr std::string_view kGenerated[] = {
    "triton_poi_", "triton_red_", "triton_per_", "triton_for_",
    "triton_tem_", "triton_mm",   "triton__0d",
};

/// Frameworks, and libraries whose kernels they call.
constexpr std::string_view kFramework[] = {
    "at::",
    "c10::",
    "caffe2",
    "cunn_",
    "cucompute",
    "cudnn",
    "cublas",
    "cutlass",
    "xmma",
    "miopen",
    "elementwise",
    "multi_tensor_apply",
    "tensorflow",
    "xla",
    "fusion",
    "eigen",
    "paddle",
    "phi::",
    "mxnet",
    "apex",
    "transformer_engine",
    "flash",
    "fmha",
    "gemm",
    "cijk_",
    "nvjet",
    "conv",
    "winograd",
    "gridwise",
    "tensorop",
    "splitk",
    "fbgemm",
    "batch_norm",
    "batchnorm",
    "bn_fw_",
    "bn_bw_",
    "layer_norm",
    "layernorm",
    "softmax",
    "dropout",
    "nchwtonhwc",
    "nhwctonchw",
    "batched_transpose",
    "embedding",
    "pooling",
    "ck_tile",
    "cub::",
    "rocprim",
    "thrust::",
    "attn_fwd",
    "attn_bwd",
    "triton",
};

/// Access patterns of memory-bound kernels; the first list with a match decides.
constexpr std::string_view kScattered[] = {
    "multi_tensor_apply", "index_put", "index_add", "scatter", "embedding", "depthwise",
};
constexpr std::string_view kNormalization[] = {
    "softmax", "layer_norm", "layernorm",  "rmsnorm",   "rms_norm", "group_norm",  "groupnorm",
    "bn_fw_",  "bn_bw_",     "batch_norm", "batchnorm", "bnorm",    "triton_per_",
};
/// Losses and conversions of layout.
constexpr std::string_view kFull[] = {"nll_loss", "cross_entropy", "nchwto", "nhwcto"};
constexpr std::string_view kReduction[] = {"reduce_kernel", "triton_red_"};
constexpr std::string_view kPointwise[] = {
    "elementwise",
    "triton_poi_",
    "op_generic_tensor",
    "optensor",
    "scalepackedtensor",
    "addpackedtensor",
    "dropout",
    "relu",
    "gelu",
    "silu",
    "swish",
    "rotary",
};

bool has_any(std::string_view name, std::span<const std::string_view> fragments) {
  return std::any_of(fragments.begin(), fragments.end(), [&](std::string_view fragment) {
    return name.find(fragment) != std::string_view::npos;
  });
}

/// Returns the name in lower case, without what only looks like an operation or a type: the name of
/// a library, and vLLM's word for a cache that is as wide as the model.
std::string prepared(std::string_view text) {
  constexpr std::string_view kMisleading[] = {"fbgemm", "fp8kvcachedatatype)0"};
  std::string lower;
  lower.reserve(text.size());
  for (const char c : text) {
    lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const std::string_view word : kMisleading)
      if (lower.ends_with(word)) lower.resize(lower.size() - word.size());
  }
  return lower;
}

/// ROCm's matrix products spell their types in the fourth part: Cijk_Ailk_Bljk_HHS_BH_MT128x128x32.
bool is_half_cijk(std::string_view name) {
  if (!name.starts_with("cijk_")) return false;
  for (int part = 0; part < 3; ++part) {
    const std::size_t end = name.find('_');
    if (end == std::string_view::npos) return false;
    name.remove_prefix(end + 1);
  }
  return name.starts_with("h") || name.starts_with("b") || name.starts_with("f8") ||
         name.starts_with("i8");
}

/// NVIDIA's nvjet kernels begin with the types of their inputs and output, newer ones behind their
/// architecture ("nvjet_sm90_tst"): h and t are halves, q, r and o are narrower, s is single.
/// Returns the first type; 0 if the name is of no such kernel.
char nvjet_type(std::string_view name) {
  constexpr std::string_view kMark = "nvjet_";
  std::size_t at = name.find(kMark);
  if (at == std::string_view::npos) return 0;
  at += kMark.size();
  if (name.substr(at).starts_with("sm")) {
    const std::size_t types = name.find('_', at);
    if (types == std::string_view::npos) return 0;
    at = types + 1;
  }
  return at < name.size() ? name[at] : '\0';
}

bool is_one_of(char type, std::string_view types) {
  return type != 0 && types.find(type) != std::string_view::npos;
}

/// Returns how many tensors a kernel reads and writes, as its name says; 0 if it does not. A kernel
/// of lists names how many it reads, and writes one; an elementwise kernel names all.
int tensors_of(std::string_view name) {
  const auto number_behind = [&](std::string_view words, std::size_t from) {
    const std::size_t at = name.find(words, from);
    if (at == name.npos || at + words.size() >= name.size()) return 0;
    const char digit = name[at + words.size()];
    return digit >= '1' && digit <= '9' ? digit - '0' : 0;
  };
  for (const std::string_view words : {kTensors, std::string_view("array<char*, ")}) {
    if (const int tensors = number_behind(words, 0); tensors > 0) return tensors;
  }
  // BinaryOpScalarFunctor<float, 1, 1, 0>: lists, lists that are read, the list that is written.
  const std::size_t functor = name.find("functor<");
  if (name.find("multi_tensor_apply") == name.npos || functor == name.npos) return 0;
  const std::size_t lists = name.find(", ", functor);
  const int read = lists == name.npos ? 0 : number_behind(", ", lists + 2);
  return read > 0 ? read + 1 : 0;
}

Boundness boundness(std::string_view name) {
  if (has_any(name, kLatency)) return Boundness::latency;
  if (has_any(name, kMemory)) return Boundness::memory;
  if (has_any(name, kCompute)) return Boundness::compute;
  return Boundness::memory;
}

Origin origin(std::string_view name) {
  if (has_any(name, kGenerated)) return Origin::compiler;
  return has_any(name, kFramework) ? Origin::framework : Origin::unknown;
}

Pattern pattern(std::string_view name) {
  if (has_any(name, kScattered)) return Pattern::other;
  if (has_any(name, kNormalization)) return Pattern::normalization;
  if (has_any(name, kReduction)) return Pattern::reduction;
  return has_any(name, kPointwise) ? Pattern::pointwise : Pattern::other;
}

}  // namespace

KernelClass classify_kernel(std::string_view name) {
  const std::string lower = prepared(name);
  KernelClass kind;
  kind.bound = boundness(lower);
  if (kind.bound == Boundness::memory) kind.pattern = pattern(lower);
  const char nvjet = nvjet_type(lower);
  kind.half_precision = has_any(lower, kHalf) || is_half_cijk(lower) || is_one_of(nvjet, "htqro");
  kind.narrow = has_any(lower, kNarrow) || is_one_of(nvjet, "qro");
  kind.double_precision = has_any(lower, kDouble);
  kind.origin = origin(lower);
  kind.keeps_precision = kind.bound == Boundness::memory && kind.origin != Origin::compiler &&
                         (kind.pattern == Pattern::normalization || has_any(lower, kFull));
  kind.tensors = tensors_of(lower);
  kind.tensor_cores =
      kind.bound == Boundness::compute && has_any(lower, kTensor) && !has_any(lower, kVector);
  return kind;
}

std::string class_words(std::string_view name) {
  const std::string lower = prepared(name);
  std::vector<std::string> words;
  // These two need more than a fragment; the first matches only at the start of a name.
  if (lower.starts_with("cijk_"))
    words.push_back(is_half_cijk(lower) ? "cijk_x_x_h" : "cijk_x_x_s");
  if (const char nvjet = nvjet_type(lower); nvjet != 0)
    words.push_back(is_one_of(nvjet, "qro")  ? "nvjet_q"
                    : is_one_of(nvjet, "ht") ? "nvjet_h"
                                             : "nvjet_s");
  const auto add = [&](std::span<const std::string_view> fragments) {
    for (const std::string_view fragment : fragments) {
      const bool known = std::find(words.begin(), words.end(), fragment) != words.end();
      if (!known && lower.find(fragment) != std::string::npos) words.emplace_back(fragment);
    }
  };
  add(kLatency), add(kMemory), add(kCompute), add(kTensor), add(kVector), add(kHalf), add(kNarrow);
  add(kDouble), add(kGenerated), add(kFramework);
  add(kScattered), add(kNormalization), add(kFull), add(kReduction), add(kPointwise);
  if (lower.find("sqrt") != std::string::npos) words.emplace_back("sqrt");
  if (const int tensors = tensors_of(lower); tensors > 0)
    words.push_back(std::string(kTensors) + static_cast<char>('0' + tensors));
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : "-") + word;
  return all;
}

}  // namespace foretrace
