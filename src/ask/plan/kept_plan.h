#pragma once

// A search over layouts that can be stopped, continued and divided: the bounds of its layouts are
// kept in a file, a block in a line.
//
//     {"schema": "foretrace.plan.bounds/1", ..., "plan": "1f0c...", "points": 1257, "question":
//     {...}}
//     {"point": 0, "bounds": [[9, 7, 1, 2, 4], [12], null, ...]}
//
// A layout that fits has the bytes of its fullest device, and its bound in microseconds with its
// parts (bubble, network, kernels); one that does not fit has the bytes alone, and null is one that
// the schedule does not serve. Replays are not kept: they take some hundredths of the time, and
// depend on all bounds.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ask/many/shard.h"
#include "foretrace/ask/plan.h"

namespace foretrace {

struct PlanKeeping {
  std::string path{};  ///< The file of the whole search.
  Shard shard{};
  bool fresh = false;  ///< What the file has is deleted.
};

/// Progress, counted in blocks of layouts. `begin` gets how many the file had and how many are
/// left.
struct PlanEvents {
  std::function<void(std::uint64_t known, std::uint64_t left)> begin = [](auto, auto) {};
  std::function<void()> take = [] {};
};

/// As plan(), which goes on with the file where it ends. Nothing after `stop`, and where the shard
/// is only a part. Throws Error as plan() does, and if the file is of another question.
std::optional<PlanReport> plan_keeping(const PlanQuestion& question, const PlanKeeping& keeping,
                                       const PlanEvents& events, const std::atomic<bool>& stop);

/// Merges files of shards, as merge_answers() does.
void merge_plans(const std::vector<std::string>& files, const std::string& output);

}  // namespace foretrace
