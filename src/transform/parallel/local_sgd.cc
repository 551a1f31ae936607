// Workers train alone for several steps and then average their parameters (S. Stich, Local SGD,
// ICLR 2019). Every step takes its part of an average:
//
//     network  |aa|bb|cc|   ->   |      dd|      d: all of a, b and c together, divided by the
//                                                   number of steps
//
// The average is taken behind the update of one step in `every`, and nothing hides it. A replay has
// few steps, so each step gets its share of the average, in front of its update, which takes as
// long.

#include <cmath>
#include <fmt/core.h>
#include <set>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/sent_gradients.h"

namespace foretrace {
namespace {

class LocalSgd final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("every", every_, "Parameters are averaged once in this many steps", 1,
                   1'000'000);
    network_.describe(fields);
    describe_sent_gradients(fields, ranks_, where_);
  }

  Effect apply(Graph& graph, const Context&) const override {
    const Timeline timeline = simulate(graph, {.memory = false});
    Communicators networks(network_);
    Effect effect;
    Nanoseconds before{0}, after{0};
    std::set<TaskId> sent;
    if (every_ == 1) {
      effect.summary = "parameters are averaged in every step, which gradients are already";
      return effect;
    }
    for (const SentGradients& row : sent_gradients(graph, timeline, where_, ranks_)) {
      Nanoseconds sum{0};
      for (const SentBucket& bucket : row) {
        sent.insert(bucket.task);
        sum += graph.task(bucket.task).duration;
        graph.task(bucket.task).duration = 0ns;
      }
      before += sum;
      Nanoseconds whole = sum;
      if (network_.is_given())
        whole = scaled(sum, merged_share(row, networks.among(row.front().ranks)));
      graph.task(row.back().task).duration = whole / every_;
      after += whole / every_;
      effect.changed += row.size();
    }
    wait_less(graph, sent);
    effect.summary = fmt::format(
        "transfers take {} instead of {} in all, as parameters are averaged once in {} steps",
        to_text(after), to_text(before), every_);
    effect.figures = {{"transfer_before", before}, {"transfer_after", after}};
    effect.assumptions = networks.assumed();
    effect.assumptions.emplace_back(
        "each step takes its part of one average, which nothing hides; the loss falls as fast per "
        "step as before, which it need not");
    return effect;
  }

 private:
  /// Workers wait for the latest of them once in several steps, in which delays that differ from
  /// step to step add up to their root; each step takes its part.
  void wait_less(Graph& graph, const std::set<TaskId>& sent) const {
    const double part = 1 / std::sqrt(static_cast<double>(every_));
    graph.change_dependencies([&](Dependency& dependency) {
      if (dependency.provenance == Provenance::assumed && sent.contains(dependency.after))
        dependency.lag = scaled(dependency.lag, part);
    });
  }

  /// Returns the time of one transfer of all buckets together, relative to one transfer for each.
  static double merged_share(const SentGradients& row, Communicator& network) {
    Nanoseconds apart{0};
    for (const SentBucket& bucket : row) apart += network.time(bucket.operation, bucket.bytes);
    return ratio(network.time(Operation::all_reduce, row.back().end), apart);
  }

  std::int64_t every_ = 8, ranks_ = 0;
  NetworkSettings network_;
  Selector where_{"collective"};
};

}  // namespace

TransformEntry local_sgd_entry() {
  return {.make = create<LocalSgd>,
          .assumes =
              "Workers train alone and average their parameters once in \"every\" steps. The "
              "all-reduces of gradients vanish; an average of as many bytes is added to each step "
              "with its share of the time, and no computation hides it. Accuracy is not modelled.",
          .advice = {.why_not = "say how often parameters are averaged: local_sgd:every=8"}};
}

}  // namespace foretrace
