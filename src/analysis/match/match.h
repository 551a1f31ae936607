#pragma once

// Finds which tasks of two graphs correspond, by their place in the job.
//
//     step 3                                step 3
//       GPT_0                                 GPT_0
//         Block_0                               Block_0
//           aten::addmm   gemm_128x64  <->        aten::addmm   gemm_64x32      another kernel
//                                                 aten::item    Memcpy DtoH     added
//
// Lanes are matched first, by their work. On each pair of lanes, the tasks are cut into runs of one
// step, one module, one op and so on. Runs inside two runs that correspond are aligned in turn, so
// that a change in one op stays there. Tasks left over between matched tasks are tried again
// without the name (another kernel in the same op), then without the place (the same kernel in
// another op). Order is always kept: pairs never cross.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analysis/place/call_site.h"
#include "foretrace/graph.h"
#include "foretrace/names.h"
#include "foretrace/timeline.h"

namespace foretrace {

/// Numbers texts and places, for both sides of a comparison.
class DiffKeys {
 public:
  std::uint32_t text(std::string_view text) {
    return static_cast<std::uint32_t>(texts_.intern(text));
  }
  /// Number of the place given by the module and the ops around a task.
  std::uint32_t place(std::string_view module, std::string_view ops);
  /// The parts of a place, outermost first.
  const std::vector<std::uint32_t>& parts(std::uint32_t place) const { return places_[place]; }

 private:
  Names texts_;
  std::unordered_map<std::string, std::uint32_t> place_numbers_;
  std::vector<std::vector<std::uint32_t>> places_;
};

/// The identity of each task, by TaskId.
struct TaskKeys {
  std::vector<std::uint32_t> place;
  std::vector<std::uint32_t> name;
  std::vector<std::uint32_t> family;  ///< The name without numbers and parameters.
  std::vector<char> has_place;        ///< Whether its module or an op is known.
  std::vector<std::int32_t>
      step;  ///< Step number; between steps that of the earlier one, after the last -1.
};

/// The parts of a task's place that both recordings know; a part that only one knows would make all
/// tasks differ.
struct KnownPlaces {
  bool modules = false, ops = false;
};
KnownPlaces known_places(const Graph& graph, const CallSites* sites);

/// One side of the match.
struct KeyedSide {
  const Graph& graph;
  const CallSites* sites;  ///< May be null.
  std::int32_t shift = 0;  ///< Added to the numbers of steps.
};
TaskKeys task_keys(const KeyedSide& side, const KnownPlaces& known, DiffKeys& keys);

struct LanePair {
  LaneId before = kNoLane, after = kNoLane;  ///< kNoLane if no lane corresponds.
};

struct Matching {
  std::vector<TaskId> after_of;   ///< The counterpart of each task before, or kNoTask.
  std::vector<TaskId> before_of;  ///< The counterpart of each task after, or kNoTask.
  std::vector<LanePair> lanes;
};

struct MatchSide {
  const Graph& graph;
  const TaskKeys& keys;
};

Matching match_tasks(const MatchSide& before, const MatchSide& after, const DiffKeys& keys);

}  // namespace foretrace
