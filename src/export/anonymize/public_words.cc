#include "export/anonymize/public_words.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace foretrace {
namespace {

template <std::size_t count>
bool is_one_of(std::string_view text, const std::string_view (&words)[count]) {
  return std::find(std::begin(words), std::end(words), text) != std::end(words);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_word(char c) { return is_digit(c) || is_upper(c) || is_lower(c) || c == '_'; }

bool is_identifier(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word);
}

/// Whether `holds` is true for each word of `text`: a sequence of letters, digits and, if `joins`,
/// underscores.
template <class Holds>
bool each_word(std::string_view text, bool joins, Holds&& holds) {
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end]) && (joins || text[end] != '_')) ++end;
    if (end > i && !holds(text.substr(i, end - i))) return false;
    i = end + 1;
  }
  return true;
}

bool is_number(std::string_view word) { return std::all_of(word.begin(), word.end(), is_digit); }

bool is_step_marker(std::string_view name) {
  constexpr std::string_view kWords[] = {"profilerstep", "training_step", "train_step", "step",
                                         "iteration",    "iter",          "batch"};
  const std::size_t digits = name.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == name.size()) return false;
  std::string word;
  for (const char c : name.substr(0, name.find_last_not_of("# _:-=", digits) + 1))
    word += is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  return is_one_of(word, kWords);
}

constexpr std::string_view kCollectiveKernelWords[] = {
    "ncclKernel",
    "ncclDevKernel",
    "rcclKernel",
    "ncclDevFunc",
    "AllReduce",
    "AllGather",
    "ReduceScatter",
    "Broadcast",
    "Reduce",
    "SendRecv",
    "Generic",
    "Sum",
    "Prod",
    "Min",
    "Max",
    "MinMax",
    "PreMulSum",
    "SumPostDiv",
    "f16",
    "f32",
    "f64",
    "bf16",
    "i8",
    "i32",
    "i64",
    "u8",
    "u32",
    "u64",
    "f8e4m3",
    "f8e5m2",
    "int8",
    "uint8",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "half",
    "float",
    "double",
    "RING",
    "TREE",
    "NVLS",
    "COLLNET",
    "DIRECT",
    "CHAIN",
    "PAT",
    "LL",
    "LL128",
    "SIMPLE",
    "copy",
    "t",
    "t4",
    "4",
    "1",
    "2",
};

constexpr std::string_view kTypeWords[] = {
    "c10",
    "Half",
    "BFloat16",
    "Float8_e4m3fn",
    "Float8_e5m2",
    "Float8_e4m3fnuz",
    "Float8_e5m2fnuz",
    "complex",
    "float",
    "double",
    "long",
    "int",
    "short",
    "char",
    "signed",
    "unsigned",
    "bool",
    "Scalar",
    "TensorList",
    "GenericList",
    "ScalarList",
    "Tensor",
    "Int",
    "Bool",
    "Double",
    "Float",
    "Long",
    "Byte",
    "Char",
    "Short",
    "String",
    "Device",
    "None",
    "OptionalTensorList",
    "Optional",
    "List",
    "qint8",
    "quint8",
    "qint32",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "Bits8",
    "uint16",
    "uint32",
    "uint64",
    "Stream",
    "Generator",
    "nullptr",
    "t",
    "Undefined",
    "Number",
    "Storage",
    "Layout",
};

}  // namespace

bool is_public_call(std::string_view name) {
  if (name == "(unnamed call)" || name == "INVALID") return true;
  for (const std::string_view prefix : {"cuda", "cu", "hip"}) {
    if (name.starts_with(prefix) && name.size() > prefix.size() && is_upper(name[prefix.size()]))
      return is_identifier(name);
  }
  return name.starts_with("hsa_") && is_identifier(name);
}

bool is_public_op(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "record_param_comms",
      "DistributedDataParallel.forward",
      "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
      "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
      "Buffer Flush",
      "Activity Buffer Request",
      "Runtime Triggered Module Loading",
      "Lazy Function Loading",
      "Command Buffer Full",
      "Instrumentation",
      "Resource",
      "(overhead of the profiler)",
      "PyTorch Profiler (0)",
      "Iteration Start: PyTorch Profiler",
      "Record Window End",
  };
  if (is_step_marker(name) || is_one_of(name, kNames)) return true;
  for (const std::string_view space : {"aten::", "c10::", "c10d::", "prim::", "prims::"}) {
    if (!name.starts_with(space)) continue;
    const std::string_view rest = name.substr(space.size());
    return !rest.empty() &&
           std::all_of(rest.begin(), rest.end(), [](char c) { return is_word(c) || c == '.'; });
  }
  return false;
}

bool is_public_autograd_node(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "torch::autograd::AccumulateGrad", "torch::autograd::CopyBackwards",
      "torch::autograd::CopySlices", "torch::autograd::GraphRoot",
      "torch::autograd::UndefinedGradBackward"};
  if (is_one_of(name, kNames)) return true;
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  return digits < name.size() && is_identifier(name) && is_upper(name[0]) &&
         name.substr(0, digits).ends_with("Backward");
}

bool is_public_copy(std::string_view name) {
  constexpr std::string_view kWords[] = {
      "Memcpy",
      "Memset",
      "HtoD",
      "DtoH",
      "DtoD",
      "PtoP",
      "HtoH",
      "HtoA",
      "AtoH",
      "AtoA",
      "AtoD",
      "DtoA",
      "Pageable",
      "Pinned",
      "Device",
      "Array",
      "Managed",
      "Unified",
      "Unknown",
      "Static",
      "Host",
      "Peer",
      "CopyHostToDevice",
      "CopyDeviceToHost",
      "CopyDeviceToDevice",
      "FillBuffer",
      "hipMemcpyHostToDevice",
      "hipMemcpyDeviceToHost",
      "hipMemcpyDeviceToDevice",
      "CopyHostToHost",
      "CopyPeerToPeer",
      "CUDA",
      "memcpy",
      "memset",
      "Unified Memory",
      "MEMORY_COPY_HOST_TO_DEVICE",
      "MEMORY_COPY_DEVICE_TO_HOST",
      "MEMORY_COPY_DEVICE_TO_DEVICE",
  };
  return each_word(name, true, [&](std::string_view word) { return is_one_of(word, kWords); });
}

bool is_public_collective_kernel(std::string_view name) {
  const bool marked = name.starts_with("nccl") || name.starts_with("rccl");
  return marked && is_identifier(name) && each_word(name, false, [&](std::string_view word) {
           return is_one_of(word, kCollectiveKernelWords);
         });
}

bool is_public_collective(std::string_view name) {
  constexpr std::string_view kWords[] = {
      "allreduce", "all",     "reduce",    "gather",    "scatter",       "broadcast", "send",
      "recv",      "barrier", "wait",      "into",      "tensor",        "to",        "alltoall",
      "base",      "single",  "coalesced", "allgather", "reducescatter", "list",      "object",
      "oop",       "init",    "nccl",      "gloo",      "mpi",           "ucc",       "alltoallv",
      "sparse",    "v",       "monitored", "inplace",
  };
  return each_word(name, false, [&](std::string_view word) {
    return is_one_of(word, kWords) || is_number(word);
  });
}

bool is_public_type(std::string_view name) {
  return each_word(name, true, [&](std::string_view word) {
    return is_one_of(word, kTypeWords) || is_number(word);
  });
}

bool is_public_value(std::string_view text) {
  constexpr std::string_view kWords[] = {"True", "False", "None", "inf", "nan",
                                         "true", "false", "null", "e"};
  return each_word(text, true, [&](std::string_view word) {
    if (is_one_of(word, kWords)) return true;
    // The sign splits "1e-05" into "1e" and "05".
    const std::size_t digits = word.find_first_not_of("0123456789");
    return digits == std::string_view::npos || (digits > 0 && word.substr(digits) == "e");
  });
}

bool is_public_metadata(std::string_view key, std::string_view json) {
  constexpr std::string_view kKeys[] = {
      "schemaVersion",       "displayTimeUnit",     "cupti_version",      "cuda_runtime_version",
      "cuda_driver_version", "hip_runtime_version", "hip_driver_version", "roctracer_version",
      "rocprofiler_version", "rocm_version",        "nccl_version",       "record_shapes",
      "with_stack",          "profile_memory",      "with_flops",         "with_modules",
      "is_distributed",      "cuda_stream_flags",
  };
  if (!is_one_of(key, kKeys)) return false;
  return json == "\"ms\"" || json == "\"ns\"" || is_public_value(json);
}

}  // namespace foretrace
