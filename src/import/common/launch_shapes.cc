#include "import/common/launch_shapes.h"

#include <algorithm>
#include <limits>

#include "import/common/cuda_words.h"
#include "trace/launch_shape.h"

namespace foretrace {

std::uint16_t threads_of_block(std::int64_t threads) {
  constexpr std::int64_t kMax = std::numeric_limits<std::uint16_t>::max();
  return static_cast<std::uint16_t>(std::clamp<std::int64_t>(threads, 0, kMax));
}

std::uint32_t to_uint32(std::int64_t value) {
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, kMax));
}

std::size_t LaunchShapes::Hash::operator()(const LaunchShape& shape) const {
  std::uint64_t hash = 0;
  each_launch_field([&](const char*, auto member) {
    hash = (hash ^ shape.*member) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32U;
  });
  return static_cast<std::size_t>(hash);
}

void LaunchShapes::set(DeviceRecord& kernel, const LaunchShape& shape) {
  kernel.grid = volume(shape.grid_x, shape.grid_y, shape.grid_z);
  kernel.block = threads_of_block(volume(shape.block_x, shape.block_y, shape.block_z));
  if (kernel.grid == 0 && kernel.block == 0) return;
  const auto [known, is_new] =
      known_.try_emplace(shape, static_cast<std::uint32_t>(trace_.launches.size()));
  if (is_new) trace_.launches.push_back(shape);
  kernel.launch = known->second;
}

void LaunchShapes::set(DeviceRecord& kernel, const Sizes& grid, const Sizes& block,
                       LaunchShape rest) {
  rest.grid_x = to_uint32(grid[0]), rest.grid_y = to_uint32(grid[1]);
  rest.grid_z = to_uint32(grid[2]);
  rest.block_x = to_uint32(block[0]), rest.block_y = to_uint32(block[1]);
  rest.block_z = to_uint32(block[2]);
  set(kernel, rest);
}

}  // namespace foretrace
