#pragma once

// The parts of the transform "loader": its settings, the cost of a batch, the lanes that batches go
// through, and the figures. See loader.cc for the picture.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/storage.h"
#include "graph/select.h"
#include "transform/edit/edit.h"

namespace foretrace {

struct LoaderSettings {
  Selector where{"input"};
  std::int64_t workers = 4;
  std::int64_t prefetch_factor = 2;
  std::optional<std::int64_t> cores;
  std::optional<Nanoseconds> batch_time;
  double work_factor = 1;
  Nanoseconds hand_over = 1ms;
  Bandwidth first_touch{2.5e9};
  double host_factor = 1.05;
  bool pin_memory = false;
  Bandwidth pinned_bandwidth{12e9};

  std::int64_t samples = 0;  ///< Samples in a batch; 0: unknown.
  std::vector<std::string> prep_rates;
  Bytes dataset_bytes{};
  std::int64_t dataset_samples = 0;
  Bandwidth storage{};          ///< 0: reading is not modelled.
  Bandwidth cache_bandwidth{};  ///< 0: cache hits take no time.
  CachedSet set{.policy = "none"};
  Bandwidth network{};  ///< 0: reads from other servers take no time.
  bool coordinated = false;

  void describe(Fields& fields);
  /// Throws Error if a setting lacks another one that it needs, or cannot be read.
  void check() const;
  bool reads() const { return storage.bytes_per_second > 0; }
  /// Cores for each of the jobs; nullopt if `cores` is not given.
  std::optional<double> cores_of_job() const;

 private:
  void describe_workers(Fields& fields);
  void describe_data(Fields& fields);
};

struct Batch {
  Group work;
  Bytes bytes{};  ///< Copied to the device in its step.
};

/// The batches of each thread that loads.
using Batches = std::map<LaneId, std::vector<Batch>>;

/// The load of a batch on storage and network, and the part of it that this job reads and prepares.
struct BatchCost {
  ItemShares shares;
  double part = 1;  ///< 1 / jobs with coordinated preparation, otherwise 1.
  Bytes disk{};     ///< Read from disk.
  Bytes read{};    ///< `disk`, plus cache hits as the bytes that the disk would read in their time.
  Bytes remote{};  ///< From the caches of other servers.
  Bandwidth storage{};  ///< Bandwidth for one of the jobs.
};

BatchCost cost_of_batch(const LoaderSettings& settings);

/// Returns the time that a worker spends on a batch according to prep_rates; nullopt if that is
/// empty.
std::optional<Nanoseconds> prep_time(const LoaderSettings& settings);

/// The tasks that read a batch, one after the other. The first waits for the worker and for a free
/// place in the loader.
struct Fetch {
  TaskId first = kNoTask;  ///< kNoTask: reading is not modelled.
  TaskId last = kNoTask;
};

/// Reads the batches of one training thread on the shared lanes "storage" and "network of storage",
/// which it adds to the graph when it first needs them. Each lane serves batches in their order.
class FetchLanes {
 public:
  FetchLanes(const LoaderSettings& settings, LaneId thread);
  Fetch add(Graph& graph);
  /// Time to read one batch if both lanes are idle, and the part of it on the slower lane.
  Nanoseconds time() const;
  Nanoseconds slower() const;

 private:
  struct Stage {
    const char* lane;
    const char* task;
    LaneKind kind;
    Bytes bytes;
    Bandwidth capacity;
    TaskId last = kNoTask;
  };
  LaneId thread_;
  std::vector<Stage> stages_;
};

/// Moves the work of workers and of the threads of their training process to one shared lane with
/// the capacity of `cores` cores. Each of them uses at most one core; if more are busy than there
/// are cores, all get the same share.
void share_cores(Graph& graph, double cores, const std::vector<LaneId>& workers);

/// Time of a step with a loader that has run for long, as more and more stages bound it.
struct StageTimes {
  Nanoseconds train{0};  ///< Training alone: every batch is available at once.
  Nanoseconds copy{0};   ///< The part of `train` due to input copies.
  Nanoseconds prep{0};   ///< Training and preparation.
  Nanoseconds fetch{0};  ///< Training, preparation and reading: the whole step.
};

/// CPU work of a step.
struct CpuWork {
  Nanoseconds loading{0};  ///< Work of all workers of the job together.
  Nanoseconds host{0};     ///< Work of the threads that train.
  double batches = 1;
};

/// The loading found in a graph.
struct LoaderTally {
  std::size_t batches = 0;
  std::size_t threads = 0;
  std::size_t steps = 0;
  std::size_t slowed = 0;
  bool shares_cores = false;
  Nanoseconds work{0};  ///< Loading work of all batches, as recorded or given.
  Nanoseconds ops{0};   ///< Part of it in ops of PyTorch.
  Nanoseconds host{0};
  Nanoseconds hand_over{0};
  Bytes largest{};

  CpuWork work_of_step(const LoaderSettings& settings) const;
};

/// Returns StageTimes with only `train` and `copy` set, from replays in which `loading` and reading
/// take no time. Leaves the graph as it was.
StageTimes times_without_loading(Graph& graph, const std::vector<TaskId>& loading);

/// Returns `times` with `prep` and `fetch` computed from the other two.
StageTimes stage_times(const LoaderSettings& settings, StageTimes times, CpuWork work);

std::vector<Figure> loader_figures(const LoaderSettings& settings, const StageTimes& times,
                                   CpuWork work);

/// Writes the summary and the assumptions.
void describe_loading(const LoaderSettings& settings, const LoaderTally& tally,
                      const StageTimes& times, Effect& effect);

/// Rounds to whole bytes, clamped to 64 bits.
Bytes rounded(double bytes);

/// "reading", "preparation" or "training".
std::string bottleneck(const StageTimes& times);

}  // namespace foretrace
