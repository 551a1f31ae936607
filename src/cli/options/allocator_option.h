#pragma once

// What commands that ask whether a job fits want to know about the allocator.

#include <string>

#include "cli/options/command.h"
#include "foretrace/allocator.h"

namespace foretrace {

/// --allocator, --conf and --memory-limit; where they disagree, the last of these holds.
struct AllocatorOption {
  std::string settings, conf, limit;

  void add_to(CLI::App& command);
  bool given() const { return !settings.empty() || !conf.empty() || !limit.empty(); }
  /// Overwrites what was given. Throws Error naming the option.
  void set(AllocatorSettings& allocator) const;
};

}  // namespace foretrace
