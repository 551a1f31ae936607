#pragma once

// Predictions and outcomes: for each before/after pair, the prediction from the recording before
// alone, and for each kind of what-if, the errors and how often the interval contained the outcome.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/notes.h"

namespace foretrace {

/// The compared quantity: a step time in ns, or peaks of memory in bytes.
enum class Compared { step_time, peak_allocated, peak_reserved };
std::string_view to_string(Compared compared);

struct PairRow {
  std::string name;
  std::vector<std::string> uses;  ///< The what-if, as for --with.
  std::string kind;               ///< The kind of what-if.
  Compared compared = Compared::step_time;
  bool fitted = false;     ///< The transform was refined on this pair.
  bool synthetic = false;  ///< Not really recorded.
  std::string problem{};   ///< The reason why there is no answer; empty if there is one.
  bool missing = false;    ///< Whether the reason is that a recording is not there.
  std::int64_t before = 0, predicted = 0, recorded = 0, lower = 0, upper = 0;
  double error = 0;  ///< predicted / recorded - 1
  /// Whether the interval contains the recorded value; reserved memory has no interval.
  std::optional<bool> inside{};
};

/// Pairs of one kind.
struct PairKind {
  std::string kind;
  Compared compared = Compared::step_time;
  std::size_t count = 0, intervals = 0, inside = 0;
  double median_error = 0, worst_error = 0;  ///< Median and greatest size of the errors.
};

struct PairsReport {
  std::vector<std::string> lists;  ///< Files that name the pairs.
  std::vector<PairRow> rows;
  std::vector<PairKind> kinds;  ///< In order of their names; the last one is for all pairs.
  std::size_t missing = 0, refused = 0;
  Notes notes;
};

/// Fills `kinds`, `missing` and `refused` from the rows.
void sum_up(PairsReport& report);

class Document;
/// For people, in every form.
Document document_of(const PairsReport& report);
/// The object with schema "foretrace.pair_validation/1".
nlohmann::json to_json(const PairsReport& report);

}  // namespace foretrace
