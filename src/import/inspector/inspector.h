#pragma once

// Logs of NCCL Inspector, a plugin that NVIDIA ships with NCCL: how long each collective took on
// each rank. They say nothing of when it ran, so they are no trace. A log has one JSON object a
// line (formats v4.0 and v4.2; NVIDIA/nccl, ext-profiler/inspector/README.md):
//
//     {"header": {"id": "0x7f8c", "rank": 2, "n_ranks": 8, "nnodes": 1}, "metadata": {...},
//      "coll_perf": {"coll": "AllReduce", "coll_sn": 7, "coll_msg_size_bytes": 1024,
//                    "coll_exec_time_us": 62, "coll_timing_source": "kernel_gpu", ...}}
//
// or, as text for Prometheus (v5.1), the latest time and bus bandwidth of each rank by size.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// An operation of a communicator, on one of its ranks.
struct InspectedOperation {
  std::string operation;           ///< As NCCL names it: "AllReduce", "Send".
  bool is_point_to_point = false;  ///< A send or a receive.
  std::string communicator;        ///< Its id, the same on all ranks; empty if not given.
  std::string name;                ///< That the program gave the communicator, or empty.
  std::uint32_t rank = 0;          ///< In the communicator.
  std::uint32_t ranks = 1, nodes = 1;
  std::optional<std::int64_t> number;  ///< Of the call in the communicator, by operation.
  std::optional<Bytes> bytes;          ///< As NCCL counts them: what a rank sends, or for a
                                       ///< reduce-scatter, receives.
  Nanoseconds time{0};                 ///< Of the kernel, with its wait for other ranks.
  double bus_bandwidth = 0;            ///< Bytes per second; 0 if not given.
};

/// Whether the file, or a file in the folder, begins like such a log. Returns false if it cannot be
/// read.
bool holds_inspector_log(const std::string& path);

/// Calls `visit` with the operations of the log, or of all logs in the folder in the order of their
/// names. Reads line by line. Lines that say too little are left out and noted. Throws TraceError
/// if a file cannot be read.
void read_inspector_log(const std::string& path, Notes& notes,
                        const std::function<void(const InspectedOperation&)>& visit);

}  // namespace foretrace
