#pragma once

// The allocator options of commands that ask whether a job fits.

#include <string>

#include "cli/options/command.h"
#include "foretrace/allocator.h"

namespace foretrace {

/// --allocator, --conf and --memory-limit; if they disagree, the last of these applies.
struct AllocatorOption {
  std::string settings, conf, limit;

  void add_to(CLI::App& command);
  bool given() const { return !settings.empty() || !conf.empty() || !limit.empty(); }
  /// Overwrites the given settings. Throws Error naming the option.
  void set(AllocatorSettings& allocator) const;
};

}  // namespace foretrace
