#pragma once

// Tables of measured training steps: CSV with a heading. Columns are known by the names that
// published tables have ("tp", "tensor parallelism"); what a row does not state is as in the layout
// and machine that were asked for.

#include <string>
#include <string_view>
#include <vector>

#include "foretrace/notes.h"
#include "price/calibration.h"

namespace foretrace {

struct MeasuredRow {
  std::size_t number = 0;  ///< The number of its line, counted from 1 behind the heading.
  MeasuredStep step;
  std::string group;  ///< Model and number of devices: rows that compete.
  bool out_of_memory = false;
  double memory_bytes = 0;  ///< 0 where it was not measured.
  bool says_recompute = false;
};

struct RowDefaults {
  Layout layout{};
  std::string workload, machine;    ///< Empty: a row must state them.
  std::vector<std::string> only{};  ///< "column=text": rows whose column holds a text.
};

/// The note under which rows that were left out are counted.
inline constexpr std::string_view kLeftOut = "rows of measured steps were left out";

/// Rows that cannot be priced (a model without a shape, a layout that does not divide) are noted
/// and left out. Throws Error on a file that cannot be read or has no such rows.
std::vector<MeasuredRow> read_measured_rows(const std::string& path, const RowDefaults& defaults,
                                            Notes& notes);

}  // namespace foretrace
