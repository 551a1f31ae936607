#pragma once

// The answer of `foretrace verify`: a prediction, the measurement after the change was made, and
// the causes of the error.
//
//     predicted  48.90 ms (42.75 ms to 55.81 ms)
//     measured   48.92 ms                             inside; the prediction is -0.0 % off
//
// inside: the measured step time lies in the interval of the prediction. near: it does not, but
// some of the measured steps do. outside: none does.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "foretrace/answer/diff.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/notes.h"

namespace foretrace {

enum class Agreement : std::uint8_t { inside, near, outside };

/// A step time, its breakdown, and the peak of memory.
struct VerifiedSide {
  Nanoseconds step_time{0};
  Breakdown breakdown;
  std::optional<Bytes> peak_allocated;
};

struct Verification {
  std::vector<std::string> uses;  ///< The predicted change: "loader:workers=4".
  VerifiedSide before;            ///< The job that the prediction started from.
  VerifiedSide predicted;         ///< As the prediction was written.
  Nanoseconds lower{0}, upper{0};
  VerifiedSide measured;
  Nanoseconds shortest{0}, longest{0};  ///< Range of the measured steps.
  double error = 0;                     ///< predicted / measured - 1
  Agreement agreement = Agreement::inside;

  std::vector<InputFile> inputs;        ///< Files of the measurement.
  std::optional<Nanoseconds> repeated;  ///< The prediction repeated, if its input is available.
  /// From the predicted timeline to the measured one.
  std::optional<Diff> residual;
  Trust trust;         ///< Trust of the measurement.
  std::string ledger;  ///< Path of the ledger with the outcome; empty: none.
  Notes notes;
};

std::string_view to_string(Agreement agreement);

/// "The measured 48.92 ms lie inside the predicted 42.75 ms to 55.81 ms; the prediction was 0.0 %
/// too low".
std::string verify_verdict(const Verification& verification);

class Document;
/// For people, in every form.
Document document_of(const Verification& verification);
/// The object with schema "foretrace.verification/1".
nlohmann::json to_json(const Verification& verification);

}  // namespace foretrace
