#pragma once

// Runs the messages of collectives, round after round, over any message network: flows or packets.

#include <cstdint>
#include <optional>
#include <vector>

#include "network/collective.h"
#include "network/flow/flows.h"

namespace foretrace {

class MessageNetwork {
 public:
  virtual ~MessageNetwork() = default;
  /// Begins a message of one of the collectives. REQUIRES: `now` does not decrease from call to
  /// call. Ids of messages that have arrived are reused.
  virtual std::uint32_t begin(std::size_t collective, std::uint32_t from, const Message& message,
                              Nanoseconds now) = 0;
  /// Returns when the next message leaves its sender or arrives if no other begins; may return
  /// nullopt if that is after `limit`.
  virtual std::optional<Nanoseconds> next(Nanoseconds limit) = 0;
  /// Appends the messages whose last byte has left the sender by `now`, and the messages that have
  /// arrived except for latency().
  virtual void take(Nanoseconds now, std::vector<std::uint32_t>& left,
                    std::vector<std::uint32_t>& arrived) = 0;
  /// Time from take() until the message has arrived.
  virtual Nanoseconds latency(std::uint32_t message) const = 0;
  virtual std::size_t active() const = 0;
  /// The flows behind it, by the ids of their messages, if its future depends on nothing else;
  /// otherwise null.
  virtual Flows* flows() { return nullptr; }
};

/// One of several collectives that may run at the same time.
struct CollectiveRun {
  static constexpr std::size_t kNoPredecessor = ~std::size_t{0};

  const Algorithm* algorithm = nullptr;
  Call call = {};
  /// Link costs give gamma, and decide into how many pieces a pipeline cuts the data.
  LinkCosts costs = {};
  Nanoseconds at{0};
  /// Index of the collective that must be done before this one begins.
  std::size_t predecessor = kNoPredecessor;
};

struct CollectiveTimes {
  Nanoseconds begin{0}, end{0};
  Bytes moved{};
};

/// Runs all collectives. A message begins when its sender has the data it needs and the sender's
/// previous round has arrived. `times` receives when each collective began and ended. The expansion
/// covers all collectives. REQUIRES: `predecessor` forms no cycle.
Expansion run_rounds(MessageNetwork& network, std::span<const CollectiveRun> collectives,
                     std::vector<CollectiveTimes>& times);

}  // namespace foretrace
