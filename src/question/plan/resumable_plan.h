#pragma once

// A search over layouts that can be stopped, continued and divided among processes: a file keeps
// the bounds of its layouts, one block per line.
//
//     {"schema": "foretrace.plan.bounds/2", ..., "plan": "1f0c...", "points": 1257,
//      "question": {...}}
//     {"point": 0, "bounds": [[9, 7, 1, 2, 4], [12], null, ...], "sum": "27c4..."}
//
// (The first line is broken here.) A layout that fits has the bytes of its fullest device, and its
// bound in microseconds with its parts (bubble, network, kernels); a layout that does not fit has
// the bytes alone, and null means that the schedule does not support the layout. Replays are not
// kept: they take some hundredths of the time, and depend on all bounds. The sum is of the rest of
// its line.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/question/plan.h"
#include "question/sweep/shard.h"

namespace foretrace {

struct PlanFileOptions {
  std::string path{};  ///< The file of the whole search.
  Shard shard{};
  bool fresh = false;  ///< Deletes what the file already has.
};

/// Progress, counted in blocks of layouts. `begin` gets the number of blocks in the file, and the
/// number left.
struct PlanEvents {
  std::function<void(std::uint64_t known, std::uint64_t left)> begin = [](auto, auto) {};
  std::function<void()> take = [] {};
};

/// Like plan(), but continues the file where it ends. Returns nullopt after `stop`, and for a shard
/// that is only a part. Throws Error as plan() does, and if the file belongs to another question.
std::optional<PlanReport> resumable_plan(const PlanQuestion& question,
                                         const PlanFileOptions& file_options,
                                         const PlanEvents& events, const std::atomic<bool>& stop);

/// Merges files of shards, as merge_answers() does.
void merge_plans(const std::vector<std::string>& files, const std::string& output);

}  // namespace foretrace
