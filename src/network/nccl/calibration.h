#pragma once

// Times of collectives from times that were measured on the same machine with other sizes or
// numbers of nodes. Two parts, for each operation:
//
//     model     six physical numbers, see collective_model.h
//     residual  ln (measured / model) by size, for each measured shape (nodes, ranks per node)
//
// The residual is interpolated over log2 of size and nodes between shapes of the same kind (within
// one node, or across nodes), and kept flat beyond. What NCCL does at a size, such as a protocol
// that is slow on this network, is in the residual: it is the same at other node counts as far as
// the shapes nearest to them have it.
//
// How far a time may be off is measured: each shape is left out in turn, everything is fitted
// without it, and its times are predicted. 80 % of these errors are inside of the spread s, which
// is of a distance of 1; an interval is
//
//     t exp(+- s sqrt(1 + d))       d = log2 of the ratio of nodes, and of ranks per node, together

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "network/nccl/collective_model.h"
#include "network/nccl/system_of.h"

namespace foretrace {

struct Calibrated {
  double us = 0;
  double lower_us = 0, upper_us = 0;  ///< Holds 80 % of what is measured, see above.
  bool is_covered = false;            ///< Shape and size lie between measured ones.
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

  /// log2 of the bytes, and a residual there, sorted.
  using Residuals = std::vector<std::pair<double, double>>;
  struct Fit {
    CollectiveModel model;
    std::size_t rows = 0;
    std::map<Shape, Residuals> residuals;
  };
  /// How far off times are, as logarithms: of other sizes of a measured shape; of shapes of a kind
  /// that was measured; and of the other kind.
  struct Spreads {
    double sizes = 0, shapes = 0, kinds = 0;
  };

 private:
  std::map<Operation, Fit> fits_;
  Spreads spreads_;
  std::size_t rows_ = 0;
};

}  // namespace foretrace
