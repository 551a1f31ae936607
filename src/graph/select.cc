#include "graph/select.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

struct Layers {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

std::optional<std::int32_t> to_whole_number(std::string_view text) {
  const auto value = parse_number<std::int32_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

/// "3" or "2-5".
Layers read_layers(const std::string& text) {
  const std::size_t dash = text.find('-');
  const std::string_view whole = text;
  const auto first = to_whole_number(whole.substr(0, dash));
  const auto last = dash == std::string::npos ? first : to_whole_number(whole.substr(dash + 1));
  if (!first || !last || *first > *last) {
    throw Error(
        fmt::format("layer: must be a number or a range such as \"2-5\", got \"{}\"", text));
  }
  return {*first, *last};
}

std::vector<std::string_view> kind_options() {
  std::vector<std::string_view> options = {"any", "all", "device"};
  options.insert(options.end(), task_kind_names().begin(), task_kind_names().end());
  return options;
}

std::vector<std::string_view> phase_options() {
  std::vector<std::string_view> options = {"any"};
  options.insert(options.end(), phase_names().begin(), phase_names().end());
  return options;
}

/// Whether no task has an attribute, which is then the likely reason for an empty selection.
template <class Has>
bool none_has(const Graph& graph, const Has& has) {
  for (std::size_t i = 0; i < graph.task_count(); ++i) {
    const auto id = static_cast<TaskId>(i);
    if (!graph.removed(id) && has(graph.task(id))) return false;
  }
  return true;
}

}  // namespace

void Selector::describe(Fields& fields) {
  fields.choice("kind", kind_, kind_options(),
                "Only tasks of this kind; device: all device work; any: all, but if device work "
                "matches the name, only that");
  fields.text("name", name_, "Only tasks with this text, or /expression/, in their name");
  fields.text("layer", layer_, "Only this layer of the model, or a range such as 2-5");
  fields.text("module", module_, "Only tasks with this text, or /expression/, in their module");
  fields.choice("phase", phase_, phase_options(), "Only tasks of this phase");
  fields.text("stream", stream_, "Only on lanes with this text, or /expression/, in their name");
  fields.optional_integer("rank", rank_, "Only tasks of this rank", 0);
  fields.optional_integer("step", step_, "Only tasks of this step, counted from 0", 0);
}

void Selector::check() const {
  within("name", [&] { NamePattern pattern(name_); });
  within("module", [&] { NamePattern pattern(module_); });
  within("stream", [&] { NamePattern pattern(stream_); });
  if (!layer_.empty()) read_layers(layer_);
}

Selector::Selection Selector::find(const Graph& graph) const {
  check();
  const Layers layers = layer_.empty() ? Layers{} : read_layers(layer_);
  const std::optional<TaskKind> kind = task_kind_named(kind_);
  const std::optional<Phase> phase = phase_named(phase_);
  const NamePattern stream(stream_);
  NameCondition name(name_, graph.names()), module(module_, graph.names());

  const auto is_selected = [&](const Task& task) {
    if (kind ? task.kind != *kind : kind_ == "device" && !runs_on_device(task.kind)) return false;
    if (phase && task.phase != *phase) return false;
    if (step_ && task.step != *step_) return false;
    if (!layer_.empty() && (task.layer < layers.first || task.layer > layers.last)) return false;
    return name(task.name) && module(task.module);
  };
  Selection selected;
  for (std::size_t i = 0; i < graph.lane_count(); ++i) {
    const auto lane = static_cast<LaneId>(i);
    if (rank_ && graph.lane(lane).rank != *rank_) continue;
    if (!stream.matches(graph.lane(lane).name)) continue;
    for (TaskId id = graph.first(lane); id != kNoTask; id = graph.next(id)) {
      if (is_selected(graph.task(id))) selected.tasks.push_back(id);
    }
  }
  const auto on_device = [&](TaskId task) { return runs_on_device(graph.task(task).kind); };
  if (prefers_device() && std::any_of(selected.tasks.begin(), selected.tasks.end(), on_device))
    selected.left_out =
        std::erase_if(selected.tasks, [&](TaskId task) { return !on_device(task); });
  return selected;
}

std::vector<TaskId> Selector::select(const Graph& graph) const { return find(graph).tasks; }

std::size_t Selector::left_out(const Graph& graph) const {
  return prefers_device() ? find(graph).left_out : 0;
}

std::vector<TaskId> Selector::select_some(const Graph& graph, std::string_view setting) const {
  std::vector<TaskId> selected = find(graph).tasks;
  if (!selected.empty()) return selected;
  std::string message = fmt::format("no task matches \"{}\" ({})", setting, to_text());
  if (phase_ != "any" && none_has(graph, [](const Task& t) { return t.phase != Phase::none; })) {
    message += "; the phases of this trace are unknown";
  } else if (const auto phase = phase_named(phase_);
             phase && none_has(graph, [&](const Task& t) { return t.phase == *phase; })) {
    message += "; no task of this trace is of that phase";
  }
  if (!layer_.empty() && none_has(graph, [](const Task& t) { return t.layer >= 0; })) {
    message += "; the layers of this trace are unknown";
  }
  if (!module_.empty() && none_has(graph, [](const Task& t) { return t.module != NameId{}; })) {
    message += "; the modules of this trace are unknown";
  }
  if (step_ && *step_ >= static_cast<std::int64_t>(graph.steps().size())) {
    message += fmt::format("; this trace has {} steps", graph.steps().size());
  }
  throw Error(message);
}

std::string Selector::to_text() const {
  std::string text;
  const auto add = [&](std::string_view setting, const std::string& value) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", setting, value);
  };
  if (kind_ != "any") add("kind", kind_);
  if (!name_.empty()) add("name", '"' + name_ + '"');
  if (!layer_.empty()) add("layer", layer_);
  if (!module_.empty()) add("module", '"' + module_ + '"');
  if (phase_ != "any") add("phase", phase_);
  if (!stream_.empty()) add("stream", '"' + stream_ + '"');
  if (rank_) add("rank", std::to_string(*rank_));
  if (step_) add("step", std::to_string(*step_));
  return text.empty() ? "any task" : text;
}

}  // namespace foretrace
