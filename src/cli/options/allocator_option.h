#pragma once

// The allocator options of commands that predict whether a job fits into memory.

#include <string>

#include "cli/options/command.h"
#include "foretrace/allocator.h"

namespace foretrace {

/// --allocator, --conf and --memory-limit. If they disagree, --memory-limit overrides --allocator,
/// which overrides --conf.
struct AllocatorOption {
  std::string settings, conf, limit;

  void add_to(CLI::App& command);
  bool given() const { return !settings.empty() || !conf.empty() || !limit.empty(); }
  /// Overwrites the settings that the options give. Throws Error naming the option.
  void set(AllocatorSettings& allocator) const;
};

}  // namespace foretrace
