#pragma once

// The values that a setting is to have in turn: "1,2,4", "0..16", "0..1/20", "8GB..40GB/8".

#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

struct Values {
  std::vector<std::string> listed;  ///< In the order given; or the ends and the values between.
  bool is_range = false;            ///< Any value between two neighbours could be tried, too.
  bool whole = false;               ///< For a range: only whole numbers.
  double low = 0, high = 0;         ///< For a range: its ends, in `unit`.
  std::string unit;                 ///< For a range; empty: a plain number.
};

/// `whole_setting`: the setting takes whole numbers only. Throws Error.
Values read_values(std::string_view text, bool whole_setting);

/// A value of a range as text: with as many digits as distinguish values that are `apart`.
std::string value_in(const Values& range, double number, double apart);

/// The value in the middle of two of a range; empty if there is none that differs from both.
std::string between(const Values& values, std::string_view low, std::string_view high);

}  // namespace foretrace
