#pragma once

// Traffic as a fluid: every flow has a rate, and rates change only when a flow begins or ends.
//
// Rates are max-min fair: all rise together until a link is full; the flows on that link then keep
// their rate, and the other rates continue to rise:
//
//     flow  route     capacities a = 10, b = 4          b is full first: 2 and 3 get 2 each
//     1     a         count of b = 2, of a = 2          a has 10 - 2 left for flow 1: 8
//     2     a b
//     3     b
//
// A rate is (capacity - fixed) / count, and sums of rates are exact: equal flows get equal rates to
// the last bit, in whichever order they began. Flows with the same route are one entry with a
// count. Only entries whose limit changes when a flow begins or ends get new rates (fair_rates.h).
//
// Times are whole nanoseconds: a flow ends at the first nanosecond by which all its bytes have been
// transferred.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

using FlowId = std::uint32_t;

class Flows {
 public:
  /// Takes the bandwidths of the links, which routes refer to by index. Throws Error if a bandwidth
  /// is 0.
  explicit Flows(std::vector<Bandwidth> capacities);
  Flows(Flows&&) noexcept;
  ~Flows();

  /// Starts a flow. REQUIRES: `now` does not decrease from call to call. A flow without links or
  /// bytes ends at `now`. Ids of ended flows are reused.
  FlowId begin(std::span<const std::uint32_t> route, Bytes bytes, Nanoseconds now);

  /// Returns when the next flow ends if no other begins; nullopt if there are none.
  std::optional<Nanoseconds> next();

  /// Appends to `out`, ordered by id, the flows that have ended by `now`. REQUIRES: `now` is at
  /// most next().
  void take_ended(Nanoseconds now, std::vector<FlowId>& out);

  /// From now on, notes whether any time could differ if flows had other bytes, from `least` to
  /// `most`. REQUIRES: all flows have bytes in that range.
  void watch(Bytes least, Bytes most);
  /// Whether a flow has ended since watch() at a time that depends on its bytes.
  bool is_sensitive() const;
  /// Appends all that decides when a flow ends, relative to now, as if it had the least bytes.
  /// REQUIRES: watch() has been called.
  void describe(FlowId flow, std::vector<std::int64_t>& out) const;
  /// Moves all times, past rounds that would repeat.
  void shift(Nanoseconds by);

  std::size_t active() const;
  std::uint64_t computed_rates() const;  ///< A measure of the work so far.
  /// Bytes per second.
  double rate(FlowId flow);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
