#include "cli/part.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/infer.h"

namespace foretrace {
namespace {

struct Range {
  std::string_view first, last;
};

/// "3-5"; "3" is "3-3" if `may_be_one`.
Range range_of(std::string_view text, bool may_be_one) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos && may_be_one) return {text, text};
  if (dash == std::string_view::npos) return {text, {}};
  return {text.substr(0, dash), text.substr(dash + 1)};
}

std::int64_t step_number(std::string_view text, const std::string& whole) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || number < 0)
    throw Error("--steps: must be a number or a range such as 3-5, got '" + whole + "'");
  return number;
}

struct Steps {
  std::int64_t first = 0, last = 0;
};

Steps steps_of(const std::string& text) {
  const Range range = range_of(text, true);
  const Steps steps{step_number(range.first, text), step_number(range.last, text)};
  if (steps.last < steps.first)
    throw Error("--steps: must not end before it begins, got '" + text + "'");
  return steps;
}

Window window_of(const std::string& text) {
  return within("--window", [&] {
    const Range range = range_of(text, false);
    if (range.first.empty() || range.last.empty())
      throw Error("must be two times since the begin of the trace, such as 100ms-250ms, got '" +
                  text + "'");
    const Window window{parse_time(range.first).count(), parse_time(range.last).count()};
    if (window.end_ns <= window.begin_ns)
      throw Error("must end behind its begin, got '" + text + "'");
    return window;
  });
}

/// Where nothing in the trace marks steps, those that are found in it, numbered from 0.
Window window_of_found_steps(const Trace& trace, Steps steps) {
  const Inference inference = infer(trace);
  const Graph& graph = inference.graph;
  const auto count = static_cast<std::int64_t>(graph.steps().size());
  if (steps.last >= count) {
    throw Error(count == 0 ? "--steps: no steps were found in this trace; --window cuts by time"
                           : "--steps: must be between 0 and " + std::to_string(count - 1) +
                                 ", the steps found in this trace, got " +
                                 std::to_string(steps.first) + "-" + std::to_string(steps.last));
  }
  Window window{std::numeric_limits<std::int64_t>::max(), 0};
  for (const bool on_host : {true, false}) {
    for (std::size_t i = 0; i < graph.task_count(); ++i) {
      const Task& task = graph.task(static_cast<TaskId>(i));
      if (task.step < steps.first || task.step > steps.last) continue;
      if (runs_on_device(task.kind) == on_host) continue;
      window.begin_ns = std::min(window.begin_ns, inference.recorded.start[i].count());
      window.end_ns = std::max(window.end_ns, inference.recorded.finish[i].count());
    }
    if (window.end_ns > window.begin_ns) return window;
  }
  throw Error("--steps: the steps hold no work");
}

}  // namespace

void PartOption::add_to(CLI::App& command) {
  CLI::Option* const by_steps =
      command
          .add_option("--steps", steps,
                      "Only these steps, as the profiler numbered them (3 or 3-5); counted from 0 "
                      "in a trace without marks")
          ->type_name("A-B");
  command
      .add_option("--window", window,
                  "Only what happened between two times since the begin of the trace "
                  "(100ms-250ms), and what was launched then")
      ->type_name("A-B")
      ->excludes(by_steps);
}

void PartOption::check() const {
  if (!steps.empty()) steps_of(steps);
  if (!window.empty()) window_of(window);
}

void PartOption::apply(std::vector<Trace>& traces) const {
  if (steps.empty() && window.empty()) return;
  for (Trace& trace : traces) {
    if (!window.empty()) {
      trace = within("--window", [&] { return cut(trace, window_of(window)); });
      continue;
    }
    const Steps wanted = steps_of(steps);
    const auto marked =
        within("--steps", [&] { return window_of_steps(trace, wanted.first, wanted.last); });
    trace = cut(trace, marked ? *marked : window_of_found_steps(trace, wanted));
  }
}

}  // namespace foretrace
