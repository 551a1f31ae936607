#include "transform/worth.h"

#include <array>

namespace foretrace {
namespace {

#define TRANSFORM(name, summary) std::string_view(#name),
constexpr std::array kTransformNames = {
#include "transform/transforms.def"
};
#undef TRANSFORM

#define WORTH(name, goal, tries, samples, holds, premise, why_not) std::string_view(#name),
constexpr std::array kWorthNames = {
#include "transform/worth.def"
};
#undef WORTH

static_assert(kWorthNames == kTransformNames, "each transform has its line in worth.def, sorted");

}  // namespace

std::string_view to_string(Goal goal) {
  switch (goal) {
    case Goal::none:
      return "none";
    case Goal::time:
      return "time";
    case Goal::throughput:
      return "throughput";
    case Goal::memory:
      return "memory";
    case Goal::device:
      return "device";
  }
  return "none";
}

const std::vector<Worth>& worths() {
  static const std::vector<Worth> all = {
#define WORTH_TRIES(...) \
  { __VA_ARGS__ }
#define WORTH_HOLDS(...) \
  { __VA_ARGS__ }
#define WORTH(name, goal, tries, samples, holds, premise, why_not) \
  {#name, Goal::goal, tries, samples, holds, Premise::premise, why_not},
#include "transform/worth.def"
#undef WORTH
#undef WORTH_HOLDS
#undef WORTH_TRIES
  };
  return all;
}

}  // namespace foretrace
