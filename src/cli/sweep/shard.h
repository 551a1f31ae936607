#pragma once

// Which part of a sweep a process does when several share it.

#include <cstdint>
#include <functional>
#include <string>

namespace foretrace {

struct Shard {
  std::uint64_t number = 1;  ///< From 1.
  std::uint64_t of = 1;
};

/// What the environment has under a name; empty: nothing.
using Environment = std::function<std::string(const char*)>;

/// "3/8", or "auto": from what Slurm, Open MPI or another MPI tells each of its processes. Throws
/// Error.
Shard read_shard(const std::string& text, const Environment& environment);

/// "results.jsonl" -> "results.shard-3-of-8.jsonl"; unchanged for the only shard.
std::string path_of_shard(const std::string& path, const Shard& shard);

}  // namespace foretrace
