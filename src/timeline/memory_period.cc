// Training repeats itself: from the first steady step on, the sizes of allocated blocks recur in
// the same order. A period is a distance p at which the sequence of sizes equals itself,
//
//     s[i] == s[i + p]        for i in [first, first + run)
//
// and within which all that is allocated is also freed: the level in use is the same a period
// later. Equal layers repeat as well, but a stack of them allocates in the forward pass and frees
// in the backward pass, so the level distinguishes them from steps. The longest of all such
// stretches is chosen, and among equally long ones the one with the shortest period.
//
// Candidates for p are the distances at which windows of sizes recur, starting with those that
// explain most of the sequence; each is checked in one pass. Steps whose sizes differ (inputs of
// another length) have no period.

#include <algorithm>
#include <map>
#include <unordered_map>

#include "foretrace/timeline.h"

namespace foretrace {
namespace {

/// In sizes; shorter windows recur by chance.
constexpr std::size_t kWindow = 8;
constexpr std::size_t kMaxCandidates = 32;

/// Blocks allocated on one device, in order.
struct Sizes {
  std::vector<std::int64_t> made;
  std::vector<std::int64_t> level;  ///< Bytes in use before each block.
};

Sizes sizes_of(const Graph& graph, const std::vector<MemoryEvent>& events, std::int32_t device) {
  Sizes sizes;
  std::int64_t level = 0;
  for (const MemoryEvent& event : events) {
    const Allocation& block = graph.allocations()[event.allocation];
    if (block.device != device) continue;
    // The allocator may round the same request up to different sizes.
    const std::int64_t size = (block.requested > Bytes{} ? block.requested : block.bytes).count;
    if (!event.frees) {
      sizes.made.push_back(size);
      sizes.level.push_back(level);
    }
    level += event.frees ? -size : size;
  }
  return sizes;
}

/// Returns the distances between equal windows that cover most of the sequence, in ascending order.
std::vector<std::size_t> candidates(const std::vector<std::int64_t>& made) {
  std::unordered_map<std::uint64_t, std::size_t> last;
  std::map<std::size_t, std::size_t> votes;
  for (std::size_t i = 0; i + kWindow <= made.size(); ++i) {
    std::uint64_t hash = 0;
    for (std::size_t k = 0; k < kWindow; ++k) {
      hash = (hash ^ static_cast<std::uint64_t>(made[i + k])) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 29U;
    }
    const auto [found, is_new] = last.try_emplace(hash, i);
    if (is_new) continue;
    ++votes[i - found->second];
    found->second = i;
  }
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  for (const auto& [distance, count] : votes) ranked.emplace_back(count * distance, distance);
  std::sort(ranked.rbegin(), ranked.rend());
  if (ranked.size() > kMaxCandidates) ranked.resize(kMaxCandidates);
  std::vector<std::size_t> distances;
  for (const auto& [weight, distance] : ranked) distances.push_back(distance);
  std::sort(distances.begin(), distances.end());
  return distances;
}

/// Finds the longest stretch with period `p`; `length` is 0 if the period does not repeat. The
/// level may differ for up to kWindow blocks, because threads free at about the same time.
MemoryPeriod longest_run(const Sizes& sizes, std::size_t p) {
  MemoryPeriod best;
  std::size_t run = 0, off = 0;
  for (std::size_t i = 0; i + p < sizes.made.size(); ++i) {
    off = sizes.level[i] == sizes.level[i + p] ? 0 : off + 1;
    const bool alike = sizes.made[i] == sizes.made[i + p] && off <= kWindow;
    run = alike ? run + 1 : 0;
    if (run < p || run / p + 1 <= best.repetitions) continue;
    best = {i + 1 - run, p, run / p + 1};
  }
  return best;
}

}  // namespace

MemoryPeriod memory_period(const Graph& graph, const std::vector<MemoryEvent>& events,
                           std::int32_t device) {
  const Sizes sizes = sizes_of(graph, events, device);
  MemoryPeriod best;
  for (const std::size_t p : candidates(sizes.made)) {
    const MemoryPeriod found = longest_run(sizes, p);
    // A longer period must cover more than a whole shorter period in addition.
    const std::size_t covered = best.length * best.repetitions;
    if (found.length * found.repetitions > covered + best.length) best = found;
  }
  const bool is_most = best.length * best.repetitions * 2 >= sizes.made.size();
  return is_most ? best : MemoryPeriod{};
}

}  // namespace foretrace
