#pragma once

// Reads measured collectives: the output of nccl-tests, or CSV with the columns collective, bytes,
// gpus, nodes and time_us (other columns serve to select rows). Times are out of place.

#include <iosfwd>
#include <string>
#include <vector>

#include "network/collective.h"

namespace foretrace {

struct MeasuredCollective {
  Operation operation = Operation::all_reduce;
  std::uint32_t ranks = 1;
  std::uint32_t nodes = 1;
  Bytes bytes{};
  double us = 0;
};

/// "column=text": selects the rows of a CSV file whose cell contains the text.
using RowFilter = std::vector<std::string>;

/// `operation` is used for nccl-tests output that does not name its operation. Rows without bytes
/// are skipped. Throws Error, with the line, if a line cannot be read, and if no row is left.
std::vector<MeasuredCollective> read_measured(std::istream& in, Operation operation,
                                              const RowFilter& only);
std::vector<MeasuredCollective> read_measured_file(const std::string& path, Operation operation,
                                                   const RowFilter& only);

}  // namespace foretrace
