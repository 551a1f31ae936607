#pragma once

// The network between workers that a what-if adds: the settings that several transforms share, and
// the cost of collectives on it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/answer/applicability.h"
#include "foretrace/fields.h"
#include "network/collective.h"
#include "network/nccl/machine_collectives.h"

namespace foretrace {

/// The settings of a network: a machine, or else the latency and bandwidth of a uniform network.
struct NetworkSettings : Described {
  std::string machine, algorithm = "auto";
  Bandwidth bandwidth{};  ///< 0: not given.
  std::optional<Nanoseconds> latency;
  std::int64_t servers = 0;
  double slow_link = 1;

  void describe(Fields& fields) override;
  /// Whether the settings name a machine, or any part of a uniform network.
  bool is_given() const;
  /// The settings as JSON.
  std::string text() const;
};

/// Prices collectives among workers that each take part with one device. Not thread-safe.
class Communicator {
 public:
  /// Each worker has `stride` devices, of which the first takes part; the others do the same among
  /// themselves, over the same NICs. Throws Error if the settings name no network, or one with too
  /// few devices. Members that price or send also throw it if the algorithm cannot serve the call.
  Communicator(const NetworkSettings& settings, std::int64_t workers, std::int64_t stride = 1);

  /// Returns the time of a collective; 0 for a single worker. `bytes` is the whole buffer, as
  /// nccl-tests counts it.
  Nanoseconds time(Operation operation, Bytes bytes);

  /// The messages of a collective, and the paths that packets take between its endpoints.
  PreparedCollective prepare(Operation operation, Bytes bytes) const;
  PacketPaths packet_paths(const Plan& plan) const;
  /// Returns the closed-form time of prepare() on the same links.
  Nanoseconds on_links(Operation operation, Bytes bytes) const;

  /// The widest of all times that were asked for.
  TransferDoubt doubt() const { return doubt_; }

  std::int64_t workers() const { return workers_; }
  /// "8 GPUs of dgx-a100", "16 GPUs over 12.5 GB/s".
  const std::string& described() const { return described_; }
  /// A sentence for each fact that the machine's description does not state and that is assumed.
  const std::vector<std::string>& assumed() const;

 private:
  Nanoseconds priced(Operation operation, Bytes bytes);
  MachineCollectives::Run run(Operation operation, Bytes bytes) const;
  LinkCost uniform_cost() const;

  NetworkSettings settings_;
  std::uint32_t workers_;
  std::unique_ptr<MachineCollectives> machine_;  ///< Null on a uniform network.
  std::string described_;
  std::map<std::pair<Operation, std::int64_t>, Nanoseconds> known_;
  TransferDoubt doubt_;
};

/// A collective to send as packets, next to others on the same network.
struct PacketRequest {
  Operation operation = Operation::all_reduce;
  Bytes bytes{};
  std::int64_t ranks = 0;
  Nanoseconds at{0};
  std::size_t predecessor = CollectiveRun::kNoPredecessor;
  std::uint8_t queue = 0;
  double loss = 0, pull_loss = 0, unimportant = 0;
};

/// The communicators of one network, created when first asked for. Not thread-safe.
class Communicators {
 public:
  /// Each worker has `apart` devices, like Communicator's `stride`. REQUIRES: `settings` outlives
  /// this.
  explicit Communicators(const NetworkSettings& settings, std::int64_t apart = 1)
      : settings_(settings), apart_(apart) {}

  /// Returns the communicator of `ranks` members that are `stride` workers apart. Throws Error as
  /// Communicator does.
  Communicator& among(std::int64_t ranks, std::int64_t stride = 1);

  /// Sends all of `requests` as packets on one network, where they compete; member i of each is at
  /// device i. Sets `times` of each as run_rounds() does. Throws Error if settings contradict each
  /// other, or if servers would serve collectives with different numbers of ranks.
  PacketRun send_packets(const std::vector<PacketRequest>& requests, const PacketSettings& settings,
                         std::vector<CollectiveTimes>& times);

  TransferDoubt doubt() const;
  /// The assumptions of the smallest communicator; empty before one was asked for.
  std::vector<std::string> assumed() const;
  /// REQUIRES: one was asked for.
  const std::string& described() const { return known_.begin()->second.described(); }

 private:
  const NetworkSettings& settings_;
  std::int64_t apart_;
  std::map<std::pair<std::int64_t, std::int64_t>, Communicator> known_;
};

}  // namespace foretrace
