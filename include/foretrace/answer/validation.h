#pragma once

// How well the causes in a recording were found (`foretrace validate`): the structure of one step
// is given the work of another, relations are checked that hold for any graph, and steps are left
// out and predicted.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/graph.h"
#include "foretrace/notes.h"
#include "foretrace/units.h"

namespace foretrace {

/// The recording up to the start of its last step, with one side, host or device, taking no time.
/// The time in which only that side worked must then be gone.
struct SideRemoval {
  Nanoseconds recorded{0};
  Nanoseconds alone{0};      ///< Part of `recorded` while the other side did nothing.
  Nanoseconds remaining{0};  ///< Replayed without the side.
  /// The part of `remaining` beyond the time in which the other side worked or neither did, as a
  /// share of `recorded`: time of one side that the graph attributes to the other, or to a lag.
  double excess() const;
  /// The most that is accepted. Without that side, delays appear that it had hidden: up to 6 % were
  /// seen.
  static constexpr double kMaxExcess = 0.1;
  bool holds() const { return excess() <= kMaxExcess; }
};

struct SideRemovals {
  SideRemoval device, host;
};

struct Validation {
  Nanoseconds measured{0};  ///< Step time.
  double replay_error = 0;
  std::size_t tasks = 0;
  Unexplained unexplained;
  int alike_steps = 0;
  std::optional<double> cross_step_error;  ///< Median over ordered pairs of alike steps; empty
                                           ///< with fewer than three.
  std::optional<double> worst_cross_step_error;
  /// Error of the guess "every step takes as long as the first".
  std::optional<double> same_as_first_error;
  bool scale_holds = false;    ///< All durations and lags doubled: the time is doubled exactly.
  bool neutral_holds = false;  ///< A transform by factor 1 changes nothing.
  bool shrink_holds = false;   ///< Shrinking tasks, one at a time, never made the end later.
  /// Whether export and re-import gave the same step time; true without times to export.
  bool export_holds = false;
  SideRemovals without;
  Notes notes;
};

/// How many steps were left out, and for how many of them the interval from all other steps
/// contains their time.
struct LeftOutSteps {
  std::size_t steps = 0, inside = 0;
};

struct ValidatedRank {
  std::string trace;  ///< Its path, and the rank where there are several.
  Validation validation;
  LeftOutSteps left_out;
  std::string against;  ///< Recording whose work was used; empty: its own.

  /// Names of the relations that should hold for any graph but do not: "export" ...
  std::vector<std::string_view> broken() const;
};

/// The object with schema "foretrace.validation/1".
nlohmann::json to_json(const Validation& validation);
nlohmann::json to_json(const ValidatedRank& rank);
nlohmann::json to_json(const std::vector<ValidatedRank>& ranks);
class Document;
/// For people: a row for each rank, and how many left-out steps lie inside their interval.
Document document_of(const std::vector<ValidatedRank>& ranks);

}  // namespace foretrace
