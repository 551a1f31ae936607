#pragma once

// A ledger of outcomes that a user keeps: what was predicted, and what came. `verify` and
// `validate` add to it, `predict --ledger` counts it beside the built-in ledger of errors.
//
//     {"schema": "foretrace.ledger/1",
//      "entries": [{"transforms": ["amp"], "error": -0.04, "predicted_ns": 96000000,
//                   "measured_ns": 100000000, "note": "BERT on our A100"}]}
//
// It is only ever read where a path is given: the same inputs give the same answer everywhere.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// One prediction of a step time whose truth became known.
struct KnownOutcome {
  std::vector<std::string> transforms;  ///< Names or uses ("loader:workers=4"): one at least.
  double error = 0;  ///< predicted / measured - 1; negative: it came out slower than predicted.
  Nanoseconds predicted{0}, measured{0};  ///< 0 where only the error is known.
  std::string note{};                     ///< Which job and machine; may be empty.
};

/// With `error` from the two times. Throws Error unless both are above 0.
KnownOutcome outcome_of(std::vector<std::string> transforms, Nanoseconds predicted,
                        Nanoseconds measured, std::string note = {});

/// Throws Error if a ledger cannot hold it: unknown transforms, or an error that is none.
void check_outcome(const KnownOutcome& outcome);

/// In the order of the file. Throws Error with the path and the entry.
std::vector<KnownOutcome> read_ledger(const std::string& path);
nlohmann::json ledger_json(const std::vector<KnownOutcome>& outcomes);

/// In place of what is there. Another process never sees half of it. Throws Error if it cannot be
/// written.
void write_ledger(const std::string& path, const std::vector<KnownOutcome>& outcomes);

/// Adds to the end of the ledger, which is made if it is not there. Another process never sees half
/// of it. Throws Error if what is there is no ledger, what is added is no outcome, or if it cannot
/// be written.
void append_to_ledger(const std::string& path, const std::vector<KnownOutcome>& outcomes);

}  // namespace foretrace
