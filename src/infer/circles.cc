// Odd times (whole microseconds, activities of no duration, clocks that drift) can make inferred
// waits form a cycle. A recording happened, so one of them is wrong: the one with the least
// evidence is dropped and counted.

#include <tuple>

#include "infer/draft.h"

namespace foretrace::infer_detail {
namespace {

/// Cycles that are broken one by one; chosen so that a hopeless recording does not take minutes.
constexpr int kMostRounds = 100;

bool goes_forward(const Draft& draft, const Dependency& wait) {
  const auto at = [&](TaskId task) { return std::pair(draft.recorded.start[index(task)], task); };
  return at(wait.before) < at(wait.after);
}

/// Whether every wait goes forward in recorded time; then there can be no cycle. Linear.
bool goes_forward(const Draft& draft) {
  bool forward = true;
  draft.graph.each_dependency(
      [&](const Dependency& wait) { forward = forward && goes_forward(draft, wait); });
  return forward;
}

bool same(const Dependency& a, const Dependency& b) {
  return std::tie(a.before, a.after, a.why) == std::tie(b.before, b.after, b.why);
}

/// An inferred wait, else a measured one; nullptr if the circle is made of lanes.
const Dependency* weakest(const std::vector<Dependency>& circle) {
  const Dependency* found = nullptr;
  for (const Dependency& wait : circle) {
    if (wait.why == Rule::in_line && wait.provenance == Provenance::structural) continue;
    if (!found ||
        (found->provenance == Provenance::measured && wait.provenance != Provenance::measured)) {
      found = &wait;
    }
  }
  return found;
}

}  // namespace

void break_circles(Draft& draft) {
  if (goes_forward(draft)) return;
  std::int64_t dropped = 0;
  std::string example;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<Dependency> circle = shortest_circle(draft.graph);
    if (circle.empty()) break;
    const Dependency* wrong = weakest(circle);
    if (!wrong) return;  // Lanes alone make no circle.
    if (example.empty()) {
      example = std::string(draft.graph.name(wrong->before)) + " -> " +
                std::string(draft.graph.name(wrong->after));
    }
    // In a hopeless tangle, everything that could be wrong is dropped at once.
    const bool all = round + 1 == kMostRounds;
    dropped +=
        static_cast<std::int64_t>(draft.graph.remove_dependencies([&](const Dependency& wait) {
          return all ? !goes_forward(draft, wait) : same(wait, *wrong);
        }));
  }
  if (dropped == 0) return;
  draft.notes.add(Severity::info, "waits dropped because they formed a cycle", example, dropped);
}

}  // namespace foretrace::infer_detail
