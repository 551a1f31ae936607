#pragma once

// A part of a recording, as if only that had been recorded: a few steps are enough for most
// questions, and cost a fraction of the memory and time of a long recording.

#include <cstdint>
#include <optional>
#include <string>

#include "foretrace/trace.h"

namespace foretrace {

/// A stretch of a recording, from `begin_ns` to before `end_ns`; times as in the trace.
struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// From the begin of step `first` to the end of step `last`.
struct StepRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Which part is asked for. Neither: all of it.
struct Part {
  std::optional<StepRange> steps{};
  std::optional<Window> window{};
  bool is_all() const { return !steps && !window; }
};

/// "3-5", or "3" for one step. Throws Error on anything else.
StepRange parse_steps(const std::string& text);
/// "100ms-250ms", times since the begin of the trace. Throws Error on anything else.
Window parse_window(const std::string& text);

/// The part of a trace that a window shows, as if only that had been recorded. Stays: what overlaps
/// the window; work on devices that was launched in it, whenever it ran; every call that launched
/// what stays. Ops and ranges that reach beyond the window end with it, but markers of steps go
/// unless they are in it as a whole. What nothing refers to any more, names included, is gone.
/// Throws Error if nothing stays.
Trace cut(const Trace& trace, Window window);

/// Where the steps lie, as the profiler numbered them ("ProfilerStep#7"). Nothing if the trace has
/// no such markers; throws Error, with those there are, if one of the two is missing.
std::optional<Window> window_of_steps(const Trace& trace, StepRange steps);

/// Throws Error if the trace marks no steps and steps are asked for.
void keep_part(Trace& trace, const Part& part);

}  // namespace foretrace
