#include "transform/edit/block_size.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <set>

#include "foretrace/error.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

constexpr std::int64_t kRounding = 512;  ///< Bytes; the unit of PyTorch's caching allocator.

Bytes scaled_bytes(Bytes amount, double factor, std::string_view setting) {
  const double wanted = std::round(static_cast<double>(amount.count) * factor);
  if (!(wanted <= static_cast<double>(kLargestBlock.count))) {
    throw Error(fmt::format("{}: would make a block of {} larger than {}, which no device has",
                            setting, to_text(amount), to_text(kLargestBlock)));
  }
  return Bytes{std::max<std::int64_t>(static_cast<std::int64_t>(wanted), 0)};
}

}  // namespace

Allocation resized(const Allocation& block, double factor, std::string_view setting) {
  Allocation wanted = block;
  if (factor == 1) return wanted;
  wanted.requested = scaled_bytes(block.requested, factor, setting);
  const bool rounded = block.bytes.count % kRounding == 0;
  // Only the requested bytes grow, not what the allocator added to them.
  const Bytes base =
      block.requested > Bytes{} && block.requested <= block.bytes ? block.requested : block.bytes;
  wanted.bytes = scaled_bytes(base, factor, setting);
  if (rounded) wanted.bytes.count = (wanted.bytes.count + kRounding - 1) / kRounding * kRounding;
  return wanted;
}

void replace_block(Graph& graph, std::uint32_t number, const Allocation& block) {
  Allocation& now = graph.allocations()[number];
  const auto device = static_cast<std::size_t>(std::max(now.device, 0));
  const bool counted_at_first =
      now.made_by == kNoTask && now.device >= 0 && device < graph.initial_memory().size();
  if (counted_at_first) {
    Bytes& level = graph.initial_memory()[device];
    level = std::max(level + block.bytes - now.bytes, Bytes{});
  }
  now = block;
}

void add_permanent_block(Graph& graph, Bytes bytes, MemoryUse use) {
  if (bytes == Bytes{}) return;
  std::set<std::int32_t> devices;
  for (const Allocation& block : graph.allocations())
    if (block.device >= 0) devices.insert(block.device);
  for (const std::int32_t device : devices) {
    Allocation block{.device = device, .use = use};
    graph.allocations().push_back(block);
    block.bytes = bytes;
    replace_block(graph, static_cast<std::uint32_t>(graph.allocations().size() - 1), block);
  }
}

Bytes peak_memory(const Graph& graph, const Timeline& timeline) {
  Bytes peak{};
  for (const MemoryCurve& curve : memory_curves(graph, timeline)) peak = std::max(peak, curve.peak);
  return peak;
}

Bytes peak_memory(const Graph& graph) {
  if (graph.allocations().empty()) return {};  // Saves the replay.
  return peak_memory(graph, simulate(graph, {.memory = false}));
}

}  // namespace foretrace
