#pragma once

// The network between workers that a what-if adds: settings that several transforms share, and what
// collectives cost on it.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/collective.h"
#include "foretrace/fields.h"
#include "network/nccl/machine_collectives.h"

namespace foretrace {

/// The settings. A machine, or else the latency and bandwidth of a uniform network.
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

/// Prices of collectives among so many workers, one on each device. Not for several threads at
/// once.
class Communicator {
 public:
  /// Throws Error where the settings name no network, one without so many devices, or an algorithm
  /// that cannot serve them.
  /// `stride`: each worker has so many devices, of which the first takes part; the others do the
  /// same among themselves, over the same NICs.
  Communicator(const NetworkSettings& settings, std::int64_t workers, std::int64_t stride = 1);

  /// Bytes as nccl-tests counts them: the whole buffer. 0 for a single worker.
  Nanoseconds time(Operation operation, Bytes bytes);

  /// How messages are sent, and on which links: those of an endpoint each at least.
  SentCollective sent(Operation operation, Bytes bytes) const;
  PacketPaths packet_paths(const Plan& plan) const;
  /// The closed form of sent(), on the same links.
  Nanoseconds on_links(Operation operation, Bytes bytes) const;

  std::int64_t workers() const { return workers_; }
  /// "8 GPUs of dgx-a100", "16 GPUs over 12.5 GB/s".
  const std::string& described() const { return described_; }
  /// A sentence for each fact about the machine that it does not state.
  const std::vector<std::string>& assumed() const;

 private:
  Nanoseconds priced(Operation operation, Bytes bytes) const;
  MachineCollectives::Run run(Operation operation, Bytes bytes) const;
  LinkCost uniform_cost() const;

  NetworkSettings settings_;
  std::uint32_t workers_;
  std::unique_ptr<MachineCollectives> machine_;  ///< None on a uniform network.
  std::string described_;
  std::map<std::pair<Operation, std::int64_t>, Nanoseconds> known_;
};

/// A collective among other ones on the same network.
struct AskedPackets {
  Operation operation = Operation::all_reduce;
  Bytes bytes{};
  std::int64_t ranks = 0;
  Nanoseconds at{0};
  std::size_t behind = RoundsOf::kNothing;
  std::uint8_t queue = 0;
  double loss = 0, pull_loss = 0, unimportant = 0;
};

/// The communicators of one network, made when they are first asked for. Not for several threads at
/// once.
class Communicators {
 public:
  /// `apart`: devices that each worker has, as Communicator's `stride`. REQUIRES: the settings
  /// outlive this.
  explicit Communicators(const NetworkSettings& settings, std::int64_t apart = 1)
      : settings_(settings), apart_(apart) {}

  /// `stride`: members are so many workers apart. Throws Error as Communicator does.
  Communicator& among(std::int64_t ranks, std::int64_t stride = 1);

  /// All of them as packets, which meet: member i of each is at device i. Throws Error where
  /// settings contradict each other, or where servers serve several numbers of ranks.
  PacketRun as_packets(const std::vector<AskedPackets>& asked, const PacketSettings& settings,
                       std::vector<RoundsTimes>& times);

  /// The assumptions of the smallest communicator; none before one was asked for.
  std::vector<std::string> assumed() const;
  /// REQUIRES: one was asked for.
  const std::string& described() const { return known_.begin()->second.described(); }

 private:
  const NetworkSettings& settings_;
  std::int64_t apart_;
  std::map<std::pair<std::int64_t, std::int64_t>, Communicator> known_;
};

}  // namespace foretrace
