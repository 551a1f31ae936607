#pragma once

// The blocks of an engine's cache of keys and values, by number.
//
// Freed blocks queue up, the first to be freed first to be used again; a request frees its last
// block first. A block keeps its content until it is used again, so a preempted request that comes
// back finds those of its first blocks that nobody has taken:
//
//     r2 frees 5 blocks     queue: 5 4 3 2 1
//     r1 takes one                   4 3 2 1    r2 would find its first four

#include <cstdint>
#include <deque>

namespace foretrace::serve {

class KvBlocks {
 public:
  explicit KvBlocks(std::int64_t count) : count_(count), free_(count) {
    queue_.push_back({-1, count});
  }

  std::int64_t count() const { return count_; }
  std::int64_t unused() const { return free_; }
  std::int64_t used() const { return count_ - free_; }

  /// REQUIRES: `blocks` <= unused().
  void take(std::int64_t blocks);
  /// `owner` may come back; -1: nobody will.
  void give_back(std::int64_t blocks, std::int64_t owner = -1);
  /// The number of blocks, from the first on, that `owner` would find.
  std::int64_t kept_by(std::int64_t owner) const;
  /// The owner's blocks become anonymous, because it has taken them again. They move to the front
  /// of the queue, so that the next take() takes them.
  void claim(std::int64_t owner);

 private:
  struct Freed {
    std::int64_t owner, blocks;
  };
  std::int64_t count_, free_;
  std::deque<Freed> queue_;
};

/// Tokens of a prompt of `tokens` that a cache of full blocks can hold: at least one is computed.
constexpr std::int64_t greatest_hit(std::int64_t tokens, std::int64_t block) {
  return (tokens - 1) / block * block;
}

constexpr std::int64_t blocks_for(std::int64_t tokens, std::int64_t block) {
  return (tokens + block - 1) / block;
}

}  // namespace foretrace::serve
