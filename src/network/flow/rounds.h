#pragma once

// The messages of collectives, round after round, whatever carries them: flows or packets.

#include <cstdint>
#include <optional>
#include <vector>

#include "foretrace/collective.h"

namespace foretrace {

class Carrier {
 public:
  virtual ~Carrier() = default;
  /// A message of one of the collectives. Times do not go back from call to call. Ids of messages
  /// that have arrived are used again.
  virtual std::uint32_t begin(std::size_t collective, std::uint32_t from, const Message& message,
                              Nanoseconds now) = 0;
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

/// One of several collectives that may be under way at the same time.
struct RoundsOf {
  static constexpr std::size_t kNothing = ~std::size_t{0};

  const Algorithm* algorithm = nullptr;
  Call call = {};
  /// They give gamma, and decide into how many pieces a pipeline cuts the data.
  LinkCosts costs = {};
  Nanoseconds at{0};
  std::size_t behind = kNothing;  ///< Begins no earlier than that one is done.
};

struct RoundsTimes {
  Nanoseconds begin{0}, end{0};
  Bytes moved{};
};

/// A message begins when the sender has what it needs and its round before has arrived. `times`:
/// when each began and was done. The expansion is that of all of them. REQUIRES: `behind` forms no
/// cycle.
Expansion run_rounds(Carrier& carrier, std::span<const RoundsOf> collectives,
                     std::vector<RoundsTimes>& times);

}  // namespace foretrace
