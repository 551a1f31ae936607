// Odd times (whole microseconds, activities without duration, drifting clocks) can make inferred
// waits form a cycle. The recorded run did finish, so one of the waits is wrong: the one with the
// least evidence is dropped and counted.

#include <fmt/core.h>
#include <tuple>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

/// Number of cycles that are broken one by one; limits the time for a hopeless recording to less
/// than minutes.
constexpr int kMaxRounds = 100;

bool goes_forward(const Timeline& recorded, const Dependency& wait) {
  const auto at = [&](TaskId task) { return std::pair(recorded.start[index(task)], task); };
  return at(wait.before) < at(wait.after);
}

/// Whether every wait goes forward in recorded time; if so, there is no cycle. Takes linear time.
bool goes_forward(const Inference& result) {
  bool forward = true;
  result.graph.each_dependency(
      [&](const Dependency& wait) { forward = forward && goes_forward(result.recorded, wait); });
  return forward;
}

bool same(const Dependency& a, const Dependency& b) {
  return std::tie(a.before, a.after, a.why) == std::tie(b.before, b.after, b.why);
}

/// Returns an inferred wait, or else a measured one; nullptr if the cycle consists of lane order
/// only.
const Dependency* weakest(const std::vector<Dependency>& cycle) {
  const Dependency* found = nullptr;
  for (const Dependency& wait : cycle) {
    if (wait.why == Rule::in_line && wait.provenance == Provenance::structural) continue;
    if (!found ||
        (found->provenance == Provenance::measured && wait.provenance != Provenance::measured)) {
      found = &wait;
    }
  }
  return found;
}

}  // namespace

void break_cycles(Inference& result) {
  if (goes_forward(result)) return;
  std::int64_t dropped = 0;
  std::string example;
  for (int round = 0; round < kMaxRounds; ++round) {
    const std::vector<Dependency> cycle = shortest_cycle(result.graph);
    if (cycle.empty()) break;
    const Dependency* wrong = weakest(cycle);
    if (!wrong) return;  // Lane order alone cannot form a cycle.
    if (example.empty()) {
      example = fmt::format("{} -> {}", result.graph.name(wrong->before),
                            result.graph.name(wrong->after));
    }
    // In a hopeless tangle, everything that could be wrong is dropped at once.
    const bool all = round + 1 == kMaxRounds;
    dropped +=
        static_cast<std::int64_t>(result.graph.remove_dependencies([&](const Dependency& wait) {
          return all ? !goes_forward(result.recorded, wait) : same(wait, *wrong);
        }));
  }
  if (dropped == 0) return;
  result.notes.add(Severity::info, "waits dropped because they formed a cycle", example, dropped);
}

}  // namespace foretrace::infer_detail
