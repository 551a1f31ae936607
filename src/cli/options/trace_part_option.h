#pragma once

// --steps and --window, of commands that read or write only a part of a trace.

#include <string>
#include <vector>

#include "cli/options/command.h"
#include "foretrace/trace_part.h"

namespace foretrace {

struct TracePartOption {
  std::string steps, window;

  void add_to(CLI::App& command);
  /// Throws Error on an invalid range. Call it before anything is read.
  void check() const;
  Part part() const;
  /// Replaces each trace with the requested part of it; does nothing if no part was requested.
  void apply(std::vector<Trace>& traces) const;
};

}  // namespace foretrace
