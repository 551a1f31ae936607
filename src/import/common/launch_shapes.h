#pragma once

// Numbers the shapes that kernels were launched with.

#include <array>
#include <cstdint>
#include <unordered_map>

#include "foretrace/trace.h"

namespace foretrace {

/// The closest number of threads that a record has room for.
std::uint16_t threads_of_block(std::int64_t threads);

class LaunchShapes {
 public:
  using Sizes = std::array<std::int64_t, 3>;  ///< x, y and z; all 0 if not recorded.

  /// REQUIRES: the trace outlives this, and nobody else adds launches to it.
  explicit LaunchShapes(Trace& trace) : trace_(trace) {}

  /// Sets the totals of a kernel and the number of its shape, unless the sizes are all 0. Sizes
  /// beyond 32 bits are taken as the closest number. Expected constant time.
  void set(DeviceRecord& kernel, const LaunchShape& shape);
  void set(DeviceRecord& kernel, const Sizes& grid, const Sizes& block, LaunchShape rest = {});

 private:
  struct Hash {
    std::size_t operator()(const LaunchShape& shape) const;
  };
  Trace& trace_;
  std::unordered_map<LaunchShape, std::uint32_t, Hash> known_;
};

/// The closest number of 32 bits without a sign.
std::uint32_t to_uint32(std::int64_t value);

}  // namespace foretrace
