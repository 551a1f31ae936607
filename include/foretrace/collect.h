#pragma once

// Records a program that runs on a GPU, without changing it. The program is started with two
// additional libraries, which the CUDA driver, NVTX's headers and the loader load by themselves;
// they write events into one spool per process (spool.h), which survives a crash of the program.
// import_trace() reads spools.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/trace_part.h"
#include "foretrace/units.h"

namespace foretrace {

struct CollectOptions {
  /// Selects from: kernels, api, sync, graphs, nvtx, memory, device_memory, overhead.
  std::vector<std::string> record = {"kernels", "api",           "sync",    "graphs",
                                     "nvtx",    "device_memory", "overhead"};
  bool python = true;           ///< Steps and loaders of PyTorch programs, by a hook in Python.
  bool ops = false;             ///< Ranges around PyTorch's operators, steps and loaders.
  bool memory_history = false;  ///< PyTorch's own history of allocations, as a separate snapshot.
  Nanoseconds start_after{0};   ///< Time from the program's first use of CUDA.
  Nanoseconds duration{0};      ///< 0: to the end.
  std::optional<StepRange> steps = {};
  bool profiler_api = false;  ///< Only between cudaProfilerStart and cudaProfilerStop.
};

/// The outcome of the program.
struct CollectedRun {
  int status = 0;                      ///< Its exit status; 128 + the signal that ended it.
  std::vector<std::string> spools;     ///< Paths, one per process that recorded something.
  std::vector<std::string> snapshots;  ///< Paths of memory snapshots that the program wrote.
  bool folder_is_gone = false;         ///< The program removed or renamed the folder of spools.
  bool has_driver = true;  ///< The loader finds libcuda.so.1, without which CUDA is off.
};

/// Everything that can be recorded, in the order of CollectOptions::record.
const std::vector<std::string_view>& recordable();

/// Throws Error for something that cannot be recorded, for a negative time, and if more than one of
/// `start_after`, `steps` and `profiler_api` says when to record.
void check(const CollectOptions& options);

/// Runs `command` (its first word is looked up in PATH) with the same standard streams and waits
/// for it. Spools go to `folder`, which must exist. Signals from the keyboard are left to the
/// program, and other signals that end or notify it are passed on. Throws Error if the program
/// cannot be started or one of our libraries is missing.
CollectedRun collect(const std::vector<std::string>& command, const std::string& folder,
                     const CollectOptions& options);

}  // namespace foretrace
