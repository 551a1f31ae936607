#pragma once

// The messages of a collective, round after round, whatever carries them: flows or packets.

#include <cstdint>
#include <optional>
#include <vector>

#include "foretrace/collective.h"

namespace foretrace {

class Carrier {
 public:
  virtual ~Carrier() = default;
  /// Times do not go back from call to call. Ids of messages that have arrived are used again.
  virtual std::uint32_t begin(std::uint32_t from, const Message& message, Nanoseconds now) = 0;
  /// When the next message leaves its sender or arrives, unless another begins; may be nothing if
  /// that is after `limit`.
  virtual std::optional<Nanoseconds> next(Nanoseconds limit) = 0;
  /// Appends the messages whose last byte has left the sender by `now`, and those that have
  /// arrived but for latency().
  virtual void take(Nanoseconds now, std::vector<std::uint32_t>& left,
                    std::vector<std::uint32_t>& arrived) = 0;
  /// From take() until the message is there.
  virtual Nanoseconds latency(std::uint32_t message) const = 0;
  virtual std::size_t active() const = 0;
};

/// A message begins when the sender has what it needs and its round before has arrived. `costs`
/// gives gamma, and decides into how many pieces a pipeline cuts the data.
Expansion run_rounds(Carrier& carrier, const Algorithm& algorithm, const Call& call,
                     LinkCosts costs);

}  // namespace foretrace
