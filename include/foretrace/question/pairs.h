#pragma once

// Before/after pairs whose outcome is known: the prediction from the recording before is compared
// with the recording after.
//
//     {"schema": "foretrace.pairs/1",
//      "pairs": [{"name": "workers 0 -> 4", "before": "w0.json.gz", "after": "w4.json.gz",
//                 "with": ["loader:workers=4"], "compare": "step_time", "class": "loader",
//                 "fitted": false}]}
//
// or traces/ground_truth.json as scripts/ground_truth.py writes it.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/pairs.h"
#include "foretrace/answer/validation.h"
#include "foretrace/import.h"
#include "foretrace/infer.h"
#include "foretrace/ledger.h"

namespace foretrace {

struct KnownPair {
  std::string name;
  std::string before, after;  ///< Paths; `after` is empty if `recorded` is known.
  std::vector<std::string> uses;
  std::string kind;
  Compared compared = Compared::step_time;
  bool fitted = false, synthetic = false;
  std::optional<std::int64_t> recorded{};  ///< In ns or bytes.
};

struct PairList {
  std::string path;
  std::vector<KnownPair> pairs;
  Notes notes;
};

/// Looks for the recordings in `folder`, or beside the file if that is empty. Throws Error with the
/// place.
PairList read_pairs(const std::string& path, const std::string& folder = {});

/// The lists in ./traces, or of the installed program. Lists whose recordings are not shipped are
/// only included if `recordings` is a folder with these. Throws Error if there are no lists.
std::vector<PairList> shipped_pairs(const std::string& recordings);

struct PairOptions {
  ImportOptions reading = {};
  std::string ledger_path;                              ///< Path of the user's own ledger.
  std::function<void(const std::string&)> begins = {};  ///< Called with the name of each pair.
};

/// Pairs that cannot be compared are part of the answer. Throws Error if none can.
PairsReport compare_pairs(const std::vector<PairList>& lists, const PairOptions& options = {});

/// The outcomes that a ledger can contain: recorded step times that nothing was fitted to.
std::vector<KnownOutcome> outcomes_of(const PairsReport& report);

/// Predicts each steady step in turn from the others. Empty if steps alternate, or if fewer than
/// three after the first are alike.
LeftOutSteps left_out_steps(const Inference& inference);

}  // namespace foretrace
