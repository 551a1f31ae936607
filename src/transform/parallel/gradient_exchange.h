#pragma once

// Exchanges the gradients of a job on one GPU with other workers, bucket by bucket, while the
// backward pass goes on: the common part of data_parallel, zero and p3.
//
//     stream   |FFFF|B4 B3 c B2 B1 c|CU|       c: gradients into a bucket, C: out of all of them
//     network            |RRRR|  |RR|          R: all-reduce or reduce-scatter of a bucket, once
//                                                 its last gradient is ready; the update waits

#include <string>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/graph.h"
#include "foretrace/timeline.h"
#include "foretrace/transform.h"
#include "network/collective.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/contention.h"
#include "transform/parallel/gradients.h"

namespace foretrace {

/// How late workers are, and how much kernels and transfers slow each other down.
struct WorkerSettings {
  ContentionShares contention;
  Nanoseconds lateness{};
  double lateness_share = 0;

  WorkerSettings();
  void describe(Fields& fields);
};

struct ExchangeSettings {
  Bytes bucket{25 << 20}, first_bucket{1 << 20};
  bool overlap = true, copies = true;
  WorkerSettings workers;

  void describe(Fields& fields);
};

/// How much later than a typical worker the slowest one is ready. The lateness grows evenly over
/// the passes of a step: half way through them it is half of most().
class ArrivalSkew {
 public:
  ArrivalSkew(const BackwardPass& pass, const Timeline& timeline, const WorkerSettings& settings,
              std::int64_t workers);
  Nanoseconds at(TaskId task) const;
  Nanoseconds most() const { return most_; }

 private:
  const Timeline& timeline_;
  Nanoseconds begin_{0}, end_{0}, most_{0};
};

class GradientExchange {
 public:
  struct Totals {
    std::size_t buckets = 0;
    Nanoseconds transfer{0}, copies{0}, late{0};
    Bytes largest{};  ///< Gradients of the step with the most.
  };

  /// REQUIRES: `timeline` is of the graph before any exchange, and all references outlive this.
  GradientExchange(Graph& graph, const Timeline& timeline, Communicator& communicator,
                   const ExchangeSettings& settings, std::int64_t workers);
  /// Makes send() copy gradients into and out of buckets, at this bandwidth of memory. Nothing is
  /// copied without it.
  void copy_with(Bandwidth memory) { memory_ = memory; }

  /// Makes each bucket be summed over copies of the workers too: an all-reduce in `among` of one
  /// part in `parts` of its bytes.
  void replicate_with(Communicator& among, std::int64_t parts) { among_ = &among, parts_ = parts; }

  /// Sends the gradients of a step; its update waits for them. Returns the last transfer, or
  /// kNoTask if there are no gradients.
  TaskId send(const BackwardPass& pass, Operation operation);
  /// Appends a transfer of a step to the lane of this name, and counts it.
  TaskId transfer(const BackwardPass& pass, const char* lane, const std::string& name,
                  Operation operation, Bytes bytes, Communicator& by);

  /// Sends gradients that are contiguous in memory and need no bucket. Returns the last transfer;
  /// last_unit() is the transfer that must wait for the gradients.
  TaskId send_unit(const BackwardPass& pass, const char* lane, Bytes bytes);
  TaskId last_unit() const { return last_unit_; }
  /// Counts a step whose gradients send_unit() has sent.
  void count_step(const BackwardPass& pass, const ArrivalSkew& late);

  const Totals& totals() const { return totals_; }
  std::size_t changed() const { return changed_; }
  /// The figures of transfers, copies and lateness per step.
  std::vector<Figure> figures(std::size_t steps) const;

 private:
  struct Bucket {
    Bytes bytes{};
    TaskId ready = kNoTask;
  };
  std::vector<Bucket> buckets_of(const BackwardPass& pass) const;
  Nanoseconds copy_time(Bytes bytes) const;
  TaskId send_bucket(const BackwardPass& pass, const Bucket& bucket, const ArrivalSkew& late,
                     Operation operation);
  TaskId replicated(const BackwardPass& pass, TaskId sent, Bytes bytes);
  TaskId copied_back(const BackwardPass& pass);

  Graph& graph_;
  const Timeline& timeline_;
  Communicator& communicator_;
  const ExchangeSettings& settings_;
  std::int64_t workers_;
  Bandwidth memory_{};
  Communicator* among_ = nullptr;
  std::int64_t parts_ = 1;
  TaskId last_unit_ = kNoTask;
  Totals totals_;
  std::size_t changed_ = 0;
};

}  // namespace foretrace
