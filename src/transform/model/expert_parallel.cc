// Shares the experts of a mixture, in a job recorded on one GPU, among several GPUs (GShard, 2020):
//
//     stream   |x EEEE x|      ->      |x a EEEEe a x|      a: all-to-all of the tokens, there and
//                                                           back; e: extra time of the busiest GPU
//
// Each GPU trains on a batch of its own and has 1/N of the experts, which get the tokens of all N
// batches: as much work as before, except on the GPU whose experts get the most tokens. With loads
// that vary by a relative standard deviation s, that GPU has 1 + s E(N) times the mean load, where
// E(N) is the expected maximum of N standard normal numbers.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>
#include <vector>

#include "base/statistics.h"
#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/gradients.h"

namespace foretrace {
namespace {

class ExpertParallel final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.integer("gpus", gpus_, "GPUs that share the experts, each with a batch of its own", 2,
                   65'536);
    fields.integer("experts", experts_, "Experts of a layer, which the GPUs must divide", 2,
                   1'000'000);
    fields.integer("top_k", top_k_, "Experts that each token goes to", 1, 1000);
    fields.number("capacity", capacity_,
                  "Capacity factor: places for tokens, relative to the mean number of tokens", 0.1,
                  100);
    fields.number("imbalance", imbalance_,
                  "Relative standard deviation of the load of a GPU's experts", 0, 10);
    fields.bytes("token_bytes", tokens_,
                 "All tokens of a batch: samples x positions x hidden size x bytes of an element");
    network_.describe(fields);
    fields.object("where", where_, "The kernels of experts");
  }

  Applicability applies(const Graph& graph) const override {
    std::size_t all = 0;
    for (std::uint32_t i = 0; i < graph.task_count(); ++i)
      all += is_of_a_pass(graph.task(TaskId{i})) && !graph.removed(TaskId{i}) ? 1 : 0;
    const std::vector<TaskId> chosen = where_.select(graph);
    const auto experts = static_cast<std::size_t>(std::count_if(
        chosen.begin(), chosen.end(), [&](TaskId id) { return is_of_a_pass(graph.task(id)); }));
    if (experts == 0 || experts < all) return {};
    return {.share = 0,
            .why_not =
                "\"where\" selects all kernels of the passes, but a mixture has others than "
                "those of its experts; select these by their name or module"};
  }

  Effect apply(Graph& graph, const Context& context) const override {
    refuse_communication(graph);
    if (experts_ % gpus_ != 0)
      throw Error(fmt::format("gpus: must divide the {} experts, got {}", experts_, gpus_));
    if (tokens_ == Bytes{})
      throw Error(
          "token_bytes: must be given (samples x positions x hidden size x bytes of an element), "
          "because the trace does not record shapes");
    std::vector<TaskId> experts = where_.select_some(graph);
    std::erase_if(experts, [&](TaskId id) { return !is_of_a_pass(graph.task(id)); });
    if (experts.empty())
      throw Error("where: none of the kernels is of a forward or a backward pass");
    Communicator network(network_, gpus_, context.gpus_per_worker);
    const Bytes moved = scaled(tokens_, static_cast<double>(top_k_) * capacity_);
    const Nanoseconds exchange = network.time(Operation::all_to_all, moved);
    const double busiest = 1 + imbalance_ * expected_greatest(gpus_);
    Effect effect;
    Nanoseconds longer{0};
    for (const TaskId id : experts) {
      Nanoseconds& duration = graph.task(id).duration;
      const Nanoseconds now = scaled(duration, busiest);
      longer += now - duration;
      duration = now;
    }
    const std::vector<Group> layers = grouped(graph, experts, "run");
    const NameId operation = graph.names().intern(to_string(Operation::all_to_all));
    for (const Group& layer : layers) {
      const TaskId there =
          dispatch(graph, layer.front(), exchange_task(graph, layer.front(), exchange, moved));
      const TaskId back =
          graph.insert_behind(layer.back(), exchange_task(graph, layer.back(), exchange, moved));
      for (const TaskId sent : {there, back})
        graph.collectives().push_back({.task = sent,
                                       .operation = operation,
                                       .group_size = static_cast<std::int32_t>(gpus_),
                                       .bytes = moved});
      effect.changed += layer.size() + 2;
    }
    const Nanoseconds all = 2 * exchange * static_cast<std::int64_t>(layers.size());
    effect.summary = fmt::format(
        "{} of expert kernels get {} of all-to-alls in all, and take {} longer on the busiest of "
        "{}",
        counted(layers.size(), "run"), to_text(all), to_text(longer), network.described());
    effect.figures = {
        {"all_to_all", exchange}, {"transfers", all}, {"load_of_the_busiest", busiest}};
    effect.transfers = network.doubt();
    effect.assumptions = network.assumed();
    effect.assumptions.emplace_back(
        "each run of expert kernels is one layer; tokens in excess of the capacity are dropped at "
        "no cost; parameters that all GPUs have are summed by data_parallel");
    return effect;
  }

  JobChange job_change() const override { return JobChange::on(gpus_, gpus_); }

 private:
  static bool is_of_a_pass(const Task& task) {
    return task.kind == TaskKind::kernel &&
           (task.phase == Phase::forward || task.phase == Phase::backward);
  }

  /// Inserts the all-to-all in front of a kernel. It waits for everything that the kernel waits
  /// for, such as its launch.
  static TaskId dispatch(Graph& graph, TaskId kernel, const Task& exchange) {
    std::vector<Dependency> waits;
    graph.each_wait(kernel, [&](const Dependency& wait) { waits.push_back(wait); });
    const TaskId sent = graph.insert_before(kernel, exchange);
    for (Dependency wait : waits) {
      wait.after = sent;
      graph.add(wait);
    }
    return sent;
  }

  static Task exchange_task(Graph& graph, TaskId beside, Nanoseconds time, Bytes bytes) {
    const Task& like = graph.task(beside);
    Task task{.duration = time, .bytes = bytes, .step = like.step, .phase = like.phase};
    task.kind = TaskKind::collective;
    task.name = graph.names().intern("all_to_all of tokens");
    return task;
  }

  std::int64_t gpus_ = 8, experts_ = 8, top_k_ = 2;
  double capacity_ = 1, imbalance_ = 0.1;
  Bytes tokens_{};
  NetworkSettings network_;
  Selector where_{"kernel"};
};

}  // namespace

TransformEntry expert_parallel_entry() {
  return {.make = create<ExpertParallel>,
          .assumes =
              "Several GPUs, each with a batch of its own, share the experts of a mixture. An "
              "all-to-all carries tokens to their experts before each run of expert kernels, "
              "and another one carries them back. Expert kernels take as long as recorded on "
              "average and longer on the busiest GPU, for which all wait. The kernels of experts "
              "must be selected, and the size of a batch's tokens given. Memory stays.",
          .advice = {.why_not = "say which kernels belong to experts: "
                                "expert_parallel:gpus=8,machine=dgx-h100,token_bytes=64MB,"
                                "where.name=moe"}};
}

}  // namespace foretrace
