// parse_graph(): the text notation, described in notation.md.

#include <charconv>
#include <fmt/core.h>
#include <unordered_map>

#include "foretrace/error.h"
#include "foretrace/graph.h"
#include "graph/defaults.h"
#include "graph/words.h"

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
    for (const auto& numbered : about_tasks_) {
      at_line(numbered.first, [&] { parse_about_tasks(numbered.second); });
    }
    return std::move(graph_);
  }

 private:
  template <class Action>
  static void at_line(std::size_t number, const Action& action) {
    within("line " + std::to_string(number), action);
  }

  void parse_line(std::string_view line, std::size_t number) {
    Words words(line);
    if (words.at_end()) return;
    if (words.skip("@step")) {
      graph_.steps().push_back({words.take_name("the name of a step")});
      finish(words);
    } else if (words.skip("@memory")) {
      parse_initial_memory(words);
    } else if (words.skip("@")) {
      about_tasks_.emplace_back(number, line);
    } else {
      const std::string first = words.take_name("a lane or a task");
      if (words.skip("->") || words.skip("^->")) {
        about_tasks_.emplace_back(number, line);
      } else {
        parse_lane(first, words);
      }
    }
  }

  /// Lines that refer to tasks are parsed after all tasks are known.
  void parse_about_tasks(std::string_view line) {
    Words words(line);
    if (words.skip("@alloc")) {
      parse_allocation(words);
    } else if (words.skip("@")) {
      words.fail("@step, @memory or @alloc");
    } else {
      parse_dependency(words);
    }
  }

  static void finish(Words& words) {
    if (!words.at_end()) words.fail("the end of the line");
  }

  // lane = "name" [kind device=0 ...]: task, task
  void parse_lane(const std::string& label, Words& words) {
    const std::string name = words.skip("=") ? words.take_name("the name of a lane") : label;
    const auto [known, is_new] = lanes_.try_emplace(label, kNoLane);
    if (is_new) known->second = graph_.add_lane({.name = name});
    const LaneId lane = known->second;
    bool has_kind = !is_new, has_device = !is_new;
    if (words.skip("[")) parse_lane_attributes(words, graph_.lane(lane), has_kind, has_device);
    words.take(":");
    if (!words.at_end()) {
      do parse_task(lane, words);
      while (words.skip(","));
    }
    finish(words);
    Lane& made = graph_.lane(lane);
    if (!has_kind) made.kind = default_kind(graph_, lane);
    if (!has_device) made.device = default_device(made.kind);
  }

  static void parse_lane_attributes(Words& words, Lane& lane, bool& has_kind, bool& has_device) {
    while (!words.skip("]")) {
      const std::string word(
          words.take_word("a kind of lane, device=, rank=, shared= or priority=", "=]"));
      if (!words.skip("=")) {
        lane.kind = to_choice(word, lane_kind_named, lane_kind_names());
        has_kind = true;
      } else if (word == "device") {
        lane.device = to_number<std::int32_t>(words.take_word("a number", "]"));
        has_device = true;
      } else if (word == "rank") {
        lane.rank = to_number<std::int32_t>(words.take_word("a number", "]"));
      } else if (word == "shared") {
        lane.discipline = Discipline::shared;
        lane.capacity = parse_bandwidth(words.take_word("a bandwidth", "]"));
      } else if (word == "priority") {
        lane.discipline = Discipline::priority;
        lane.slice = words.take_ticks();
      } else {
        throw Error(fmt::format(
            "a lane has no attribute \"{}\"; it has device, rank, shared, priority", word));
      }
    }
  }

  // label = "name":kind 3 {step=1 ...}
  void parse_task(LaneId lane, Words& words) {
    const std::string label = words.take_name("a task");
    Task task;
    task.name =
        graph_.names().intern(words.skip("=") ? words.take_name("the name of a task") : label);
    if (words.skip(":")) {
      task.kind = to_choice(words.take_name("a kind of task"), task_kind_named, task_kind_names());
    }
    task.duration = words.take_ticks();
    if (task.duration < 0ns) throw Error("a task cannot take less than 0");
    if (words.skip("{")) parse_task_attributes(words, task);
    const TaskId id = graph_.append(lane, task);
    const auto [known, is_new] = tasks_.try_emplace(label, id);
    if (!is_new)
      known->second = kNoTask;  // A label shared by several tasks refers to none of them.
  }

  void parse_task_attributes(Words& words, Task& task) {
    while (!words.skip("}")) {
      const std::string key(words.take_word("an attribute of a task", "=}"));
      words.take("=");
      if (key == "gap") {
        task.gap = words.take_ticks();
        if (task.gap < 0ns) throw Error("a gap cannot be negative; tail=25% lets a task overlap");
      } else if (key == "tail") {
        task.tail = take_tail(words);
      } else if (key == "module") {
        task.module = graph_.names().intern(words.take_name("a module"));
      } else {
        set_attribute(task, key, words.take_word("a value", "}"));
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
    } else if (key == "fill") {
      task.fill = to_number<float>(value);
    } else if (key == "record") {
      task.record = to_number<std::uint32_t>(value);
    } else {
      throw Error(fmt::format(
          "a task has no attribute \"{}\"; it has bytes, fill, flops, gap, layer, module, "
          "phase, priority, record, step, tail",
          key));
    }
  }

  // a ->+2 b [measured "launch"]
  void parse_dependency(Words& words) {
    Dependency wait;
    wait.before = take_task(words);
    if (words.skip("^")) wait.anchor = Anchor::start;
    words.take("->");
    if (words.skip("-")) wait.tail = take_tail(words);
    if (words.skip("+")) wait.lag = words.take_ticks();
    wait.after = take_task(words);
    if (words.skip("[")) {
      const std::string provenance = words.take_name("a provenance");
      wait.provenance = to_choice(provenance, provenance_named, provenance_names());
      if (!words.skip("]")) {
        wait.why = why_named(graph_.names(), words.take_name("why"));
        words.take("]");
      }
    }
    finish(words);
    graph_.add(wait);
  }

  /// "25%"
  static Tail take_tail(Words& words) {
    const auto share = to_number<double>(words.take_word("a share of a task", "%"));
    words.take("%");
    if (!(share >= 0 && share <= 100)) throw Error("a tail is 0% to 100% of the task before it");
    return Tail::of_share(share / 100);
  }

  TaskId take_task(Words& words) {
    const std::string label = words.take_name("a task");
    const auto found = tasks_.find(label);
    if (found == tasks_.end()) throw Error("there is no task " + in_quotes(label));
    if (found->second == kNoTask) {
      throw Error(fmt::format("several tasks are called {}; give them labels (label=\"name\")",
                              in_quotes(label)));
    }
    return found->second;
  }

  // @alloc 4KiB device=0 stream=s use=activation: a .. b reads c, d writes a
  void parse_allocation(Words& words) {
    Allocation block;
    block.bytes = parse_bytes(words.take_word("bytes", ":"));
    while (!words.skip(":")) parse_allocation_attribute(words, block);
    if (!words.skip("..")) {
      block.made_by = take_task(words);
      words.take("..");
    }
    graph_.allocations().push_back(block);
    bool writes = false;
    const auto takes_accesses = [&] {
      writes = words.skip("writes ");
      return writes || words.skip("reads ");
    };
    if (!takes_accesses()) {
      if (words.at_end()) return;
      graph_.allocations().back().freed_by = take_task(words);
      if (!takes_accesses()) return finish(words);
    }
    const auto number = static_cast<std::uint32_t>(graph_.allocations().size() - 1);
    do {
      do graph_.accesses().push_back({number, take_task(words), writes});
      while (words.skip(","));
    } while (takes_accesses());
    finish(words);
  }

  void parse_allocation_attribute(Words& words, Allocation& block) {
    const std::string key(words.take_word("an attribute of an allocation, or \":\"", "=:"));
    words.take("=");
    if (key == "device") {
      block.device = to_number<std::int32_t>(words.take_word("a number", ":"));
    } else if (key == "stream") {
      const std::string label = words.take_name("a lane");
      const auto found = lanes_.find(label);
      if (found == lanes_.end()) throw Error("there is no lane " + in_quotes(label));
      block.stream = found->second;
    } else if (key == "use") {
      block.use =
          to_choice(words.take_name("a use of memory"), memory_use_named, memory_use_names());
    } else if (key == "requested") {
      block.requested = parse_bytes(words.take_word("bytes", ":"));
    } else if (key == "op") {
      block.op = graph_.names().intern(words.take_name("an op"));
    } else if (key == "stack") {
      block.stack = graph_.names().intern(words.take_name("source lines"));
    } else if (key == "made") {
      block.made_order = to_number<std::uint32_t>(words.take_word("a number", "+:"));
      if (words.skip("+")) block.made_after = words.take_ticks();
    } else if (key == "freed") {
      block.freed_order = to_number<std::uint32_t>(words.take_word("a number", "+:"));
      if (words.skip("+")) block.freed_after = words.take_ticks();
    } else {
      throw Error(fmt::format(
          "an allocation has no attribute \"{}\"; it has device, freed, made, op, requested, "
          "stack, stream, use",
          key));
    }
  }

  // @memory 4KiB device=0
  void parse_initial_memory(Words& words) {
    constexpr std::size_t kMostDevices = 65536;
    const Bytes bytes = parse_bytes(words.take_word("bytes", ""));
    words.take("device=");
    const auto device = to_number<std::size_t>(words.take_word("a number", ""));
    if (device >= kMostDevices)
      throw Error(fmt::format("there are at most {} devices", kMostDevices));
    std::vector<Bytes>& memory = graph_.initial_memory();
    if (memory.size() <= device) memory.resize(device + 1);
    memory[device] = bytes;
    finish(words);
  }

  Graph graph_;
  std::unordered_map<std::string, LaneId> lanes_;
  std::unordered_map<std::string, TaskId> tasks_;
  std::vector<std::pair<std::size_t, std::string_view>>
      about_tasks_;  ///< Lines with their numbers.
};

}  // namespace

Graph parse_graph(std::string_view text) { return Parser().parse(text); }

}  // namespace foretrace
