// Compresses gradients: each all-reduce sends fewer bytes, at the price of kernels that compress
// and restore them. So do, where asked for, the all-to-alls of embeddings and tokens.
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
// Elements that are no wider than what a method sends, and integers (places in a table, lengths),
// stay as they are.
//
// Ignored: that training may need more steps to reach the same loss, and scales of int8's rows.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/block_size.h"
#include "transform/edit/device_change.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/sent_gradients.h"

namespace foretrace {
namespace {

/// How often a method reads or writes the gradient to compress and to restore it; each time takes
/// as long as its bytes. Narrower elements are written and read, too. Derived from what each method
/// does: casts read 4 bytes and write 2; int8 looks for the greatest value first; top-k reads four
/// times to find the threshold and keeps what it did not send; DGC keeps a momentum as well;
/// PowerSGD multiplies by two thin matrices and keeps what it lost.
struct Method {
  std::string_view name;
  double narrow;  ///< Bytes of each element that it sends; 0: it sends only some.
  double compress, restore;
  bool is_gathered;     ///< Ranks send different elements.
  bool keeps_residual;  ///< It keeps what it did not send, as large as the gradient.
};
constexpr Method kMethods[] = {{"fp16", 2, 1, 1, false, false},
                               {"int8", 1, 2, 1, false, false},
                               {"topk", 0, 6, 1, true, true},
                               {"dgc", 0, 8, 1, true, true},
                               {"powersgd", 0, 4, 1, false, true}};
constexpr double kIndex = 4;  ///< Bytes of the place of an element that is sent alone.

/// Bytes of an element, by c10d's name of its type; 0 for types that cannot be rounded.
double element_bytes(std::string_view type) {
  static constexpr std::pair<std::string_view, double> kTypes[] = {
      {"", 4}, {"Float", 4}, {"Double", 8}, {"BFloat16", 2}, {"Half", 2}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return type.starts_with("Float8") ? 1 : 0;
}

class Compress final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.choice("operation", operation_, {"all_reduce", "all_to_all"},
                  "all_reduce: of gradients; all_to_all: of embeddings and tokens, in both passes");
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

  Applicability applies(const Graph& graph) const override {
    const Timeline timeline = simulate(graph, {.memory = false});
    Nanoseconds all{0}, same{0};
    for (const SentGradients& row : sent_gradients(graph, timeline, where_, ranks_, operation())) {
      for (const SentBucket& bucket : row) {
        all += graph.task(bucket.task).duration;
        if (!shrinks(graph, bucket)) same += graph.task(bucket.task).duration;
      }
    }
    if (same == 0ns) return {};
    return {.share = 1 - ratio(same, all),
            .why_not = fmt::format("{} of the time of its transfers is of integers, or of elements "
                                   "that are no wider than those of {}",
                                   to_share(ratio(same, all)), method_)};
  }

  Effect apply(Graph& graph, const Context& context) const override {
    const Method& method = method_of_settings();
    const Timeline timeline = simulate(graph, {.memory = false});
    const Bandwidth memory = memory_rate(graph, context, method_);
    Communicators networks(network_);
    Effect effect;
    Totals totals;
    for (const SentGradients& row : sent_gradients(graph, timeline, where_, ranks_, operation())) {
      for (const SentBucket& bucket : row) {
        if (!shrinks(graph, bucket)) continue;
        Task& task = graph.task(bucket.task);
        const double left = kept(method, element_bytes(graph.names()[bucket.type]));
        double factor = method.is_gathered ? left * bucket.ranks / 2 : left;
        if (network_.is_given())
          factor = factor_of(method, bucket, left, networks.among(bucket.ranks));
        totals.before += task.duration;
        const Nanoseconds transfer = scaled(task.duration, factor);
        totals.after += transfer;
        const double written = method.narrow > 0 ? left : 0;
        const Nanoseconds restoring = passes(bucket.bytes, method.restore + written, memory);
        task.duration = transfer + restoring;
        totals.kernels +=
            add_kernel(graph, bucket, passes(bucket.bytes, method.compress + written, memory));
        totals.kernels += restoring;
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

  Operation operation() const { return read_operation(operation_); }

  const Method& method_of_settings() const {
    const Method& method = *std::ranges::find(kMethods, method_, &Method::name);
    if (operation() == Operation::all_to_all && method.narrow <= 0)
      throw Error(fmt::format(
          "method: must be fp16 or int8 for all_to_all, got {}: it leaves out elements for a later "
          "sum of gradients, but an all-to-all sums nothing",
          method_));
    return method;
  }

  bool shrinks(const Graph& graph, const SentBucket& bucket) const {
    return element_bytes(graph.names()[bucket.type]) > method_of_settings().narrow;
  }

  /// Returns the share of the gradient's bytes that each rank sends, before ranks are gathered.
  double kept(const Method& method, double element) const {
    if (method.narrow > 0) return method.narrow / element;
    if (method.name == "powersgd")
      return std::min(1., 2 * static_cast<double>(rank_) / static_cast<double>(side_));
    return ratio_ * (element + kIndex) / element;
  }

  /// Returns the time of the transfer of the share `sent` as a share of the whole one's. Plain
  /// all-reduces receive 2(n-1)/n of the buffer.
  static double factor_of(const Method& method, const SentBucket& bucket, double sent,
                          Communicator& network) {
    const Nanoseconds before = network.time(bucket.operation, bucket.bytes);
    const double members = method.is_gathered ? bucket.ranks : 1;
    const Bytes left = std::max(Bytes{1}, scaled(bucket.bytes, sent * members));
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
    const Task& sent = graph.task(bucket.task);
    const bool is_exchange = bucket.operation == Operation::all_to_all;
    Task kernel{
        .duration = time, .step = sent.step, .phase = is_exchange ? sent.phase : Phase::backward};
    kernel.kind = TaskKind::kernel;
    kernel.name = graph.names().intern(is_exchange ? "compress" : "compress gradients");
    const TaskId added = graph.insert_behind(bucket.ready, kernel);
    graph.add({.before = added,
               .after = bucket.task,
               .provenance = Provenance::assumed,
               .why = Rule::collective_input});
    return time;
  }

  void describe_effect(const Totals& totals, const Communicators& networks, Effect& effect) const {
    effect.summary = fmt::format(
        "{}: {} take {} instead of {} in all, for {} of kernels that compress and restore them",
        method_, operation() == Operation::all_to_all ? "all-to-alls" : "transfers of gradients",
        to_text(totals.after), to_text(totals.before), to_text(totals.kernels));
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

  std::string operation_ = "all_reduce", method_ = "fp16";
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
          "with the bytes. With operation=all_to_all, the exchanges of embeddings and tokens are "
          "compressed instead, in both passes, to fp16 or int8. Integers and elements that are no "
          "wider stay as they are; where the type is not known, elements have 4 bytes. Accuracy is "
          "not modelled.",
      .advice = {
          .goal = Goal::time, .tries = {"compress:method=fp16"}, .applies_to = {"gradients"}}};
}

}  // namespace foretrace
