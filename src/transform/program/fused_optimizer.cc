// One update kernel per step instead of several per parameter (FusedAdam and its kind):
//
//     cpu     |LhMhN......|                cpu     |L......|
//     stream  |.A.B.C.....|   ->           stream  |.AAA...|
//
// The kernels it replaces pass over the same tensors again and again; the fused kernel reads and
// writes each value once:
//
//     t = sum * distinct / accesses      distinct: 7 values of Adam (weight, gradient, two moments;
//                                        all but the gradient are written), 5 with momentum alone
//
// where the names of the kernels tell how many tensors each accesses. Adam of PyTorch makes 21
// accesses; its fused kernel took 0.36 of the time on an H100. Otherwise the fused kernel takes the
// sum (Daydream, USENIX ATC'20), or the time of its memory traffic: t = parameters *
// bytes_per_parameter / (efficiency * bandwidth).

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <set>

#include "base/contains.h"
#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/device_change.h"
#include "transform/edit/fuse.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

/// Whether the kernel updates many parameters with all steps of an optimizer, by the names that
/// PyTorch, Apex and DeepSpeed give.
bool is_fused(std::string_view name) {
  return contains_any(
      name, {"FusedOptimizer", "FusedAdam", "FusedSgd", "FusedAdagrad", "fused_adam", "fused_sgd",
             "fused_optimizer", "AdamFunctor", "SGDFunctor", "LAMBStage"});
}

/// The meaning of fusing for a kernel of the update: it is gathered with others, it is such a
/// kernel already, or it does something else.
enum class Role : std::uint8_t { part, fused, other };

Role role_of(const Task& task, KernelClasses& classes) {
  if (is_fused(classes.name_of(task))) return Role::fused;
  const KernelClass& kernel = classes.of(task.name);
  const bool is_part = kernel.bound != Boundness::compute && kernel.origin != Origin::unknown;
  return is_part ? Role::part : Role::other;
}

class FusedOptimizer final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The optimizer's kernels");
    fields.choice(
        "duration", duration_, {"passes", "sum", "traffic"},
        "Duration of the fused kernel: that of one pass over the tensors, where the names of the "
        "kernels it replaces tell how many they make; the sum of these kernels; or the time to "
        "move the parameters");
    fields.number("factor", factor_, "That duration is multiplied by this", 0);
    fields.integer("parameters", parameters_, "For traffic: number of parameters of the model", 0,
                   1'000'000'000'000'000);
    fields.number("bytes_per_parameter", bytes_per_parameter_,
                  "For traffic: bytes read and written per parameter (28: Adam reads 4 and writes "
                  "3 values of FP32)",
                  0, 1e6);
    fields.name_or_path("device", device_,
                        "For traffic: name of the device; empty: that of the job");
    fields.number("efficiency", efficiency_,
                  "For traffic: share of the memory bandwidth reached (recalled: 0.8 is usual)",
                  0.01, 1);
    fields.time("host_time", host_time_, "Host work of each step to prepare the fused call",
                Nanoseconds(0));
  }

  Applicability applies(const Graph& graph) const override {
    KernelClasses classes(graph);
    Nanoseconds all{0}, fused{0}, others{0};
    for (const TaskId id : where_.select(graph)) {
      const Task& task = graph.task(id);
      const Role role = role_of(task, classes);
      all += task.duration;
      if (role == Role::fused) fused += task.duration;
      if (role == Role::other) others += task.duration;
    }
    if (fused + others == 0ns) return {};
    return {.share = 1 - ratio(fused + others, all),
            .why_not = fmt::format(
                "{} of the time of its update is in {}", to_share(ratio(fused + others, all)),
                fused >= others ? "fused kernels already"
                                : "products and kernels of no framework, which no fused optimizer "
                                  "contains")};
  }

  Effect apply(Graph& graph, const Context& context) const override {
    std::vector<TaskId> kernels = where_.select_some(graph);
    const std::vector<char> stays = leave_others(graph, kernels);
    const Launches launches(graph);
    const std::vector<Group> groups = split_at_waits(graph, grouped(graph, kernels, "step"), stays);
    std::vector<Fusion> fusions;
    std::vector<TaskId> host_work;
    bool once = false;
    for (const Group& group : groups) {
      const double share = duration_ == "passes" ? share_of_passes(graph, group) : 1;
      once = once || share < 1;
      collect_host_work(graph, launches, group, host_work);
      fusions.push_back({.tasks = group, .duration = duration_of(graph, context, group, share)});
    }
    const Nanoseconds saved = total_duration(graph, host_work);
    add_host_time(graph, launches, groups);
    const FusionCount fused = fuse(graph, fusions, graph.names().intern("fused_optimizer"), true);
    for (const TaskId task : host_work) graph.remove(task);

    Effect effect;
    effect.changed = fused.tasks + fused.launches + host_work.size() + groups.size();
    effect.summary = fmt::format("{} became {}, {} fewer, and {} less host work between them",
                                 counted(kernels.size(), "kernel"), grouped(groups.size()),
                                 counted(fused.launches, "launch call"), to_text(saved));
    effect.assumptions.push_back(once ? "the fused kernel reads and writes each value once"
                                 : duration_ == "traffic"
                                     ? "the fused kernel is bound by memory traffic"
                                     : "the fused kernel takes as long as all it replaces");
    effect.assumptions.push_back("host work between the launches of the optimizer is not needed");
    return effect;
  }

 private:
  /// Takes kernels that no fused optimizer contains out of `kernels`, unless these are all. Returns
  /// which tasks were taken out.
  static std::vector<char> leave_others(const Graph& graph, std::vector<TaskId>& kernels) {
    KernelClasses classes(graph);
    std::vector<char> stays(graph.task_count(), 0);
    for (const TaskId id : kernels)
      stays[index(id)] = role_of(graph.task(id), classes) == Role::other ? 1 : 0;
    const auto is_other = [&](TaskId id) { return stays[index(id)] != 0; };
    if (std::ranges::all_of(kernels, is_other)) return std::vector<char>(graph.task_count(), 0);
    std::erase_if(kernels, is_other);
    return stays;
  }

  /// Splits groups at kernels that stay, and where a kernel waits for work on another stream that
  /// starts no earlier than its group. Such work may need the result of a part of the group, so
  /// that one fused kernel would wait for itself.
  static std::vector<Group> split_at_waits(const Graph& graph, const std::vector<Group>& groups,
                                           const std::vector<char>& stays) {
    const std::vector<Nanoseconds> starts = simulate(graph, {.memory = false}).start;
    std::vector<Group> parts;
    for (const Group& group : groups) {
      for (std::size_t i = 0; i < group.size(); ++i) {
        bool waits = i == 0;
        for (TaskId id = group[i]; !waits && id != group[i - 1] && id != kNoTask;
             id = graph.previous(id))
          waits = stays[index(id)] != 0;
        graph.each_wait(group[i], [&](const Dependency& wait) {
          if (waits || !runs_on_device(graph.task(wait.before).kind)) return;
          waits = graph.lane_of(wait.before) != graph.lane_of(group[i]) &&
                  starts[index(wait.before)] >= starts[index(parts.back().front())];
        });
        if (waits) parts.emplace_back();
        parts.back().push_back(group[i]);
      }
    }
    return parts;
  }

  /// Returns the share of the time of a group that is left if each value is read and written once;
  /// 1 if the kernels do not tell, or already make one pass.
  static double share_of_passes(const Graph& graph, const Group& group) {
    constexpr int kAdam = 7, kMomentum = 5;
    std::map<NameId, int> by_name;
    int accesses = 0;
    bool has_root = false;
    for (const TaskId kernel : group) {
      const NameId id = graph.task(kernel).name;
      const auto [at, added] = by_name.try_emplace(id, 0);
      if (!added) continue;  // Lists are divided among several launches.
      const std::string_view name = graph.names()[id];
      at->second = classify_kernel(name).tensors;
      if (at->second == 0) return 1;
      accesses += at->second;
      has_root = has_root || contains_any(name, {"Sqrt", "sqrt"});
    }
    return std::min(1.0, (has_root ? kAdam : kMomentum) / std::max(1.0, 1.0 * accesses));
  }

  /// `share`: the part of the sum that is left, unless traffic decides.
  Nanoseconds duration_of(const Graph& graph, const Context& context, const Group& group,
                          double share) const {
    if (duration_ != "traffic") return scaled(total_duration(graph, group), share * factor_);
    if (parameters_ == 0) throw Error("parameters: must be given with \"duration\": \"traffic\"");
    const DeviceModel device = device_for(graph, context, "device", device_);
    const double traffic = static_cast<double>(parameters_) * bytes_per_parameter_;
    const Nanoseconds needed = time_for(Bytes{static_cast<std::int64_t>(std::min(traffic, 9e18))},
                                        {device.memory_bandwidth.bytes_per_second * efficiency_});
    return scaled(needed, factor_);
  }

  /// Adds the host work between the first and the last launch of the group, on the thread that
  /// makes them.
  static void collect_host_work(const Graph& graph, const Launches& launches, const Group& group,
                                std::vector<TaskId>& host_work) {
    std::set<TaskId> calls;
    for (const TaskId kernel : group) {
      const TaskId call = launches.launch_of(kernel);
      if (call != kNoTask) calls.insert(call);
    }
    if (calls.size() < 2) return;
    const TaskId first = launches.launch_of(group.front());
    if (first == kNoTask) return;
    std::vector<TaskId> between;
    std::size_t seen = 0;
    for (TaskId task = first; task != kNoTask && seen < calls.size(); task = graph.next(task)) {
      if (calls.count(task) > 0) {
        ++seen;
        host_work.insert(host_work.end(), between.begin(), between.end());
        between.clear();
      } else if (graph.task(task).kind == TaskKind::host) {
        between.push_back(task);
      }
      // If a call is on another thread, the search would go on into the next step.
      if (graph.task(task).step != graph.task(first).step) return;
    }
  }

  void add_host_time(Graph& graph, const Launches& launches,
                     const std::vector<Group>& groups) const {
    if (host_time_ == Nanoseconds(0)) return;
    for (const Group& group : groups) {
      const TaskId call = launches.launch_of(group.front());
      if (call == kNoTask) continue;
      const Task& like = graph.task(call);
      graph.insert_before(call, {.duration = host_time_,
                                 .name = graph.names().intern("prepare fused_optimizer"),
                                 .step = like.step,
                                 .kind = TaskKind::host,
                                 .phase = like.phase});
    }
  }

  Selector where_{"kernel", "update"};
  std::string duration_ = "passes";
  double factor_ = 1;
  std::int64_t parameters_ = 0;
  double bytes_per_parameter_ = 28;
  std::string device_;
  double efficiency_ = 0.8;
  Nanoseconds host_time_{0};
};

}  // namespace

TransformEntry fused_optimizer_entry() {
  return {.make = create<FusedOptimizer>,
          .assumes =
              "All kernels of the update phase become one, and so do their launches; host work "
              "between them is deleted, copies and waits there stay. Where a kernel waits for "
              "another stream in between, a second fused kernel begins. The fused kernel reads and "
              "writes each value once where the names of the kernels tell how often they do; "
              "otherwise it takes the sum of what it replaces (Daydream, USENIX ATC'20).",
          .advice = {.goal = Goal::time, .tries = {"fused_optimizer"}, .applies_to = {"update"}}};
}

}  // namespace foretrace
