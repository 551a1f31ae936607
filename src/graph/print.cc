// to_text(): the text notation, described in notation.md.

#include <fmt/core.h>
#include <unordered_map>
#include <unordered_set>

#include "foretrace/graph.h"
#include "graph/defaults.h"
#include "graph/tokenizer.h"

namespace foretrace {
namespace {

/// Makes unique labels for things that may share a name: the name itself for the first, "name~2"
/// for the next.
class Labels {
 public:
  explicit Labels(std::unordered_set<std::string> names) : taken_(std::move(names)) {}

  std::string label_of(std::string_view name) {
    std::size_t& count = counts_[std::string(name)];
    if (++count == 1) return std::string(name);
    std::string label;
    do label = fmt::format("{}~{}", name, count);
    while (!taken_.insert(label).second && ++count != 0);
    return label;
  }

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, std::size_t> counts_;
};

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph), task_labels_(graph.task_count()) {}

  std::string print() {
    label_lanes();
    label_tasks();
    for (const Step& step : graph_.steps()) text_ += "@step " + in_quotes(step.name) + '\n';
    print_initial_memory();
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) print_lane(LaneId{i});
    graph_.each_dependency([&](const Dependency& wait) {
      if (!graph_.removed(wait.before) && !graph_.removed(wait.after)) print_dependency(wait);
    });
    print_allocations();
    return std::move(text_);
  }

 private:
  static std::string labelled(const std::string& label, std::string_view name) {
    return label == name ? in_quotes(label) : in_quotes(label) + '=' + in_quotes(name);
  }

  void label_lanes() {
    std::unordered_set<std::string> names;
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i)
      names.insert(graph_.lane(LaneId{i}).name);
    Labels labels(std::move(names));
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
      lane_labels_.push_back(labels.label_of(graph_.lane(LaneId{i}).name));
    }
  }

  template <class Visit>
  void each_task_in_line(const Visit& visit) const {
    for (std::uint32_t i = 0; i < graph_.lane_count(); ++i) {
      for (TaskId task = graph_.first(LaneId{i}); task != kNoTask; task = graph_.next(task))
        visit(task);
    }
  }

  void label_tasks() {
    std::unordered_set<std::string> names;
    each_task_in_line([&](TaskId task) { names.insert(std::string(graph_.name(task))); });
    Labels labels(std::move(names));
    each_task_in_line(
        [&](TaskId task) { task_labels_[index(task)] = labels.label_of(graph_.name(task)); });
  }

  std::string label(TaskId task) const { return in_quotes(task_labels_[index(task)]); }

  void print_initial_memory() {
    for (std::size_t i = 0; i < graph_.initial_memory().size(); ++i) {
      const Bytes bytes = graph_.initial_memory()[i];
      text_ += fmt::format("@memory {} device={}\n", to_exact_text(bytes), i);
    }
  }

  void print_lane(LaneId id) {
    const Lane& lane = graph_.lane(id);
    text_ += labelled(lane_labels_[index(id)], lane.name) + lane_attributes(id, lane) + ':';
    const char* separator = " ";
    for (TaskId task = graph_.first(id); task != kNoTask; task = graph_.next(task)) {
      text_ += separator;
      print_task(task);
      separator = ", ";
    }
    text_ += '\n';
  }

  std::string lane_attributes(LaneId id, const Lane& lane) const {
    std::string text;
    if (lane.kind != default_kind(graph_, id)) text += ' ' + std::string(to_string(lane.kind));
    if (lane.device != default_device(lane.kind)) text += " device=" + std::to_string(lane.device);
    if (lane.rank != 0) text += " rank=" + std::to_string(lane.rank);
    if (lane.discipline == Discipline::shared) text += " shared=" + to_exact_text(lane.capacity);
    if (lane.discipline == Discipline::priority) text += " priority=" + to_ticks(lane.slice);
    return text.empty() ? text : " [" + text.substr(1) + ']';
  }

  void print_task(TaskId id) {
    const Task& task = graph_.task(id);
    text_ += labelled(task_labels_[index(id)], graph_.name(id));
    if (task.kind != TaskKind::kernel) text_ += ':' + std::string(to_string(task.kind));
    text_ += ' ' + to_ticks(task.duration) + attributes(task);
  }

  std::string attributes(const Task& task) const {
    const Task plain;
    std::string text;
    const auto add = [&](std::string_view key, const std::string& value) {
      text += fmt::format(" {}={}", key, value);
    };
    if (task.step != plain.step) add("step", std::to_string(task.step));
    if (task.phase != plain.phase) add("phase", std::string(to_string(task.phase)));
    if (task.layer != plain.layer) add("layer", std::to_string(task.layer));
    if (task.module != plain.module) add("module", in_quotes(graph_.names()[task.module]));
    if (task.bytes != plain.bytes) add("bytes", to_exact_text(task.bytes));
    if (task.flops != plain.flops) add("flops", to_text(task.flops));
    if (task.inner != plain.inner) add("inner", to_text(static_cast<double>(task.inner)));
    if (task.fill != plain.fill) add("fill", to_text(static_cast<double>(task.fill)));
    if (task.gap != plain.gap) add("gap", to_ticks(task.gap));
    if (task.tail != plain.tail) add("tail", to_share(task.tail));
    if (task.priority != plain.priority) add("priority", std::to_string(task.priority));
    if (task.record != plain.record) add("record", std::to_string(task.record));
    return text.empty() ? text : " {" + text.substr(1) + '}';
  }

  /// Prints a tail with as few digits as read back as the same tail.
  static std::string to_share(TailShare tail) {
    for (int digits = 0;; ++digits) {
      const std::string text = to_fixed(100 * tail.share(), digits);
      if (digits == 4 || TailShare::nearest(std::stod(text) / 100) == tail) return text + '%';
    }
  }

  void print_dependency(const Dependency& wait) {
    text_ += label(wait.before) + (wait.anchor == Anchor::start ? " ^->" : " ->");
    if (!wait.tail.empty()) text_ += '-' + to_share(wait.tail);
    if (wait.lag != 0ns) text_ += '+' + to_ticks(wait.lag);
    text_ += ' ' + label(wait.after);
    if (wait.provenance != Provenance::structural || !wait.why.empty()) {
      text_ += " [" + std::string(to_string(wait.provenance));
      if (!wait.why.empty()) text_ += ' ' + in_quotes(to_string(wait.why, graph_.names()));
      text_ += ']';
    }
    text_ += '\n';
  }

  void print_allocations() {
    const AccessLists accesses(graph_);
    for (std::size_t i = 0; i < graph_.allocations().size(); ++i) {
      print_allocation(graph_.allocations()[i]);
      print_accesses(accesses.of(i));
      text_ += '\n';
    }
  }

  bool is_in_text(TaskId task) const { return task != kNoTask && !graph_.removed(task); }

  void print_allocation(const Allocation& block) {
    text_ += fmt::format("@alloc {} device={}", to_exact_text(block.bytes), block.device);
    if (block.stream != kNoLane) text_ += " stream=" + in_quotes(lane_labels_[index(block.stream)]);
    if (block.use != MemoryUse::unknown) text_ += " use=" + std::string(to_string(block.use));
    if (block.requested != Bytes{}) text_ += " requested=" + to_exact_text(block.requested);
    if (block.op != NameId{}) text_ += " op=" + in_quotes(graph_.names()[block.op]);
    if (block.stack != NameId{}) text_ += " stack=" + in_quotes(graph_.names()[block.stack]);
    print_order(" made=", block.made_order, block.made_after);
    print_order(" freed=", block.freed_order, block.freed_after);
    text_ += ':';
    if (is_in_text(block.made_by)) text_ += ' ' + label(block.made_by);
    text_ += " ..";
    if (is_in_text(block.freed_by)) text_ += ' ' + label(block.freed_by);
  }

  void print_order(std::string_view key, std::uint32_t order, Nanoseconds after) {
    if (order == 0 && after == 0ns) return;
    text_ += std::string(key) + std::to_string(order);
    if (after != 0ns) text_ += '+' + to_ticks(after);
  }

  void print_accesses(std::span<const Access> accesses) {
    std::optional<bool> writes;
    for (const Access& access : accesses) {
      if (!is_in_text(access.task)) continue;
      if (writes == access.writes) {
        text_ += ',';
      } else {
        text_ += access.writes ? " writes" : " reads";
      }
      writes = access.writes;
      text_ += ' ' + label(access.task);
    }
  }

  const Graph& graph_;
  std::vector<std::string> lane_labels_;
  std::vector<std::string> task_labels_;
  std::string text_;
};

}  // namespace

std::string to_text(const Graph& graph) { return Printer(graph).print(); }

}  // namespace foretrace
