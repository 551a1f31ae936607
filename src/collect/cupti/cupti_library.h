#pragma once

// The functions of libcupti, bound at run time. Another client in the process (PyTorch's profiler)
// may have loaded the library already. Opening it by SONAME gives the same copy; two copies would
// interfere with each other.

#include "collect/cupti/cupti_abi.h"

namespace foretrace::collect {

struct CuptiLibrary {
  using Result = cupti::Result;

  Result (*get_version)(std::uint32_t* version) = nullptr;
  Result (*subscribe)(cupti::Subscriber* subscriber, cupti::Callback callback,
                      void* user) = nullptr;
  Result (*enable_callback)(std::uint32_t enable, cupti::Subscriber subscriber,
                            cupti::Domain domain, std::uint32_t id) = nullptr;
  Result (*enable)(cupti::Kind kind) = nullptr;
  Result (*disable)(cupti::Kind kind) = nullptr;
  Result (*register_callbacks)(cupti::BufferRequested requested,
                               cupti::BufferCompleted completed) = nullptr;
  Result (*next_record)(std::uint8_t* buffer, std::size_t valid,
                        cupti::Activity** record) = nullptr;
  Result (*dropped_records)(void* context, std::uint32_t stream, std::size_t* dropped) = nullptr;
  Result (*flush_all)(std::uint32_t flag) = nullptr;
  Result (*callback_name)(cupti::Domain domain, std::uint32_t id, const char** name) = nullptr;
  Result (*set_thread_id_type)(std::uint32_t type) = nullptr;

  // These are not in every version of libcupti; nullptr if missing.
  Result (*subscribe_v2)(cupti::Subscriber* subscriber, cupti::Callback callback, void* user,
                         cupti::SubscriberParams* params) = nullptr;
  Result (*register_timestamps)(cupti::TimestampCallback callback) = nullptr;
  Result (*enable_runtime_api)(std::uint32_t id, std::uint8_t enable) = nullptr;
  Result (*enable_driver_api)(std::uint32_t id, std::uint8_t enable) = nullptr;
  Result (*enable_all_sync_records)(std::uint8_t enable) = nullptr;
  Result (*graph_node_id)(void* node, std::uint64_t* id) = nullptr;
  Result (*graph_id)(void* graph, std::uint32_t* id) = nullptr;
  Result (*result_text)(Result result, const char** text) = nullptr;

  /// Loads the library, from `path` if that is not nullptr, and binds its functions. Returns
  /// nullptr, or a sentence that says what is missing.
  const char* load(const char* path);

  const char* text(Result result) const;
};

}  // namespace foretrace::collect
