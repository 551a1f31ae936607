#pragma once

// Recognizes the public vocabulary: names that CUDA, PyTorch and NCCL give, which every program of
// this kind contains. They reveal nothing about the program, and predictions depend on them.

#include <string_view>

namespace foretrace {

/// "cudaLaunchKernel", "cuMemAlloc_v2", "hipMemcpyAsync".
bool is_public_call(std::string_view name);
/// "aten::add_", "c10d::allreduce_", "record_param_comms", "Buffer Flush", "ProfilerStep#3".
bool is_public_op(std::string_view name);
/// "AddmmBackward0". PyTorch's own functions end in a number; users' functions do not.
bool is_public_autograd_node(std::string_view name);
/// "Memcpy HtoD (Pageable -> Device)".
bool is_public_copy(std::string_view name);
/// "ncclDevKernel_AllReduce_Sum_f32_RING_LL", without the parenthesized part at its end.
bool is_public_collective_kernel(std::string_view name);
/// "allreduce", "all_gather_into_tensor".
bool is_public_collective(std::string_view name);
/// "float", "c10::BFloat16", "Tensor(long int)".
bool is_public_type(std::string_view name);
/// "12", "[1, -1]", "0.5", "True".
bool is_public_value(std::string_view text);
/// Whether metadata of a trace is public: versions and switches of the profiler.
bool is_public_metadata(std::string_view key, std::string_view json);

}  // namespace foretrace
