#pragma once

// `foretrace plan system`: a system that is described rather than recorded. Tasks stand on lanes,
// and their times are formulas of named numbers; the graph is built for given numbers and replayed.
//
//     {"settings": {"N": 60000, "M": 20},
//      "let":      ["waves = ceil(N / M)"],
//      "tasks":    [{"name": "start", "time": "12"},
//                   {"name": "map", "lanes": "M", "count": "N", "time": "0.004",
//                    "after": ["start"]},
//                   {"name": "reduce", "time": "30", "after": ["map"]}],
//      "repeat":   "20",
//      "figures":  ["cases_per_second = N / time"],
//      "rows":     [{"M": 20}, {"M": 40}],
//      "assert":   ["time < 3600"]}
//
// Times are seconds. Tasks of one name are dealt to its lanes in turn; each repetition waits for
// the one before. "search" has values of settings to try ("1..16", [1, 2]), "subject_to" has
// conditions that must hold, and "minimize" is the figure to minimize ("time"); "means" are
// geometric means over rows, and "assert_means" has assertions about them. "asks" (asks.h) has
// numbers that other questions answer; a file with them needs no tasks. "published" compares:
//
//     "published": [{"figure": "rate", "value": 1.16, "within": 0.1, "why": "if out of range"}]
//
// "assumed" has sentences that the answer repeats, with what the answers to "asks" assume.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "foretrace/question.h"

namespace foretrace {

struct SystemRow {
  std::map<std::string, double> settings{};               ///< Set by the row, or by the search.
  double seconds = 0;                                     ///< Time of the whole system.
  std::vector<std::pair<std::string, double>> figures{};  ///< In the order of the file.
  std::size_t tasks = 0;
  std::size_t tried = 0;              ///< Points that a search tried; 0 without one.
  std::vector<std::string> failed{};  ///< Assertions that do not hold.
};

/// A figure that a paper states.
struct PublishedFigure {
  std::string name{};
  double value = 0, within = 0.1;  ///< `within` is a share of the value.
  std::string why{};               ///< Why it is out of range, if the file says so.

  bool holds(double found) const;
};

struct SystemReport {
  std::string title{};
  bool has_tasks = true;
  std::vector<SystemRow> rows{};
  std::vector<std::pair<std::string, double>> means{};  ///< Geometric means over the rows.
  std::vector<std::string> failed{};                    ///< Assertions on means that do not hold.
  std::vector<PublishedFigure> published{};
  std::vector<std::string> assumptions{};

  /// The values of a figure, by row.
  std::vector<double> values(const std::string& figure) const;
  bool holds() const;
};

class Document;
/// For people, in every form.
Document document_of(const SystemReport& report);
/// The object with schema "foretrace.system/1".
nlohmann::json to_json(const SystemReport& report);

/// `settings` override those of the file and its rows. Throws Error with the place in the file,
/// also if a formula has no finite value. `options` says how the questions in the file are asked;
/// they write no files.
SystemReport run_system(const std::string& path, const std::map<std::string, double>& settings,
                        const AskOptions& options = {});

}  // namespace foretrace
