#include "transform/edit/chains.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <optional>

#include "foretrace/machine.h"
#include "transform/edit/device_change.h"
#include "transform/edit/fuse.h"

namespace foretrace {
namespace {

class ChainFinder {
 public:
  ChainFinder(const Graph& graph, const Launches& launches, const ChainRule& rule)
      : graph_(graph),
        launches_(launches),
        rule_(rule),
        classes_(graph),
        begins_(graph.task_count(), 0),
        ends_(graph.task_count(), 0),
        span_(graph.task_count(), 0) {
    std::vector<char> waits(graph.task_count(), 0);
    graph.each_dependency([&](const Dependency& wait) { mark_wait(wait, waits); });
    for (std::size_t i = 0; i < graph.lane_count(); ++i) {
      number_spans(graph.first(static_cast<LaneId>(i)), waits);
    }
  }

  std::vector<Group> by_class(const std::vector<TaskId>& tasks) {
    std::vector<Group> chains;
    Group chain;
    std::int64_t reductions = 0;
    const auto close = [&] {
      if (chain.size() > 1 || (rule_.any && !chain.empty())) chains.push_back(chain);
      chain.clear();
      reductions = 0;
    };
    for (const TaskId task : tasks) {
      const Pattern pattern = rule_.any ? any_kernel(task) : pattern_of(task);
      if (pattern == Pattern::other) {
        close();
        continue;
      }
      const std::int64_t reduces = pattern == Pattern::pointwise ? 0 : 1;
      const bool full = static_cast<std::int64_t>(chain.size()) >= rule_.longest ||
                        reductions + reduces > rule_.reductions;
      if (chain.empty() || full || !follows(chain.back(), task)) close();
      if (reduces > rule_.reductions) continue;
      chain.push_back(task);
      reductions += reduces;
    }
    close();
    return chains;
  }

  std::vector<Group> by_name(const std::vector<TaskId>& tasks) {
    std::vector<Group> chains;
    const std::size_t length = rule_.names.size();
    for (std::size_t i = 0; i + length <= tasks.size();) {
      std::size_t matched = 0;
      while (matched < length && matches(tasks[i + matched], matched) &&
             (matched == 0 || follows(tasks[i + matched - 1], tasks[i + matched]))) {
        ++matched;
      }
      if (matched == length) {
        const auto begin = tasks.begin() + static_cast<std::ptrdiff_t>(i);
        chains.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
      }
      i += matched == length ? length : 1;
    }
    return chains;
  }

 private:
  void mark_wait(const Dependency& wait, std::vector<char>& waits) {
    const TaskKind kind = graph_.task(wait.after).kind;
    const bool on_device = runs_on_device(kind);
    const bool from_device = runs_on_device(graph_.task(wait.before).kind);
    if (on_device && launches_.launch_of(wait.after) != wait.before &&
        graph_.lane_of(wait.before) != graph_.lane_of(wait.after)) {
      begins_[index(wait.after)] = 1;
    }
    // A launch that waits for a place in the launch queue does not use the result of the kernel.
    const bool for_place = kind == TaskKind::launch && wait.why == Rule::launch_queue;
    if (from_device && !for_place && graph_.lane_of(wait.before) != graph_.lane_of(wait.after)) {
      ends_[index(wait.before)] = 1;
    }
    if (from_device && !on_device && !for_place) waits[index(wait.after)] = 1;
  }

  /// Numbers the spans of a thread. Between the launches of one span, the thread does not
  /// wait for the device.
  void number_spans(TaskId first, const std::vector<char>& waits) {
    if (first == kNoTask) return;
    ++spans_;
    for (TaskId task = first; task != kNoTask; task = graph_.next(task)) {
      const TaskKind kind = graph_.task(task).kind;
      span_[index(task)] = spans_;
      if (waits[index(task)] != 0 || kind == TaskKind::sync || kind == TaskKind::input) ++spans_;
    }
  }

  Pattern any_kernel(TaskId id) const {
    return graph_.task(id).kind == TaskKind::kernel ? Pattern::pointwise : Pattern::other;
  }

  /// Returns Pattern::other for kernels of TorchInductor: the compiler chose not to fuse them.
  Pattern pattern_of(TaskId id) {
    const Task& task = graph_.task(id);
    if (task.kind != TaskKind::kernel || graph_.names()[task.name].starts_with("triton_"))
      return Pattern::other;
    return classes_.of(task.name).pattern;
  }

  bool matches(TaskId task, std::size_t place) {
    if (graph_.task(task).kind != TaskKind::kernel) return false;
    const auto [at, unknown] = matches_.try_emplace({graph_.task(task).name, place}, false);
    if (unknown) at->second = rule_.names[place].matches(graph_.name(task));
    return at->second;
  }

  /// Whether `next` directly follows `task` on its stream and can be fused with it: nothing outside
  /// the stream waits for `task`, `next` waits for nothing but its launch, and the host does not
  /// wait for the device between the two launches.
  bool follows(TaskId task, TaskId next) const {
    const Task& a = graph_.task(task);
    const Task& b = graph_.task(next);
    if (graph_.next(task) != next || a.phase != b.phase || a.step != b.step) return false;
    if (begins_[index(next)] != 0 || ends_[index(task)] != 0) return false;
    const TaskId launch = launches_.launch_of(task);
    const TaskId next_launch = launches_.launch_of(next);
    if (launch == kNoTask || next_launch == kNoTask) return launch == next_launch;
    return span_[index(launch)] == span_[index(next_launch)];
  }

  const Graph& graph_;
  const Launches& launches_;
  const ChainRule& rule_;
  KernelClasses classes_;
  std::vector<char> begins_;  ///< The task waits for more than its launch and its stream.
  std::vector<char> ends_;    ///< A task on another lane waits for the task.
  std::vector<std::uint32_t> span_;
  std::uint32_t spans_ = 0;
  std::map<std::pair<NameId, std::size_t>, bool> matches_;
};

/// Returns how many outputs and inputs a pointwise kernel of PyTorch has, from "std::array<char*,
/// 3ul>" in its name; 0 if the name does not say.
int tensors_in_array(std::string_view name) {
  const std::size_t array = name.find("rray<char");
  if (array == std::string_view::npos) return 0;
  std::size_t at = name.find(',', array);
  if (at == std::string_view::npos) return 0;
  constexpr std::string_view kCast = "(unsigned long)";
  ++at;
  while (at < name.size() && name[at] == ' ') ++at;
  if (name.substr(at).starts_with(kCast)) at += kCast.size();
  const bool digit = at < name.size() && name[at] >= '1' && name[at] <= '9';
  return digit ? name[at] - '0' : 0;
}

int tensors_named(std::string_view name) {
  if (const int count = tensors_in_array(name); count > 0) return count;
  // PyTorch's kernel for operands of different layouts: usually one operand is small and broadcast.
  if (name.find("::elementwise_kernel<") != std::string_view::npos) return 2;
  constexpr std::pair<std::string_view, int> kFunctors[] = {
      {"FillFunctor", 1},   {"arange", 1},        {"BUnaryFunctor", 2},
      {"AUnaryFunctor", 2}, {"OnSelf_add", 2},    {"direct_copy", 2},
      {"where_kernel", 4},  {"BinaryFunctor", 3}, {"CUDAFunctor_add", 3}};
  for (const auto& [functor, count] : kFunctors) {
    if (name.find(functor) != std::string_view::npos) return count;
  }
  return 0;
}

/// The bytes that a chain moves before and after fusion, from the accesses of its kernels.
struct Traffic {
  Bytes before{}, after{};
  std::vector<std::uint32_t> temporaries;  ///< Allocations that only the chain touches.
};

class ChainPrice {
 public:
  ChainPrice(const Graph& graph, const ChainCost& cost)
      : graph_(graph), cost_(cost), classes_(graph), accesses_(graph) {
    by_task_.reserve(graph.accesses().size());
    for (const Access& access : graph.accesses()) by_task_.push_back(access);
    std::stable_sort(by_task_.begin(), by_task_.end(),
                     [](const Access& a, const Access& b) { return a.task < b.task; });
  }

  Nanoseconds duration(const Group& chain, const std::optional<Traffic>& traffic) {
    const Nanoseconds sum = total_duration(graph_, chain);
    if (cost_.duration == "sum") return sum;
    Nanoseconds longest(0), fixed(0);
    for (const TaskId task : chain) {
      const Nanoseconds duration = graph_.task(task).duration;
      longest = std::max(longest, duration);
      if (!bound_by_memory(task)) fixed += duration;
    }
    if (cost_.duration == "longest") return longest;
    const Nanoseconds moved = sum - fixed;
    const double share =
        traffic && traffic->before.count > 0
            ? static_cast<double>(traffic->after.count) / static_cast<double>(traffic->before.count)
            : 1;
    const Nanoseconds wanted =
        traffic ? fixed + scaled(moved, share) : sum - saved_at_junctions(chain);
    return std::min(sum, std::max(wanted, cost_.shortest));
  }

  /// Returns nullopt if a kernel has no recorded write, because its accesses are unknown then.
  std::optional<Traffic> traffic(const Group& chain) const {
    struct Use {
      bool read_first = false, written = false;
      std::size_t inside = 0;
    };
    std::map<std::uint32_t, Use> uses;
    Traffic traffic;
    for (const TaskId task : chain) {
      const auto [begin, end] =
          std::equal_range(by_task_.begin(), by_task_.end(), Access{.task = task},
                           [](const Access& a, const Access& b) { return a.task < b.task; });
      bool writes = false;
      for (auto access = begin; access != end; ++access) {
        const bool first = uses.find(access->allocation) == uses.end();
        Use& use = uses[access->allocation];
        if (first && !access->writes) use.read_first = true;
        use.written = use.written || access->writes;
        writes = writes || access->writes;
        ++use.inside;
        traffic.before += graph_.allocations()[access->allocation].bytes;
      }
      if (!writes) return std::nullopt;
    }
    for (const auto& [allocation, use] : uses) {
      const Allocation& block = graph_.allocations()[allocation];
      const bool is_temporary = use.written && !use.read_first && block.freed_by != kNoTask &&
                                block.made_by != kNoTask &&
                                accesses_.of(allocation).size() == use.inside;
      if (use.read_first) traffic.after += block.bytes;
      if (use.written && !is_temporary) traffic.after += block.bytes;
      if (is_temporary && can_be_removed(block.use)) traffic.temporaries.push_back(allocation);
    }
    return traffic;
  }

 private:
  static bool can_be_removed(MemoryUse use) {
    return use == MemoryUse::temporary || use == MemoryUse::activation ||
           use == MemoryUse::workspace || use == MemoryUse::unknown;
  }

  bool bound_by_memory(TaskId task) {
    return classes_.of(graph_.task(task).name).bound == Boundness::memory;
  }

  Nanoseconds saved_at_junctions(const Group& chain) {
    Nanoseconds saved(0);
    std::vector<Nanoseconds> reads(chain.size(), Nanoseconds(0));
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const bool writer = bound_by_memory(chain[i - 1]);
      const bool reader = bound_by_memory(chain[i]);
      Nanoseconds written = per_tensor(chain[i - 1], true);
      Nanoseconds read = per_tensor(chain[i], false);
      // Both kernels move the same tensor, so the smaller estimate holds. A kernel bound by
      // arithmetic gives no estimate, and its own time does not shrink.
      if (writer && reader) written = read = std::min(written, read);
      if (writer) saved += written;
      if (reader) saved += reads[i] = read;
    }
    return saved + saved_behind_reductions(chain, reads);
  }

  /// Returns the time saved because a kernel that applies a reduction need not read the same data
  /// again, such as x in x / sum(x).
  Nanoseconds saved_behind_reductions(const Group& chain, const std::vector<Nanoseconds>& reads) {
    Nanoseconds saved(0), at_hand(0), most(0);
    for (std::size_t i = 0; i < chain.size(); ++i) {
      const bool reduces = pattern_of(chain[i]) == Pattern::reduction;
      if (reduces) {
        saved += most;
        most = Nanoseconds(0);
        at_hand = per_tensor(chain[i], false);
      } else if (bound_by_memory(chain[i])) {
        most = std::max(most, std::min(at_hand, per_tensor(chain[i], false) - reads[i]));
      }
    }
    return saved + most;
  }

  Pattern pattern_of(TaskId task) { return classes_.of(graph_.task(task).name).pattern; }

  /// Returns the part of a kernel's time that it takes to write (if `writes`) or read one tensor.
  Nanoseconds per_tensor(TaskId id, bool writes) {
    const Task& task = graph_.task(id);
    const auto i = static_cast<std::size_t>(task.name);
    if (i >= tensors_.size()) tensors_.resize(graph_.names().size(), -1);
    if (tensors_[i] < 0) tensors_[i] = tensors_named(graph_.names()[task.name]);
    std::int64_t tensors = tensors_[i] > 0 ? tensors_[i] : cost_.tensors;
    switch (pattern_of(id)) {
      case Pattern::reduction:  // It reads one tensor and writes almost nothing.
        return writes ? Nanoseconds(0) : task.duration;
      case Pattern::normalization:
        return task.duration / 2;
      default:
        return tensors == 1 && !writes ? Nanoseconds(0) : task.duration / tensors;
    }
  }

  const Graph& graph_;
  const ChainCost& cost_;
  KernelClasses classes_;
  AccessLists accesses_;
  std::vector<Access> by_task_;
  std::vector<int> tensors_;
};

/// A name such as "fused add+mul+relu" would be a guess; the first name and the count are facts.
NameId fused_name(Graph& graph, const Group& chain) {
  const std::string_view first = graph.name(chain.front()).substr(0, 200);
  return graph.names().intern(fmt::format("fused({}) {}", chain.size(), first));
}

}  // namespace

std::vector<Group> find_chains(const Graph& graph, const Launches& launches,
                               const std::vector<TaskId>& tasks, const ChainRule& rule) {
  ChainFinder finder(graph, launches, rule);
  return rule.names.empty() ? finder.by_class(tasks) : finder.by_name(tasks);
}

void ChainCost::describe(Fields& fields) {
  fields.choice("duration", duration, {"traffic", "sum", "longest"},
                "Duration of a fused kernel: the time to move the remaining bytes, the sum of the "
                "kernels it replaces, or the longest of them");
  fields.integer("tensors", tensors,
                 "Tensors that a pointwise kernel reads and writes if its name does not say "
                 "(assumed: 3, as for an addition)",
                 1, 1000);
  fields.time("shortest", shortest,
              "No fused kernel gets shorter than this (recalled: an empty kernel takes about 1us)",
              Nanoseconds(0));
}

std::string ChainsFused::to_text() const {
  return fmt::format("{} became {}, from {} to {} in all, {} fewer", counted(kernels, "kernel"),
                     grouped(chains), foretrace::to_text(before), foretrace::to_text(after),
                     counted(launches, "launch call"));
}

void ChainsFused::add_to(Effect& effect, const ChainCost& cost) const {
  effect.changed += kernels - chains + launches + temporaries;
  effect.figures.push_back({"kernels_fused", static_cast<double>(kernels)});
  effect.figures.push_back({"fused_kernels", static_cast<double>(chains)});
  effect.figures.push_back({"launches_gone", static_cast<double>(launches)});
  effect.figures.push_back({"device_time_saved", before - after});
  effect.figures.push_back({"traffic_saved", bytes_kept});
  effect.figures.push_back({"allocations_gone", freed});
  if (chains == 0) return;
  effect.assumptions.push_back(
      "fused kernels pass their results on in registers: memory that only they touch is not "
      "accessed");
  if (cost.duration == "traffic" && by_bytes < chains) {
    effect.assumptions.push_back(
        fmt::format("{} of {} without recorded accesses to memory: all tensors of a kernel are "
                    "assumed to have the same size",
                    grouped(chains - by_bytes), counted(chains, "fused kernel")));
  }
  if (temporaries > 0) {
    effect.assumptions.push_back(
        fmt::format("{} that only fused kernels touch, {} in all, are not made",
                    counted(temporaries, "allocation"), foretrace::to_text(freed)));
  }
}

ChainsFused fuse_chains(Graph& graph, const std::vector<Group>& chains, const ChainCost& cost) {
  ChainsFused result;
  std::vector<Fusion> fusions;
  std::vector<std::uint32_t> temporaries;
  ChainPrice price(graph, cost);
  for (const Group& chain : chains) {
    const std::optional<Traffic> traffic = price.traffic(chain);
    fusions.push_back({.tasks = chain, .duration = price.duration(chain, traffic)});
    result.kernels += chain.size();
    result.before += total_duration(graph, chain);
    result.after += fusions.back().duration;
    result.fused.push_back(chain.front());
    if (!traffic) continue;
    ++result.by_bytes;
    result.bytes_kept += traffic->before - traffic->after;
    temporaries.insert(temporaries.end(), traffic->temporaries.begin(), traffic->temporaries.end());
  }
  result.chains = chains.size();
  for (const Group& chain : chains) {
    graph.task(chain.front()).name = fused_name(graph, chain);
  }
  for (const std::uint32_t allocation : temporaries) {
    result.freed += graph.allocations()[allocation].bytes;
    graph.allocations()[allocation].bytes = {};
  }
  result.temporaries = temporaries.size();
  result.launches = fuse(graph, fusions, NameId{}, true).launches;
  return result;
}

}  // namespace foretrace
