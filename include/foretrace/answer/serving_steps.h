#pragma once

// A recording of an engine that serves a model: its steps by kind, and how long a step takes for
// what it computes.
//
//     device   |step 1 ####  ##|idle|step 2 ###|        a step lasts from its first work on the
//                <----- 1 ----------> <-- 2 -->         device to that of the next step
//
// The ranges that name steps last as long as the host, which is not the time of a step.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/trace.h"
#include "foretrace/units.h"

namespace foretrace {

enum class ServingWork : std::uint8_t { attention, experts, products, communication, other, count };
std::string_view to_string(ServingWork work);

/// Steps of one kind; times are medians.
struct ServingKind {
  std::string name;  ///< "decode of 64"
  std::int64_t steps = 0;
  Nanoseconds time{}, least{}, most{};  ///< Median, first and last decile.
  Nanoseconds busy{};                   ///< The device works.
  std::array<Nanoseconds, static_cast<std::size_t>(ServingWork::count)> work{};
};

/// time = fixed + per_prompt_token x tokens + per_sequence x sequences + per_position x context, by
/// least squares.
struct StepLaw {
  Nanoseconds fixed{};
  double per_prompt_token = 0, per_sequence = 0, per_position = 0;  ///< ns; 0: not told apart.
  double scatter = 0;  ///< Median of |time - law| / time.
  std::int64_t steps = 0;
};

struct ServingSteps {
  std::vector<ServingKind> kinds;  ///< The most time in all first.
  std::vector<StepLaw> law;        ///< One, or none where the steps do not tell it.
  std::int64_t steps = 0;
  Nanoseconds total{};
  std::int64_t without_work = 0;  ///< Named steps without work on the device.
};

/// No kinds if the recording names no steps of an engine.
ServingSteps serving_steps_of(const Trace& trace);

/// A row of the table of steps that `serve --table` reads. Of prompts: `batch` is 1, and `context`
/// their tokens.
struct StepRow {
  bool decodes = false;
  std::int64_t batch = 0, context = 0;
  Nanoseconds time{};  ///< Median of such steps.
};

/// Steps that only decode by sequences and, in steps of an eighth, by context; prompts by tokens,
/// less the time of decoding as many sequences as the step has. Throws Error if one of the two is
/// missing.
std::vector<StepRow> table_of_steps(const Trace& trace);

/// A kind of step before and after a change.
struct KindChange {
  std::string name;
  std::int64_t steps_before = 0, steps_after = 0;
  Nanoseconds before{}, after{};
  std::string where;  ///< The work that changed most: "attention"; empty if none did.
};

/// The kinds that both have, and then those that one has.
std::vector<KindChange> changes_of_kinds(const ServingSteps& before, const ServingSteps& after);

}  // namespace foretrace
