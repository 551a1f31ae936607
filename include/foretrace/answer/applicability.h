#pragma once

#include <string>

namespace foretrace {

/// Whether a change applies to a job as it is, and to how much of the work that it is about.
struct Applicability {
  double share = 1;          ///< Of that work, 0 to 1; 0: the change does not apply at all.
  std::string why_not = {};  ///< Why not to the rest: "62 % of the time of its kernels is ...".
};

/// How far the durations that a change computes are typically off, as far as it knows.
struct TimesError {
  double share = 0;       ///< Of the durations; 0: not known.
  std::string text = {};  ///< Where from: "rates of operations on mi300x, ...".
};

/// Four fifths of measured transfers are from 1 / `faster` to `slower` times as long as priced.
struct TransferDoubt {
  double faster = 1, slower = 1;
};

/// "does not apply: ..." or "applies to 38.0 %: ..."; empty if it applies to all.
std::string to_text(const Applicability& applies);

}  // namespace foretrace
