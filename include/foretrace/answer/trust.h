#pragma once

// How far an answer can be relied on: a grade, and the facts it comes from, each with its figure
// and the limit it is held against.
//
//     good   nothing speaks against the answer
//     fair   something is to be known about it: few steps, a kind of what-if nobody ever compared
//     poor   it may be wrong altogether: its first line says so, --strict refuses it, assertions
//            about time are undecided, and `advise` recommends nothing
//
// The grade is that of the worst fact.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

enum class Grade : std::uint8_t { good, fair, poor };
std::string_view to_string(Grade grade);

/// Beyond this share of a step, time that a recording does not explain decides too much of what a
/// change would do for that to be relied on.
constexpr double kMuchOpenTime = 0.1;

/// One fact. `limit`: beyond it the fact counts as `fair`, or `poor` where it is.
struct TrustReason {
  std::string name;  ///< "other_ranks"; the names are listed in trust.cc of the module scenario.
  Grade grade = Grade::good;
  std::string text;             ///< "87.9 % of the step is time that only other ranks explain"
  std::optional<double> value;  ///< A share or a number, as the text has it.
  std::optional<double> limit;
};

struct Trust {
  std::vector<TrustReason> reasons;  ///< Every fact that is known, good ones included.

  Grade grade() const;
  /// nullptr if there is none of that name.
  const TrustReason* reason(std::string_view name) const;
};

/// The facts that speak against the answer, worst first, joined by semicolons; empty where it is
/// good.
std::string trust_sentence(const Trust& trust);

/// "poor: ..." for the first line of an answer; empty unless the grade is poor.
std::string trust_warning(const Trust& trust);

}  // namespace foretrace
