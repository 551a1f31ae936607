#pragma once

// The values that a setting takes in turn: "1,2,4", "0..16", "0..1/20", "8GB..40GB/8".

#include <string>
#include <string_view>
#include <vector>

namespace foretrace {

struct Values {
  /// In the given order; for a range, its ends and the values between.
  std::vector<std::string> listed;
  bool is_range = false;     ///< Any value between two neighbors could be tried as well.
  bool whole = false;        ///< For a range: only whole numbers.
  double low = 0, high = 0;  ///< For a range: its ends, in `unit`.
  std::string unit;          ///< For a range; empty: a plain number.
};

/// `whole_setting`: the setting accepts only whole numbers. Throws Error.
Values read_values(std::string_view text, bool whole_setting);

/// Writes a value of a range with just enough digits to distinguish values that are `apart`.
std::string format_value(const Values& range, double number, double apart);

/// Returns the value in the middle between two values of a range; empty if none differs from both.
std::string midpoint(const Values& values, std::string_view low, std::string_view high);

}  // namespace foretrace
