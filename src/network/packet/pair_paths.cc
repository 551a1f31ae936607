#include "network/packet/pair_paths.h"

namespace foretrace {

std::uint32_t PairPaths::between(std::uint32_t from, std::uint32_t to) {
  const auto [known, is_new] = numbers_.try_emplace(std::uint64_t{from} << 32U | to,
                                                    static_cast<std::uint32_t>(pairs_.size()));
  if (!is_new) return known->second;
  paths_.find(from, to, all_, found_);
  pairs_.push_back(
      {static_cast<std::uint32_t>(begins_.size()), static_cast<std::uint32_t>(found_.size())});
  for (const Path& path : found_) {
    begins_.push_back(static_cast<std::uint32_t>(hops_.size()));
    hops_.insert(hops_.end(), path.begin(), path.end());
    hops_.push_back(kEnd);
  }
  return known->second;
}

std::span<const std::uint32_t> PairPaths::links(std::uint32_t pair, std::uint32_t path) const {
  const std::uint32_t first = begin(pair, path);
  std::uint32_t end = first;
  while (!ends(end)) ++end;
  return std::span(hops_).subspan(first, end - first);
}

}  // namespace foretrace
