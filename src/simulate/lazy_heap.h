#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "foretrace/graph.h"

namespace foretrace {

/// A binary heap that removes only its first entry. A predicate of the owner decides which entries
/// still count; the others are dropped when they come first, or when there may be many.
template <class Key, class Before>
class LazyHeap {
 public:
  struct Entry {
    Key key;
    TaskId task;  ///< Breaks ties between equal keys.
    std::uint32_t slot;
    std::uint32_t version;
  };

  template <class Counts>
  void push(const Entry& entry, const Counts& counts) {
    if (entries_.size() >= tidy_at_) {
      std::erase_if(entries_, [&](const Entry& each) { return !counts(each); });
      std::make_heap(entries_.begin(), entries_.end(), IsAfter{});
      tidy_at_ = 2 * entries_.size() + kSlack;
    }
    entries_.push_back(entry);
    std::push_heap(entries_.begin(), entries_.end(), IsAfter{});
  }

  /// Removes the first entry.
  void pop() {
    std::pop_heap(entries_.begin(), entries_.end(), IsAfter{});
    entries_.pop_back();
  }

  /// The first entry that counts, or nullptr.
  template <class Counts>
  const Entry* first(const Counts& counts) {
    while (!entries_.empty() && !counts(entries_.front())) pop();
    return entries_.empty() ? nullptr : &entries_.front();
  }

 private:
  static constexpr std::size_t kSlack = 64;

  struct IsAfter {
    bool operator()(const Entry& a, const Entry& b) const {
      if (Before{}(b.key, a.key)) return true;
      return !Before{}(a.key, b.key) && b.task < a.task;
    }
  };

  std::vector<Entry> entries_;
  std::size_t tidy_at_ = kSlack;
};

}  // namespace foretrace
