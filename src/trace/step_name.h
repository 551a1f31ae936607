#pragma once

// How programs and profilers name the ranges of training steps: "ProfilerStep#12" (PyTorch), and by
// convention "step 12", "Iteration_12", "train_step: 12".

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace foretrace {

/// Prefix of the ranges with which PyTorch's profiler marks steps.
inline constexpr std::string_view kProfilerStep = "ProfilerStep#";

struct StepName {
  std::size_t word = 0;  ///< Index of the matched word in step_name()'s list; 0 is PyTorch's.
  std::uint64_t number = 0;
};

/// Parses the name of a range that marks a step. Returns nullopt for any other name.
constexpr std::optional<StepName> step_name(std::string_view name) {
  constexpr std::string_view kWords[] = {"profilerstep", "training_step", "train_step", "step",
                                         "iteration",    "iter",          "batch"};
  constexpr std::size_t kMaxDigits = 18;
  const std::size_t last_other = name.find_last_not_of("0123456789");
  if (last_other == std::string_view::npos || last_other + 1 == name.size()) return {};
  if (name.size() - last_other - 1 > kMaxDigits) return {};
  StepName step;
  for (const char c : name.substr(last_other + 1))
    step.number = step.number * 10 + static_cast<std::uint64_t>(c - '0');
  const std::size_t end = name.substr(0, last_other + 1).find_last_not_of("# _:-=");
  if (end == std::string_view::npos) return {};
  const auto same = [&](std::string_view word) {
    if (word.size() != end + 1) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
      const char c = name[i];
      if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != word[i]) return false;
    }
    return true;
  };
  for (step.word = 0; step.word < std::size(kWords); ++step.word) {
    if (same(kWords[step.word])) return step;
  }
  return {};
}

}  // namespace foretrace
