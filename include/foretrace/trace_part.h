#pragma once

// A part of a recording, as if only that had been recorded: a few steps are enough for most
// questions, and cost a fraction of the memory and time of a long recording.

#include <cstdint>
#include <optional>
#include <string>

#include "foretrace/trace.h"

namespace foretrace {

/// A stretch of a recording, from `begin_ns` up to but not including `end_ns`; times as in the
/// trace.
struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// From the begin of step `first` to the end of step `last`.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// The part that is asked for; all of the trace if neither is set.
struct Part {
  std::optional<StepRange> steps{};
  std::optional<Window> window{};
  bool is_all() const { return !steps && !window; }
};

/// "3-5", or "3" for one step. Throws Error on anything else.
StepRange parse_steps(const std::string& text);
/// "100ms-250ms", times since the begin of the trace. Throws Error on anything else.
Window parse_window(const std::string& text);

/// The part of a trace inside a window, as if only that had been recorded. It keeps records that
/// overlap the window; work on devices that was launched in it, whenever it ran, and what its
/// streams ran before that; and every call that launched work that is kept. Ops and ranges that
/// reach beyond the window end with it, but markers of steps are dropped unless they are completely
/// inside. Anything that is no longer referred to, names included, is dropped. Throws Error if
/// nothing is left.
Trace cut(const Trace& trace, Window window);

/// The window of the steps, as the profiler numbered them ("ProfilerStep#7"). Empty if the trace
/// has no such markers; throws Error, with those that exist, if one of the two is missing.
std::optional<Window> window_of_steps(const Trace& trace, StepRange steps);

/// Reduces a trace to a part. Throws Error if steps are asked for and the trace marks none.
void keep_part(Trace& trace, const Part& part);

}  // namespace foretrace
