#pragma once

// --steps and --window of commands that write a part of a trace.

#include <string>
#include <vector>

#include "cli/options/command.h"
#include "foretrace/trace_part.h"

namespace foretrace {

struct PartOption {
  std::string steps, window;

  void add_to(CLI::App& command);
  /// Throws Error on an invalid range, before anything was read.
  void check() const;
  Part part() const;
  /// Replaces each trace by its part, if one was asked for.
  void apply(std::vector<Trace>& traces) const;
};

}  // namespace foretrace
