// parse_graph(): the text notation, described in notation.md.

#include <charconv>
#include <fmt/core.h>
#include <unordered_map>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "graph/defaults.h"
#include "graph/tokenizer.h"

namespace foretrace {
namespace {

template <class Number>
Number to_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range)
    throw Error(fmt::format("\"{}\" is out of range", text));
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Error(fmt::format("must be a number, got \"{}\"", text));
  }
  return number;
}

/// Returns the value of an enumeration that has this name.
template <class Find, class Options>
auto to_choice(std::string_view text, const Find& find, const Options& options) {
  const auto found = find(text);
  if (!found) throw Error(fmt::format("\"{}\" is unknown{}", text, did_you_mean(text, options)));
  return *found;
}

class Parser {
 public:
  Graph parse(std::string_view text) {
    for (std::size_t number = 1; !text.empty(); ++number) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      at_line(number, [&] { parse_line(line, number); });
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    for (const auto& numbered : deferred_lines_) {
      at_line(numbered.first, [&] { parse_deferred_line(numbered.second); });
    }
    return std::move(graph_);
  }

 private:
  template <class Action>
  static void at_line(std::size_t number, const Action& action) {
    within("line " + std::to_string(number), action);
  }

  void parse_line(std::string_view line, std::size_t number) {
    Tokenizer tokens(line);
    if (tokens.at_end()) return;
    if (tokens.skip("@step")) {
      graph_.steps().push_back({tokens.take_name("the name of a step")});
      finish(tokens);
    } else if (tokens.skip("@memory")) {
      parse_initial_memory(tokens);
    } else if (tokens.skip("@")) {
      deferred_lines_.emplace_back(number, line);
    } else {
      const std::string first = tokens.take_name("a lane or a task");
      if (tokens.skip("->") || tokens.skip("^->")) {
        deferred_lines_.emplace_back(number, line);
      } else {
        parse_lane(first, tokens);
      }
    }
  }

  /// Lines that refer to tasks are parsed after all tasks are known.
  void parse_deferred_line(std::string_view line) {
    Tokenizer tokens(line);
    if (tokens.skip("@alloc")) {
      parse_allocation(tokens);
    } else if (tokens.skip("@")) {
      tokens.fail("@step, @memory or @alloc");
    } else {
      parse_dependency(tokens);
    }
  }

  static void finish(Tokenizer& tokens) {
    if (!tokens.at_end()) tokens.fail("the end of the line");
  }

  // lane = "name" [kind device=0 ...]: task, task
  void parse_lane(const std::string& label, Tokenizer& tokens) {
    const std::string name = tokens.skip("=") ? tokens.take_name("the name of a lane") : label;
    const auto [known, is_new] = lanes_.try_emplace(label, kNoLane);
    if (is_new) known->second = graph_.add_lane({.name = name});
    const LaneId lane = known->second;
    bool has_kind = !is_new, has_device = !is_new;
    if (tokens.skip("[")) parse_lane_attributes(tokens, graph_.lane(lane), has_kind, has_device);
    tokens.take(":");
    if (!tokens.at_end()) {
      do parse_task(lane, tokens);
      while (tokens.skip(","));
    }
    finish(tokens);
    Lane& made = graph_.lane(lane);
    if (!has_kind) made.kind = default_kind(graph_, lane);
    if (!has_device) made.device = default_device(made.kind);
  }

  static void parse_lane_attributes(Tokenizer& tokens, Lane& lane, bool& has_kind,
                                    bool& has_device) {
    while (!tokens.skip("]")) {
      const std::string word(
          tokens.take_word("a kind of lane, device=, rank=, shared= or priority=", "=]"));
      if (!tokens.skip("=")) {
        lane.kind = to_choice(word, lane_kind_named, lane_kind_names());
        has_kind = true;
      } else if (word == "device") {
        lane.device = to_number<std::int32_t>(tokens.take_word("a number", "]"));
        has_device = true;
      } else if (word == "rank") {
        lane.rank = to_number<std::int32_t>(tokens.take_word("a number", "]"));
      } else if (word == "shared") {
        lane.discipline = Discipline::shared;
        lane.capacity = parse_bandwidth(tokens.take_word("a bandwidth", "]"));
      } else if (word == "priority") {
        lane.discipline = Discipline::priority;
        lane.slice = tokens.take_ticks();
      } else {
        throw Error(fmt::format(
            "a lane has no attribute \"{}\"; it has device, rank, shared, priority", word));
      }
    }
  }

  // label = "name":kind 3 {step=1 ...}
  void parse_task(LaneId lane, Tokenizer& tokens) {
    const std::string label = tokens.take_name("a task");
    Task task;
    task.name =
        graph_.names().intern(tokens.skip("=") ? tokens.take_name("the name of a task") : label);
    if (tokens.skip(":")) {
      task.kind = to_choice(tokens.take_name("a kind of task"), task_kind_named, task_kind_names());
    }
    task.duration = tokens.take_ticks();
    if (task.duration < 0ns) throw Error("a task cannot take less than 0");
    if (tokens.skip("{")) parse_task_attributes(tokens, task);
    const TaskId id = graph_.append(lane, task);
    const auto [known, is_new] = tasks_.try_emplace(label, id);
    if (!is_new)
      known->second = kNoTask;  // A label shared by several tasks refers to none of them.
  }

  void parse_task_attributes(Tokenizer& tokens, Task& task) {
    while (!tokens.skip("}")) {
      const std::string key(tokens.take_word("an attribute of a task", "=}"));
      tokens.take("=");
      if (key == "gap") {
        task.gap = tokens.take_ticks();
        if (task.gap < 0ns) throw Error("a gap cannot be negative; tail=25% lets a task overlap");
      } else if (key == "tail") {
        task.tail = take_tail(tokens);
      } else if (key == "module") {
        task.module = graph_.names().intern(tokens.take_name("a module"));
      } else {
        set_attribute(task, key, tokens.take_word("a value", "}"));
      }
    }
  }

  static void set_attribute(Task& task, const std::string& key, std::string_view value) {
    if (key == "step") {
      task.step = to_number<std::int32_t>(value);
    } else if (key == "phase") {
      task.phase = to_choice(value, phase_named, phase_names());
    } else if (key == "layer") {
      task.layer = to_number<std::int32_t>(value);
    } else if (key == "priority") {
      task.priority = to_number<std::int32_t>(value);
    } else if (key == "bytes") {
      task.bytes = parse_bytes(value);
    } else if (key == "flops") {
      task.flops = to_number<double>(value);
    } else if (key == "inner") {
      task.inner = to_number<float>(value);
    } else if (key == "fill") {
      task.fill = to_number<float>(value);
    } else if (key == "record") {
      task.record = to_number<std::uint32_t>(value);
    } else {
      throw Error(fmt::format(
          "a task has no attribute \"{}\"; it has bytes, fill, flops, gap, inner, layer, "
          "module, phase, priority, record, step, tail",
          key));
    }
  }

  // a ->+2 b [measured "launch"]
  void parse_dependency(Tokenizer& tokens) {
    Dependency wait;
    wait.before = take_task(tokens);
    if (tokens.skip("^")) wait.anchor = Anchor::start;
    tokens.take("->");
    if (tokens.skip("-")) wait.tail = take_tail(tokens);
    if (tokens.skip("+")) wait.lag = tokens.take_ticks();
    wait.after = take_task(tokens);
    if (tokens.skip("[")) {
      const std::string provenance = tokens.take_name("a provenance");
      wait.provenance = to_choice(provenance, provenance_named, provenance_names());
      if (!tokens.skip("]")) {
        wait.why = wait_reason_named(graph_.names(), tokens.take_name("why"));
        tokens.take("]");
      }
    }
    finish(tokens);
    graph_.add(wait);
  }

  /// "25%"
  static TailShare take_tail(Tokenizer& tokens) {
    const auto share = to_number<double>(tokens.take_word("a share of a task", "%"));
    tokens.take("%");
    if (!(share >= 0 && share <= 100)) throw Error("a tail is 0% to 100% of the task before it");
    return TailShare::nearest(share / 100);
  }

  TaskId take_task(Tokenizer& tokens) {
    const std::string label = tokens.take_name("a task");
    const auto found = tasks_.find(label);
    if (found == tasks_.end()) throw Error("there is no task " + in_quotes(label));
    if (found->second == kNoTask) {
      throw Error(fmt::format("several tasks are called {}; give them labels (label=\"name\")",
                              in_quotes(label)));
    }
    return found->second;
  }

  // @alloc 4KiB device=0 stream=s use=activation: a .. b reads c, d writes a
  void parse_allocation(Tokenizer& tokens) {
    Allocation block;
    block.bytes = parse_bytes(tokens.take_word("bytes", ":"));
    while (!tokens.skip(":")) parse_allocation_attribute(tokens, block);
    if (!tokens.skip("..")) {
      block.made_by = take_task(tokens);
      tokens.take("..");
    }
    graph_.allocations().push_back(block);
    bool writes = false;
    const auto takes_accesses = [&] {
      writes = tokens.skip("writes ");
      return writes || tokens.skip("reads ");
    };
    if (!takes_accesses()) {
      if (tokens.at_end()) return;
      graph_.allocations().back().freed_by = take_task(tokens);
      if (!takes_accesses()) return finish(tokens);
    }
    const auto number = static_cast<std::uint32_t>(graph_.allocations().size() - 1);
    do {
      do graph_.accesses().push_back({number, take_task(tokens), writes});
      while (tokens.skip(","));
    } while (takes_accesses());
    finish(tokens);
  }

  void parse_allocation_attribute(Tokenizer& tokens, Allocation& block) {
    const std::string key(tokens.take_word("an attribute of an allocation, or \":\"", "=:"));
    tokens.take("=");
    if (key == "device") {
      block.device = to_number<std::int32_t>(tokens.take_word("a number", ":"));
    } else if (key == "stream") {
      const std::string label = tokens.take_name("a lane");
      const auto found = lanes_.find(label);
      if (found == lanes_.end()) throw Error("there is no lane " + in_quotes(label));
      block.stream = found->second;
    } else if (key == "use") {
      block.use =
          to_choice(tokens.take_name("a use of memory"), memory_use_named, memory_use_names());
    } else if (key == "requested") {
      block.requested = parse_bytes(tokens.take_word("bytes", ":"));
    } else if (key == "op") {
      block.op = graph_.names().intern(tokens.take_name("an op"));
    } else if (key == "stack") {
      block.stack = graph_.names().intern(tokens.take_name("source lines"));
    } else if (key == "made") {
      block.made_order = to_number<std::uint32_t>(tokens.take_word("a number", "+:"));
      if (tokens.skip("+")) block.made_after = tokens.take_ticks();
    } else if (key == "freed") {
      block.freed_order = to_number<std::uint32_t>(tokens.take_word("a number", "+:"));
      if (tokens.skip("+")) block.freed_after = tokens.take_ticks();
    } else {
      throw Error(fmt::format(
          "an allocation has no attribute \"{}\"; it has device, freed, made, op, requested, "
          "stack, stream, use",
          key));
    }
  }

  // @memory 4KiB device=0
  void parse_initial_memory(Tokenizer& tokens) {
    constexpr std::size_t kMaxDevices = 65536;
    const Bytes bytes = parse_bytes(tokens.take_word("bytes", ""));
    tokens.take("device=");
    const auto device = to_number<std::size_t>(tokens.take_word("a number", ""));
    if (device >= kMaxDevices)
      throw Error(fmt::format("there are at most {} devices", kMaxDevices));
    std::vector<Bytes>& memory = graph_.initial_memory();
    if (memory.size() <= device) memory.resize(device + 1);
    memory[device] = bytes;
    finish(tokens);
  }

  Graph graph_;
  std::unordered_map<std::string, LaneId> lanes_;
  std::unordered_map<std::string, TaskId> tasks_;
  std::vector<std::pair<std::size_t, std::string_view>>
      deferred_lines_;  ///< Lines with their numbers.
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser().parse(text); }

}  // namespace foretrace
