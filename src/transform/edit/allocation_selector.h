#pragma once

// Settings that select allocations, as Selector selects tasks: an allocation must meet every given
// condition.

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

  /// The settings are use (a MemoryUse, or "any"), op, stack, module and phase (both of the task
  /// that makes the allocation), min_bytes, max_bytes and device.
  void describe(Fields& fields) override;

  /// Returns indices into Graph::allocations(), in order. Allocations of 0 bytes count as deleted
  /// and are never selected. Throws Error if an expression cannot be read.
  std::vector<std::uint32_t> select(const Graph& graph) const;
  /// Like select(), but throws Error if nothing is selected; the message repeats the conditions.
  std::vector<std::uint32_t> select_some(const Graph& graph,
                                         std::string_view setting = "where") const;

  /// Throws Error if an expression cannot be read.
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

/// Throws Error if the graph has no allocations, because no question about memory has an answer
/// then.
void need_allocations(const Graph& graph);

}  // namespace foretrace
