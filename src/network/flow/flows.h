#pragma once

// Traffic as a fluid: every flow has a rate, and rates change only when a flow begins or ends.
//
// Rates are max-min fair with strict priorities. Classes of priority are served in order; within
// one, all rates rise together until a link is full, its flows keep their rate, and the rest goes
// on:
//
//     flow  route     capacities a = 10, b = 4          b is full first: 2 and 3 get 2 each
//     1     a         count of b = 2, of a = 2          a has 10 - 2 left for flow 1: 8
//     2     a b
//     3     b
//
// A rate is (capacity - what is fixed) / count, and what is fixed is summed by steps, not by flows:
// equal flows get equal rates to the last bit, in whichever order they began. Flows with the same
// route and priority are one entry with a count. Only entries that share links, directly or through
// others, with one that began or ended get new rates.
//
// Times are whole nanoseconds: a flow ends at the first one by which all its bytes have passed.

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
  /// Bandwidths of the links, which routes name by index. Throws Error where one is 0.
  explicit Flows(std::vector<Bandwidth> capacities);
  Flows(Flows&&) noexcept;
  ~Flows();

  /// Times must not go back from call to call. `priority` 0 is the most urgent. A flow without
  /// links or bytes ends at `now`. Ids of ended flows are used again.
  FlowId begin(std::span<const std::uint32_t> route, Bytes bytes, std::uint32_t priority,
               Nanoseconds now);

  /// When the next flow ends unless another begins; nothing where all wait for more urgent ones.
  std::optional<Nanoseconds> next();

  /// Appends to `out`, by id, the flows that have ended by `now`. REQUIRES: `now` is at most
  /// next().
  void take_ended(Nanoseconds now, std::vector<FlowId>& out);

  std::size_t active() const;
  /// Bytes per second.
  double rate(FlowId flow);
  /// Flow of all links so far, in the order of the links.
  std::vector<double> carried(Nanoseconds now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretrace
