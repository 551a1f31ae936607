#include "foretrace/error.h"
#include "foretrace/graph.h"

namespace foretrace {

AccessLists::AccessLists(const Graph& graph)
    : begins_(graph.allocations().size() + 1), accesses_(graph.accesses().size()) {
  for (const Access& access : graph.accesses()) {
    CHECK(access.allocation + 1 < begins_.size());
    ++begins_[access.allocation + 1];
  }
  for (std::size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  for (const Access& access : graph.accesses()) accesses_[next[access.allocation]++] = access;
}

std::span<const Access> AccessLists::of(std::size_t allocation) const {
  return {accesses_.begin() + static_cast<std::ptrdiff_t>(begins_[allocation]),
          accesses_.begin() + static_cast<std::ptrdiff_t>(begins_[allocation + 1])};
}

}  // namespace foretrace
