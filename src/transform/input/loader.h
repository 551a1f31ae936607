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
  Bandwidth cache_bandwidth{};  ///< 0: it takes no time.
  CachedSet set{.policy = "none"};
  Bandwidth network{};  ///< 0: it takes no time.
  bool coordinated = false;

  void describe(Fields& fields);
  /// Throws Error where one setting needs another.
  void check() const;
  bool reads() const { return storage.bytes_per_second > 0; }
  /// Cores of one job.
  std::optional<double> cores_of_job() const;
};

struct Batch {
  Group work;
  Bytes bytes{};  ///< Copied to the device in its step.
};

/// By the thread that loads.
using Batches = std::map<LaneId, std::vector<Batch>>;

/// The load of a batch on storage and network, and the part of it that this job reads and prepares.
struct BatchCost {
  ItemShares shares;
  double part = 1;      ///< 1 / jobs with coordinated preparation.
  Bytes disk{};         ///< Read from disk.
  Bytes read{};         ///< `disk`, plus cache hits as the bytes that the disk reads in that time.
  Bytes remote{};       ///< From the caches of other servers.
  Bandwidth storage{};  ///< Bandwidth for one of the jobs.
};

BatchCost cost_of_batch(const LoaderSettings& settings);

/// Time of a worker on a batch as the table of rates says; nothing without one.
std::optional<Nanoseconds> prep_time(const LoaderSettings& settings);

/// Reading a batch: consecutive tasks, the first of which waits for the worker's free place and the
/// worker itself.
struct Fetch {
  TaskId first = kNoTask;  ///< kNoTask: reading is not modelled.
  TaskId last = kNoTask;
};

/// Where the batches of one training thread are read: the shared lanes "storage" and "network",
/// which are added when first asked for. Each lane serves batches in their order.
class FetchLanes {
 public:
  FetchLanes(const LoaderSettings& settings, LaneId thread);
  Fetch add(Graph& graph);
  /// For one batch on an idle lane; for the slower of both lanes.
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

/// Moves the work of workers and of the threads of their training process to one shared lane whose
/// capacity is that of `cores` cores: each runs on at most one, and when more are busy than there
/// are cores, all get the same.
void share_cores(Graph& graph, double cores, const std::vector<LaneId>& workers);

/// Times of a step in the limit of a loader that has run for long, bounded by each stage alone.
struct StageTimes {
  Nanoseconds train{0};  ///< With batches that are there at once.
  Nanoseconds copy{0};   ///< The cost of input copies in `train`.
  Nanoseconds prep{0};   ///< Greater of that and of preparing.
  Nanoseconds fetch{0};  ///< Greater of all three: the step.
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
  Nanoseconds work{0};  ///< As recorded or given, of all batches.
  Nanoseconds host{0};
  Nanoseconds hand_over{0};
  Bytes largest{};

  CpuWork work_of_step(const LoaderSettings& settings) const;
};

/// `train` and `copy` of StageTimes. `loading` and reading take no time in them.
StageTimes times_without_loading(Graph& graph, const std::vector<TaskId>& loading);

/// `prep` and `fetch`, from the other two.
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
