#pragma once

// The user's mistakes are Errors, caught once in main. Oddities in data are Notes (notes.h). Our
// own bugs are CHECKs.

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace foretrace {

/// The user's error: bad file, bad scenario, nothing to apply to. The text says what must hold,
/// then what was found. Exit code 2.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The trace cannot be used, whatever the question. Exit code 3.
class TraceError : public Error {
 public:
  using Error::Error;
};

/// Runs `action`, and puts `place` and ": " in front of the text of any Error that it throws.
template <class Action>
decltype(auto) within(std::string_view place, Action&& action) {
  try {
    return std::forward<Action>(action)();
  } catch (const TraceError& error) {
    throw TraceError(std::string(place) + ": " + error.what());
  } catch (const Error& error) {
    throw Error(std::string(place) + ": " + error.what());
  }
}

/// Returns the option nearest to a mistyped `found`, as " (did you mean \"x\"?)", or "" if none is
/// near.
template <class Options>
std::string did_you_mean(std::string_view found, const Options& options);

/// Optimal string alignment distance, for did_you_mean().
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Options>
std::string did_you_mean(std::string_view found, const Options& options) {
  std::string_view best;
  std::size_t least = found.size() / 3 + 2;
  for (const auto& option : options) {
    const std::size_t distance = edit_distance(found, option);
    if (distance < least) least = distance, best = option;
  }
  if (best.empty()) return {};
  return " (did you mean \"" + std::string(best) + "\"?)";
}

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

/// Aborts if the condition does not hold, in every build. Input can never make it fail.
#define CHECK(condition) \
  ((condition) ? void(0) : ::foretrace::check_failed(#condition, __FILE__, __LINE__))

}  // namespace foretrace
