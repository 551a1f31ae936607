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
struct NetworkSettings {
  std::string machine, algorithm = "auto";
  Bandwidth bandwidth{};  ///< 0: not given.
  std::optional<Nanoseconds> latency;
  std::int64_t servers = 0;
  double slow_link = 1;

  void describe(Fields& fields);
  /// Whether the settings name a machine, or any part of a uniform network.
  bool is_given() const;
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

  /// The same as packets, and what became of them. Throws Error where settings contradict each
  /// other.
  PacketRun as_packets(Operation operation, Bytes bytes, const PacketSettings& packets) const;
  /// The closed form of what as_packets() sends, on the same links.
  Nanoseconds on_links(Operation operation, Bytes bytes) const;

  std::int64_t workers() const { return workers_; }
  /// "8 GPUs of dgx-a100", "16 GPUs over 12.5 GB/s".
  const std::string& described() const { return described_; }
  /// A sentence for each fact about the machine that it does not state.
  const std::vector<std::string>& assumed() const;

 private:
  Nanoseconds priced(Operation operation, Bytes bytes) const;
  Nanoseconds on_uniform(Operation operation, Bytes bytes) const;
  MachineCollectives::OnLinks on_machine(Operation operation, Bytes bytes,
                                         const PacketSettings* packets) const;

  struct Uniform {
    std::unique_ptr<Algorithm> algorithm;
    Call call;
    LinkCost cost;
  };
  Uniform uniform_call(Operation operation, Bytes bytes) const;

  NetworkSettings settings_;
  std::uint32_t workers_;
  std::unique_ptr<MachineCollectives> machine_;  ///< None on a uniform network.
  std::string described_;
  std::map<std::pair<Operation, std::int64_t>, Nanoseconds> known_;
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

  /// What the smallest communicator assumes; nothing before one was asked for.
  std::vector<std::string> assumed() const;
  /// REQUIRES: one was asked for.
  const std::string& described() const { return known_.begin()->second.described(); }

 private:
  const NetworkSettings& settings_;
  std::int64_t apart_;
  std::map<std::pair<std::int64_t, std::int64_t>, Communicator> known_;
};

}  // namespace foretrace
