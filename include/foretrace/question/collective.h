#pragma once

// `foretrace collective`: what a collective costs on a machine or on a uniform network.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/collective.h"
#include "foretrace/units.h"

namespace foretrace {

struct CollectiveQuestion {
  std::string name = "auto";  ///< An operation, an algorithm, or "auto" for an all-reduce.
  std::string operation;      ///< If `name` is an algorithm.
  std::string algorithm = "auto";
  std::string machine;  ///< For find_cluster(); empty: a uniform network.
  std::int64_t ranks = 0;
  std::int64_t ranks_per_node = 0;  ///< 0: all devices of each host.
  std::optional<Nanoseconds> latency;
  std::optional<Bandwidth> bandwidth;
  std::vector<Bytes> sizes;
  std::string fidelity = "closed";
  std::string packets;      ///< Settings of the packet network: "transport=dctcp,spray=true".
  std::int64_t groups = 1;  ///< Communicators that run it at the same time, interleaved.
  std::int64_t servers = 0;
  std::vector<std::uint32_t> levels;
  std::int64_t seed = 0;  ///< Chooses among routes of equal cost.

  std::string against;                        ///< nccl-tests output or CSV to compare with.
  std::vector<std::string> only;              ///< "column=text": selects rows of CSV files.
  std::string calibrate;                      ///< Measured times, or a saved calibration.
  std::vector<std::int64_t> calibrate_nodes;  ///< Rows with these numbers of nodes; empty: all.
  std::string save_calibration;               ///< Path to save the calibration at; empty: none.
};

/// "8..8GB/x2", "1MiB..1GiB/x4", "100MB": sizes from the first to the last, each a multiple of the
/// one before. Throws Error.
std::vector<Bytes> read_sizes(const std::string& text);

/// Throws Error if the question cannot be answered.
CollectiveReport price_collective(const CollectiveQuestion& question);

}  // namespace foretrace
