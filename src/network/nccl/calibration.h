#pragma once

// Predicts times of collectives from times measured on the same machine with other sizes or numbers
// of nodes. There are two parts for each operation:
//
//     model     six physical numbers, see collective_model.h
//     residual  ln (measured / model) by size, for each measured shape (nodes, ranks per node)
//
// The residual is interpolated over log2 of size and nodes between shapes of the same kind (within
// one node, or across nodes), and kept constant beyond them. NCCL's behavior at a size, such as a
// protocol that is slow on this network, is part of the residual: it carries over to other node
// counts as far as the nearest measured shapes show it.
//
// The uncertainty is measured: each shape is left out in turn, everything is fitted without it, and
// its times are predicted. The spread s contains 80 % of these errors, scaled to a distance of 0;
// an interval is
//
//     t exp(+- s sqrt(1 + d))       d = log2 of the ratio of nodes, and of ranks per node, together

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "network/nccl/collective_model.h"
#include "network/nccl/nccl_system.h"

namespace foretrace {

struct CalibratedTime {
  double us = 0;
  double lower_us = 0, upper_us = 0;  ///< Contains 80 % of measured times, see above.
  bool is_covered = false;            ///< Shape and size lie between measured ones.
};

class Calibration {
 public:
  /// Fits all operations that occur in `rows`. `places` gives the start of the search.
  Calibration(const std::vector<MeasuredCollective>& rows, const RankPlaces& places);
  explicit Calibration(const nlohmann::json& json);  ///< Throws Error.
  nlohmann::json json() const;

  bool knows(Operation operation) const { return fits_.contains(operation); }
  /// REQUIRES: knows(operation).
  CalibratedTime time(Operation operation, Shape shape, Bytes bytes) const;
  std::size_t rows() const { return rows_; }
  /// "all_reduce: 6 numbers and 3 shapes from 93 rows: base 5.1 us, ..."
  std::vector<std::string> summary() const;

  /// Pairs of log2 of the bytes and the residual there, sorted.
  using Residuals = std::vector<std::pair<double, double>>;
  struct Fit {
    CollectiveModel model;
    std::size_t rows = 0;
    std::map<Shape, Residuals> residuals;
  };
  /// Spreads of errors, as logarithms: for other sizes of a measured shape; for other shapes of a
  /// measured kind; and for a kind that was not measured.
  struct Spreads {
    double sizes = 0, shapes = 0, kinds = 0;
  };

 private:
  std::map<Operation, Fit> fits_;
  Spreads spreads_;
  std::size_t rows_ = 0;
};

}  // namespace foretrace
