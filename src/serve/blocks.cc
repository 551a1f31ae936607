#include "serve/blocks.h"

#include <algorithm>

namespace foretrace::serve {

void KvBlocks::take(std::int64_t blocks) {
  free_ -= blocks;
  while (blocks > 0) {
    Freed& oldest = queue_.front();
    const std::int64_t taken = std::min(blocks, oldest.blocks);
    oldest.blocks -= taken, blocks -= taken;
    if (oldest.blocks == 0) queue_.pop_front();
  }
}

void KvBlocks::give_back(std::int64_t blocks, std::int64_t owner) {
  if (blocks == 0) return;
  free_ += blocks;
  if (owner < 0 && !queue_.empty() && queue_.back().owner < 0)
    queue_.back().blocks += blocks;
  else
    queue_.push_back({owner, blocks});
}

std::int64_t KvBlocks::kept_by(std::int64_t owner) const {
  const auto freed = std::ranges::find(queue_, owner, &Freed::owner);
  return freed == queue_.end() ? 0 : freed->blocks;
}

void KvBlocks::claim(std::int64_t owner) {
  const auto freed = std::ranges::find(queue_, owner, &Freed::owner);
  if (freed == queue_.end()) return;
  const std::int64_t blocks = freed->blocks;
  queue_.erase(freed);
  queue_.push_front({-1, blocks});
}

}  // namespace foretrace::serve
