#pragma once

// Tables of measured training steps: CSV with a heading. Columns have the names that published
// tables use ("tp", "tensor parallelism"); whatever a row does not state comes from the layout and
// machine of the question.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/notes.h"
#include "foretrace/question/generate.h"
#include "price/calibration.h"

namespace foretrace {

struct MeasuredRow {
  std::size_t number = 0;  ///< Number of its line, counted from 1 after the heading.
  MeasuredStep step;
  std::string group;  ///< Model, device and number of devices; rows of one group compete.
  bool out_of_memory = false;
  bool is_guessed = false;  ///< A part of its layout is not stated: it is not scored.
  bool cannot_run = false;  ///< It failed, as it had to: nothing can be priced.
  double memory_bytes = 0;  ///< 0 if it was not measured.
  bool states_recompute = false;
  bool states_sharding = true;
  bool states_precision = true;  ///< Or --layout does, or the device has no narrow types.
};

struct RowDefaults {
  Layout layout{};
  std::string stated{};           ///< Its settings as text; they precede those of known programs.
  std::string workload, machine;  ///< If empty, rows must state them.
  /// "column=text" keeps the rows whose column contains the text.
  std::vector<std::string> only{};
};

/// The note that counts rows that were left out.
inline constexpr std::string_view kLeftOut = "rows of measured steps were left out";

/// Reads the rows of a table. Rows that cannot be priced (a model without a shape, a layout that
/// does not divide) are noted and left out. Throws Error if the file cannot be read or no row is
/// left.
std::vector<MeasuredRow> read_measured_rows(const std::string& path, const RowDefaults& defaults,
                                            Notes& notes);

/// Prices fitted to the measured steps that a question names.
struct CalibratedSteps {
  StepCalibration calibration{};
  std::set<std::size_t> rows{};  ///< Numbers of the rows that it was fitted to.
};

/// Fits to the table in `calibrate`. Without one, the constants are the usual ones, and
/// `assumptions` say so.
CalibratedSteps calibrate_steps(const GenerateQuestion& question,
                                std::vector<std::string>& assumptions);

}  // namespace foretrace
