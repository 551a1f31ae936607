// Compresses gradients: each all-reduce sends fewer bytes, at the price of kernels that compress
// and restore them.
//
//     stream   |B2 B1|            stream   |B2 k B1 k|           k: compressing, behind the work
//     network     |aaaa|aaaa  ->  network      |ad|  |ad|           that makes the last gradient
//                                                                 d: restoring, with the transfer
//
// A transfer takes what it took, times model(after) / model(before) on the network that the
// settings name, or else the share of the bytes that each rank still receives. Values and indices
// that differ among ranks (top-k, DGC) are gathered and not summed, so that what a rank receives
// grows with their number.
//
// Ignored: that training may need more steps to reach the same loss.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/memory_rate.h"
#include "transform/parallel/sent_gradients.h"

namespace foretrace {
namespace {

/// How often a method reads or writes the gradient to compress and to restore it; each time takes
/// as long as its bytes. Derived from what each method does: casts read 4 bytes and write 2; int8
/// looks for the greatest value first; top-k reads four times to find the threshold and keeps what
/// it did not send; DGC keeps a momentum as well; PowerSGD multiplies by two thin matrices and
/// keeps what it lost.
struct Method {
  std::string_view name;
  double compress, restore;
  bool is_gathered;     ///< Ranks send different elements.
  bool keeps_residual;  ///< It keeps what it did not send, as large as the gradient.
};
constexpr Method kMethods[] = {{"fp16", 1.5, 1.5, false, false},
                               {"int8", 2.25, 1.25, false, false},
                               {"topk", 6, 1, true, true},
                               {"dgc", 8, 1, true, true},
                               {"powersgd", 4, 1, false, true}};
constexpr double kElement = 4;  ///< Bytes of a gradient.
constexpr double kSent = 8;     ///< Bytes of a value and its index.

class Compress final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.choice("method", method_, {"fp16", "int8", "topk", "dgc", "powersgd"},
                  "fp16, int8: narrower elements. topk, dgc: only the largest elements and where "
                  "they are. powersgd: two thin matrices in place of each weight's gradient");
    fields.number("ratio", ratio_, "For topk and dgc: the share of elements that is sent", 1e-6, 1);
    fields.integer("rank", rank_, "For powersgd: columns of the thin matrices", 1, 4096);
    fields.integer("side", side_, "For powersgd: rows and columns of a typical weight", 2,
                   1'000'000);
    network_.describe(fields);
    describe_sent_gradients(fields, ranks_, where_);
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const Method& method = *std::ranges::find(kMethods, method_, &Method::name);
    const Timeline timeline = simulate(graph, {.memory = false});
    const Bandwidth memory = memory_rate(graph, context, method_);
    Communicators networks(network_);
    Effect effect;
    Totals totals;
    for (const SentGradients& row : sent_gradients(graph, timeline, where_, ranks_)) {
      for (const SentBucket& bucket : row) {
        Task& task = graph.task(bucket.task);
        double factor = received_share(method, bucket.ranks);
        if (network_.is_given()) factor = factor_of(method, bucket, networks.among(bucket.ranks));
        totals.before += task.duration;
        const Nanoseconds transfer = scaled(task.duration, factor);
        totals.after += transfer;
        task.duration = transfer + passes(bucket.bytes, method.restore, memory);
        totals.kernels += add_kernel(graph, bucket, passes(bucket.bytes, method.compress, memory));
        totals.kernels += passes(bucket.bytes, method.restore, memory);
        effect.changed += 2;
      }
      totals.bytes = std::max(totals.bytes, row.back().end);
    }
    if (method.keeps_residual) add_permanent_block(graph, totals.bytes, MemoryUse::optimizer_state);
    describe_effect(totals, networks, effect);
    return effect;
  }

 private:
  struct Totals {
    Nanoseconds before{0}, after{0}, kernels{0};
    Bytes bytes{};
  };

  /// Returns the share of the gradient's bytes that each rank sends, before ranks are gathered.
  double kept(const Method& method) const {
    if (method.name == "fp16") return .5;
    if (method.name == "int8") return .25;
    if (method.name == "powersgd")
      return std::min(1., 2 * static_cast<double>(rank_) / static_cast<double>(side_));
    return ratio_ * kSent / kElement;
  }

  /// Returns the bytes that a rank receives, as a share of those for a plain all-reduce, which are
  /// 2(n-1)/n of the buffer.
  double received_share(const Method& method, std::int32_t ranks) const {
    return method.is_gathered ? kept(method) * ranks / 2 : kept(method);
  }

  double factor_of(const Method& method, const SentBucket& bucket, Communicator& network) const {
    const Nanoseconds before = network.time(bucket.operation, bucket.bytes);
    const double members = method.is_gathered ? bucket.ranks : 1;
    const Bytes left = std::max(Bytes{1}, scaled(bucket.bytes, kept(method) * members));
    const Nanoseconds after =
        network.time(method.is_gathered ? Operation::all_gather : bucket.operation, left);
    return ratio(after, before);
  }

  static Nanoseconds passes(Bytes bytes, double times, Bandwidth memory) {
    return time_for(scaled(bytes, times), memory);
  }

  /// Adds the compressing kernel in front of the transfer, on the stream of the work that the
  /// transfer waits for. Returns its time.
  static Nanoseconds add_kernel(Graph& graph, const SentBucket& bucket, Nanoseconds time) {
    if (bucket.ready == kNoTask) {
      graph.task(bucket.task).duration += time;
      return time;
    }
    Task kernel{.duration = time, .step = graph.task(bucket.task).step, .phase = Phase::backward};
    kernel.kind = TaskKind::kernel;
    kernel.name = graph.names().intern("compress gradients");
    const TaskId added = graph.insert_behind(bucket.ready, kernel);
    graph.add({.before = added,
               .after = bucket.task,
               .provenance = Provenance::assumed,
               .why = Rule::collective_input});
    return time;
  }

  void describe_effect(const Totals& totals, const Communicators& networks, Effect& effect) const {
    effect.summary = fmt::format(
        "{}: transfers of gradients take {} instead of {} in all, for {} of kernels that compress "
        "and restore them",
        method_, to_text(totals.after), to_text(totals.before), to_text(totals.kernels));
    effect.figures = {{"transfer_before", totals.before},
                      {"transfer_after", totals.after},
                      {"kernels_added", totals.kernels}};
    effect.assumptions = networks.assumed();
    effect.assumptions.emplace_back(
        network_.is_given()
            ? "transfers change as the network's model does from the old size to the new"
            : "transfers change as the bytes that a rank receives; latency is not known, so give "
              "the machine for small buckets");
    effect.assumptions.emplace_back(
        "each step reduces the training loss as much as before, which lossy compression may not "
        "achieve");
  }

  std::string method_ = "fp16";
  double ratio_ = .01;
  std::int64_t rank_ = 4, side_ = 1024, ranks_ = 0;
  NetworkSettings network_;
  Selector where_{"collective"};
};

}  // namespace

TransformEntry compress_entry() {
  return {
      .make = create<Compress>,
      .assumes =
          "All-reduces of gradients, recorded or added by an earlier step, send compressed "
          "gradients. fp16 and int8 send narrower elements; topk and DGC the largest elements "
          "with their places, gathered from all ranks; PowerSGD two thin matrices. Kernels read "
          "and write the gradient at the bandwidth of memory, before the transfer on the stream "
          "of the backward pass, and behind it. Transfers scale with the network's model, or "
          "with the bytes. Accuracy is not modelled.",
      .advice = {
          .goal = Goal::time, .tries = {"compress:method=fp16"}, .applies_to = {"gradients"}}};
}

}  // namespace foretrace
