#pragma once

// Times of collectives from times that were measured on the same machine with other sizes or
// numbers of nodes. Two parts, for each operation:
//
//     model     t = l + w + m sqrt(l w)
//               l = base + a_within h_within + a_across h_across       hops and their latencies
//               w = max(bytes_within / B_within, bytes_across / B_across)
//     residual  ln (measured / model) by size, for each measured shape (nodes, ranks per node)
//
// The six numbers of the model are fitted by least squares of logarithms (Huber's loss beyond 0.5,
// Nelder and Mead's search), drawn weakly to what the machine's figures say, so that numbers on
// which no row depends stay there. The residual is interpolated over log2 of size and nodes between
// shapes of the same kind (within one node, or across nodes), and kept flat beyond.
//
// What NCCL does at a size, such as a protocol that is slow on this network, is in the residual: it
// is the same at other node counts as far as the shapes nearest to them have it.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "network/nccl/measured.h"
#include "network/nccl/system_of.h"

namespace foretrace {

/// Where ranks are, without what is between them.
struct Shape {
  std::uint32_t nodes = 1, per_node = 1;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

/// Microseconds and GB/s.
struct CollectiveModel {
  double base = 8, within_hop = .6, across_hop = 6;
  double within = 100, across = 25;  ///< Of one rank; of one rank's NIC.
  double mixed = .3;                 ///< m: what a pipeline loses between latency and bandwidth.

  double us(Operation operation, Shape shape, Bytes bytes) const;
};

struct Calibrated {
  double us = 0;
  /// With the residuals of the measured shapes on either side of it; outside of them with those of
  /// all and how far the model alone was off.
  double lower_us = 0, upper_us = 0;
  bool is_covered = false;  ///< Shape and size lie between measured ones.
};

class Calibration {
 public:
  /// Fits all operations that occur. `places` gives the start of the search.
  Calibration(const std::vector<MeasuredCollective>& rows, const RankPlaces& places);
  explicit Calibration(const nlohmann::json& json);  ///< Throws Error.
  nlohmann::json json() const;

  bool knows(Operation operation) const { return fits_.contains(operation); }
  /// REQUIRES: knows(operation).
  Calibrated time(Operation operation, Shape shape, Bytes bytes) const;
  std::size_t rows() const { return rows_; }
  /// "all_reduce: 6 numbers and 3 shapes from 93 rows: base 5.1 us, ..."
  std::vector<std::string> summary() const;

 private:
  struct Fit {
    CollectiveModel model;
    std::size_t rows = 0;
    double spread = 0;  ///< Of residuals: 80 % are not larger.
    /// By shape: log2 of the bytes, and the residual there, sorted.
    std::map<Shape, std::vector<std::pair<double, double>>> residuals;
  };
  std::map<Operation, Fit> fits_;
  std::size_t rows_ = 0;
};

}  // namespace foretrace
