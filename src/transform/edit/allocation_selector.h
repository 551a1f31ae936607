#pragma once

// Which allocations a transform is for, as settings: every given condition must hold. What Selector
// is for tasks.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "foretrace/graph.h"

namespace foretrace {

class AllocationSelector final : public Described {
 public:
  AllocationSelector() = default;
  explicit AllocationSelector(std::string_view use) : use_(use) {}

  /// use (a MemoryUse, or "any"), op, stack, module and phase (of the task that makes it),
  /// min_bytes, max_bytes, device.
  void describe(Fields& fields) override;

  /// Numbers in Graph::allocations(), in order. Those of 0 bytes are none.
  std::vector<std::uint32_t> select(const Graph& graph) const;
  /// As select(), but throws Error with what was asked for when there is none.
  std::vector<std::uint32_t> select_some(const Graph& graph,
                                         std::string_view setting = "where") const;

  /// Refuses expressions that cannot be read. select() does so too.
  void check() const override;
  /// Describes the selection: `use activation, op "relu"`, or "any allocation".
  std::string to_text() const;

 private:
  std::string use_ = "any";
  std::string op_;
  std::string stack_;
  std::string module_;
  std::string phase_ = "any";
  Bytes min_bytes_{};
  Bytes max_bytes_{};
  std::optional<std::int64_t> device_;
};

/// Throws Error for a graph that has no allocations at all: what is asked of memory has no answer
/// there.
void need_allocations(const Graph& graph);

}  // namespace foretrace
