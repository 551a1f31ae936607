#pragma once

// The part of a sweep that one of several processes answers.

#include <cstdint>
#include <functional>
#include <string>

namespace foretrace {

struct Shard {
  std::uint64_t number = 1;  ///< From 1.
  std::uint64_t count = 1;
};

/// The value of an environment variable; empty if not set.
using Environment = std::function<std::string(const char*)>;
/// The Environment of this process.
std::string environment_value(const char* name);

/// Reads "3/8", or for "auto" the variables that Slurm, Open MPI or another MPI sets for each of
/// its processes. Throws Error.
Shard read_shard(const std::string& text, const Environment& environment);

/// "results.jsonl" -> "results.shard-3-of-8.jsonl"; unchanged for the only shard.
std::string path_of_shard(const std::string& path, const Shard& shard);

}  // namespace foretrace
