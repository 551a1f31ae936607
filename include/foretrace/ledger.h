#pragma once

// A user's ledger of outcomes: predictions and measurements. `verify` and `validate` add to it,
// `predict --ledger` uses it in addition to the built-in ledger of errors.
//
//     {"schema": "foretrace.ledger/1",
//      "entries": [{"transforms": ["amp"], "error": -0.04, "predicted_ns": 96000000,
//                   "measured_ns": 100000000, "note": "BERT on our A100"}]}
//
// It is only ever read if its path is given: the same inputs give the same answer everywhere.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/units.h"

namespace foretrace {

/// A prediction of a step time, with the outcome.
struct KnownOutcome {
  std::vector<std::string> transforms;  ///< Names or uses ("loader:workers=4"), at least one.
  double error = 0;  ///< predicted / measured - 1; negative: it came out slower than predicted.
  Nanoseconds predicted{0}, measured{0};  ///< 0 if only the error is known.
  std::string note{};                     ///< Which job and machine; may be empty.
};

/// Computes `error` from the two times. Throws Error unless both are above 0.
KnownOutcome outcome_of(std::vector<std::string> transforms, Nanoseconds predicted,
                        Nanoseconds measured, std::string note = {});

/// Throws Error if a ledger cannot contain it: unknown transforms, or an impossible error.
void check_outcome(const KnownOutcome& outcome);

/// In the order of the file. Throws Error with the path and the entry.
std::vector<KnownOutcome> read_ledger(const std::string& path);
nlohmann::json ledger_json(const std::vector<KnownOutcome>& outcomes);

/// Replaces the file. Another process never sees a partial file. Throws Error if it cannot be
/// written.
void write_ledger(const std::string& path, const std::vector<KnownOutcome>& outcomes);

/// Appends to the ledger, which is created if missing. Another process never sees a partial file.
/// Throws Error if the file is not a ledger, if an entry is invalid, or if it cannot be written.
void append_to_ledger(const std::string& path, const std::vector<KnownOutcome>& outcomes);

}  // namespace foretrace
