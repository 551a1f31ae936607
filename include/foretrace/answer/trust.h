#pragma once

// How far an answer can be relied on: a grade, and the facts behind it, each with its figure and
// the limit that the figure is compared with.
//
//     good   nothing speaks against the answer
//     fair   it has a known weakness: few steps, a kind of what-if never compared with an outcome
//     poor   it may be completely wrong: its first line says so, --strict refuses it, assertions
//            about time are undecided, and `advise` recommends nothing
//
// The grade is that of the worst fact.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

enum class Grade : std::uint8_t { good, fair, poor };
std::string_view to_string(Grade grade);

/// If a recording does not explain more than this share of a step, the effect of a change depends
/// too much on that time to be relied on.
constexpr double kMuchOpenTime = 0.1;

/// One fact. Beyond its `limit` it counts as `fair` or as `poor`, as `grade` then says.
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

/// The facts that speak against the answer, worst first, joined by semicolons; empty if it is
/// good.
std::string trust_sentence(const Trust& trust);

/// "poor: ..." for the first line of an answer; empty unless the grade is poor.
std::string trust_warning(const Trust& trust);

/// {"grade": "fair", "reasons": [{"name", "grade", "text", "value", "limit"}]}
nlohmann::json to_json(const Trust& trust);

}  // namespace foretrace
