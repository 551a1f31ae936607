// One GPU's job on many: each trains on batches of its own, and gradients are summed in buckets
// while the backward pass goes on (S. Li et al., PyTorch Distributed, VLDB 2020).
//
//     stream   |FFFF|B4 B3 c B2 B1 c|CU|       c: gradients into a bucket, C: out of all of them
//     network            |RRRR|  |RR|          R: all-reduce of a bucket, once its last gradient
//                                                 is ready; the update waits for the last one
//
// A bucket takes gradients in the order in which they are ready, until it holds `bucket` bytes; the
// first one only `first_bucket`. The all-reduce takes what the network's model says. Copies into
// and out of buckets read and write each gradient once.
//
// Kernels and collectives beside each other take longer: see contention.cc.
//
// The slowest worker is ready later than a typical one: by E(N) (lateness + lateness_share x time
// of both passes), where E(N) is the expected greatest of N standard normal numbers. A bucket that
// is ready half way through the passes waits for half of that.
//
// Ignored: the host's work for buckets.

#include <algorithm>
#include <vector>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/contention.h"
#include "transform/parallel/gradients.h"
#include "transform/parallel/memory_rate.h"

namespace foretrace {
namespace {

/// Least size of an element: a gradient in fp8.
constexpr Bytes kLeastBucket{1};

/// How late workers are. Fitted to six of 130 published throughputs on 4 to 16 GPUs (DGX-1V, DGX-2,
/// DGX A100; NVIDIA's DeepLearningExamples) against those of one; without it predictions for the
/// others are 6 % off in the median, with it 3 %.
constexpr Nanoseconds kLateness = 3ms;
constexpr double kLatenessShare = 0.012;

class DataParallel final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("gpus", gpus_, "Workers in all, each on a GPU of its own", 1, 1'000'000);
    network_.describe(fields);
    fields.bytes("bucket", bucket_, "Gradients of so many bytes are sent together", kLeastBucket);
    fields.bytes("first_bucket", first_bucket_,
                 "The same for the bucket that is ready first; at most `bucket`", kLeastBucket);
    fields.flag("overlap", overlap_,
                "Buckets are sent while the backward pass goes on, not after it");
    fields.flag("copies", copies_,
                "Gradients are copied into buckets and back, as DistributedDataParallel does "
                "without gradient_as_bucket_view");
    fields.number("kernel_contention", contention_.kernels,
                  "Kernels take this share longer while gradients are sent; see `contention`", 0,
                  100);
    fields.number("collective_contention", contention_.collectives,
                  "Collectives take this share longer while kernels run; see `contention`", 0, 100);
    fields.time("lateness", lateness_,
                "Standard deviation of the time that a worker is late in a step, whatever its "
                "length",
                0ns);
    fields.number("lateness_share", lateness_share_,
                  "Added to it, as a share of the time of both passes", 0, 10);
    fields.bytes("gradient_bytes", gradient_bytes_,
                 "All gradients of a step; 0B: from the trace, which must show memory");
  }

  Effect apply(Graph& graph, const Context& context) const override {
    refuse_communication(graph);
    if (gpus_ == 1) return nobody();
    const Timeline timeline = simulate(graph, {.memory = false});
    const Gradients found = find_gradients(graph, timeline, gradient_bytes_);
    Communicator communicator(network_, gpus_);
    Effect effect;
    Exchange exchange{.graph = graph,
                      .communicator = communicator,
                      .memory = copies_ ? memory_rate(graph, context, "copies") : Bandwidth{},
                      .effect = effect};
    for (const BackwardPass& pass : found.passes) send(pass, late_of(pass, timeline), exchange);
    hold_buckets(graph, exchange.totals.largest);
    effect.changed += contend(graph, exchange.totals.sent, contention_).changed;
    describe_effect(found, exchange.totals, communicator, effect);
    return effect;
  }

  JobChange job_change() const override {
    return {.samples = static_cast<double>(gpus_),
            .tokens = static_cast<double>(gpus_),
            .ranks = gpus_};
  }

 private:
  struct Bucket {
    Bytes bytes{};
    TaskId ready = kNoTask;
  };

  struct Totals {
    std::size_t buckets = 0;
    Nanoseconds transfer{0}, copies{0}, late{0};
    Bytes largest{};  ///< Gradients of one step.
    std::vector<TaskId> sent = {};
  };

  static Effect nobody() {
    Effect effect;
    effect.summary = "one GPU has nobody to exchange gradients with";
    return effect;
  }

  std::vector<Bucket> buckets_of(const BackwardPass& pass) const {
    std::vector<Bucket> buckets;
    Bucket open;
    for (const Gradient& one : pass.gradients) {
      open.bytes += one.bytes, open.ready = one.ready;
      if (open.bytes < (buckets.empty() ? std::min(first_bucket_, bucket_) : bucket_)) continue;
      buckets.push_back(open);
      open = {};
    }
    if (open.bytes > Bytes{}) buckets.push_back(open);
    return buckets;
  }

  /// How much later than a typical worker the slowest is ready, and when in the pass.
  struct Late {
    const Timeline& timeline;
    Nanoseconds begin{0}, end{0}, most{0};
    Nanoseconds at(TaskId task) const {
      return scaled(most, ratio(timeline.finish[index(task)] - begin, end - begin));
    }
  };

  Late late_of(const BackwardPass& pass, const Timeline& timeline) const {
    Late late{.timeline = timeline,
              .begin = timeline.start[index(pass.first)],
              .end = timeline.finish[index(pass.last)]};
    const Nanoseconds deviation = lateness_ + scaled(late.end - late.begin, lateness_share_);
    late.most = scaled(deviation, expected_greatest(gpus_));
    return late;
  }

  static Nanoseconds copy_time(Bytes bytes, Bandwidth memory) {
    return memory.bytes_per_second > 0 ? time_for({2 * bytes.count}, memory) : 0ns;
  }

  /// The graph that gets the traffic, and what all steps share.
  struct Exchange {
    Graph& graph;
    Communicator& communicator;
    Bandwidth memory;  ///< 0: nothing is copied into and out of buckets.
    Effect& effect;
    Totals totals = {};
  };

  void send(const BackwardPass& pass, const Late& late, Exchange& exchange) const {
    TaskId sent = kNoTask;
    for (const Bucket& bucket : buckets_of(pass)) sent = send_bucket(pass, bucket, late, exchange);
    exchange.totals.late += late.most;
    exchange.totals.largest = std::max(exchange.totals.largest, total_bytes(pass));
    for (std::size_t i = 0; i < pass.readers.size() && sent != kNoTask; ++i) {
      const TaskId reader = i == 0 ? copied_back(pass, exchange) : pass.readers[i];
      exchange.graph.add({.before = sent,
                          .after = reader,
                          .provenance = Provenance::assumed,
                          .why = Rule::update_after_collectives});
    }
  }

  TaskId send_bucket(const BackwardPass& pass, const Bucket& bucket, const Late& late,
                     Exchange& exchange) const {
    auto& [graph, communicator, memory, effect, totals] = exchange;
    Task task{.bytes = bucket.bytes, .step = pass.step, .phase = Phase::backward};
    TaskId ready = bucket.ready;
    if (const Nanoseconds time = copy_time(bucket.bytes, memory); time > 0ns) {
      task.kind = TaskKind::copy_on_device, task.duration = time;
      task.name = graph.names().intern("gradients into a bucket");
      ready = graph.insert_behind(bucket.ready, task);
      totals.copies += time;
      ++effect.changed;
    }
    task.kind = TaskKind::collective;
    task.name = graph.names().intern("all_reduce of a bucket");
    task.duration = communicator.time(Operation::all_reduce, bucket.bytes);
    const LaneId lane = lane_named(graph, "data parallel", graph.lane_of(pass.last));
    const TaskId sent = graph.append(lane, task);
    graph.collectives().push_back({.task = sent,
                                   .operation = graph.names().intern("all_reduce"),
                                   .group_size = static_cast<std::int32_t>(gpus_),
                                   .bytes = bucket.bytes});
    const auto wait_for = [&](TaskId before, Nanoseconds lag) {
      graph.add({.before = before,
                 .after = sent,
                 .lag = lag,
                 .provenance = Provenance::assumed,
                 .why = Rule::collective_input});
    };
    wait_for(ready, late.at(bucket.ready));
    if (!overlap_) wait_for(pass.last, late.most);
    totals.sent.push_back(sent);
    totals.transfer += task.duration;
    ++totals.buckets, ++effect.changed;
    return sent;
  }

  /// The first reader of gradients, or the copy out of buckets in front of it.
  static TaskId copied_back(const BackwardPass& pass, Exchange& exchange) {
    const Bytes bytes = total_bytes(pass);
    const Nanoseconds time = copy_time(bytes, exchange.memory);
    if (time == 0ns) return pass.readers.front();
    Task copy{.duration = time, .bytes = bytes, .step = pass.step, .phase = Phase::update};
    copy.kind = TaskKind::copy_on_device;
    copy.name = exchange.graph.names().intern("gradients out of buckets");
    exchange.totals.copies += time;
    ++exchange.effect.changed;
    return exchange.graph.insert_before(pass.readers.front(), copy);
  }

  /// Buckets that gradients are copied into take as much again, from the first step on.
  void hold_buckets(Graph& graph, Bytes bytes) const {
    if (!copies_ || bytes == Bytes{} || graph.allocations().empty()) return;
    Allocation buckets{.device = 0, .use = MemoryUse::gradient};
    graph.allocations().push_back(buckets);
    buckets.bytes = bytes;
    replace_block(graph, static_cast<std::uint32_t>(graph.allocations().size() - 1), buckets);
  }

  void describe_effect(const Gradients& found, const Totals& totals,
                       const Communicator& communicator, Effect& effect) const {
    const auto steps = static_cast<std::int64_t>(found.passes.size());
    effect.summary = to_text(totals.largest) + " of gradients a step in " +
                     std::to_string(totals.buckets / found.passes.size()) + " buckets among " +
                     communicator.described();
    effect.figures = {{"gradient_bytes", totals.largest},
                      {"transfer_per_step", totals.transfer / steps},
                      {"copies_per_step", totals.copies / steps},
                      {"lateness_per_step", totals.late / steps},
                      {"buckets_per_step", static_cast<double>(totals.buckets) /
                                               static_cast<double>(found.passes.size())}};
    effect.assumptions = communicator.assumed();
    if (!found.are_recorded)
      effect.assumptions.emplace_back(
          "gradients become ready evenly over the time of the backward pass, as the trace does not "
          "show which kernel makes which");
    effect.assumptions.emplace_back(
        "workers take as long for their batches as the recorded one, but for lateness that all of "
        "them then wait for: what published scaling on DGX machines shows; kernels and collectives "
        "that overlap slow each other down by fixed shares");
  }

  std::int64_t gpus_ = 8;
  NetworkSettings network_;
  Bytes bucket_{25 << 20}, first_bucket_{1 << 20}, gradient_bytes_{};
  bool overlap_ = true, copies_ = true;
  ContentionShares contention_;
  Nanoseconds lateness_{kLateness};
  double lateness_share_ = kLatenessShare;
};

}  // namespace

TransformEntry data_parallel_entry() {
  return {.make = made<DataParallel>,
          .assumes =
              "Each worker trains as the recorded one on a batch of its own. Gradients, as the "
              "trace shows them or as many bytes as given, fill buckets in the order in which they "
              "are ready; a bucket is summed over all workers by an all-reduce as soon as its last "
              "gradient is ready, one after the other, and the update waits for the last. An "
              "all-reduce takes what NCCL's own model says of the machine, or what a uniform "
              "network takes. Copies into and out of buckets run on the stream of the backward "
              "pass. Buckets of DistributedDataParallel: 25 MiB, the first 1 MiB.",
          .worth = {.why_not = "how many GPUs on which network is your question: "
                               "data_parallel:gpus=8,machine=dgx-a100"}};
}

}  // namespace foretrace
