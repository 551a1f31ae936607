// The suggestions as bars: the step that each leaves, with its interval, and the part it saves.

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "document/page/page_charts.h"
#include "question/advise/words.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

/// Length of the longest bar, as a share of the width.
constexpr double kWidestGain = 0.98;

/// A change and the time of a step with it, for as many samples as a step has now.
struct Gain {
  std::string name;
  Nanoseconds step{0}, lower{0}, upper{0};
};

std::vector<Gain> gains_of(const Advice& advice) {
  std::vector<Gain> gains;
  for (const char* goal : {"time", "throughput"}) {
    for (const Suggestion* one : recommended(advice, goal)) {
      const double share = one->samples > 0 ? 1 / one->samples : 1;
      gains.push_back({one->use, advice.step_time - one->gain, scaled(one->lower, share),
                       scaled(one->upper, share)});
    }
  }
  if (advice.joint && advice.joint->members.size() > 1)
    gains.push_back(
        {"together", advice.joint->step_time, advice.joint->lower, advice.joint->upper});
  return gains;
}

BarPart part_of(double from, double to, const char* colour, std::string tooltip) {
  return {.from = from,
          .width = std::max(0., to - from),
          .label = {},
          .letter = {},
          .colour = colour,
          .tooltip = std::move(tooltip)};
}

}  // namespace

std::string gains_picture(const Advice& advice) {
  const std::vector<Gain> gains = gains_of(advice);
  if (gains.empty()) return {};
  Nanoseconds widest = advice.step_time;
  for (const Gain& gain : gains) widest = std::max({widest, gain.step, gain.upper});
  const auto at = [&](Nanoseconds time) { return kWidestGain * ratio(time, widest); };
  const std::string now = "now: " + to_text(advice.step_time);
  std::vector<BarMark> marks = {{at(advice.step_time), "text", now}};
  std::vector<LegendEntry> legend = {
      {"series-0", "left of a step"}, {"series-2", "saved"}, {"text", now, "mark"}};
  if (!advice.ladder.empty() && advice.ladder.back().step_time > 0ns) {
    const Nanoseconds least = advice.ladder.back().step_time;
    const std::string best = "at best, while kernels stay as they are: " + to_text(least) +
                             "; other or faster kernels beat that";
    marks.push_back({at(least), "bad", best});
    legend.push_back({"bad", best, "mark"});
  }
  std::vector<BarRow> rows;
  for (const Gain& gain : gains) {
    rows.push_back(
        {.name = gain.name,
         .parts = {part_of(0, at(gain.step), "kept", gain.name + ": " + to_text(gain.step)),
                   part_of(at(gain.step), at(advice.step_time), "saved",
                           "saves " + to_text(advice.step_time - gain.step))},
         .value =
             fmt::format("{} ({})", to_text(gain.step), change_text(advice.step_time, gain.step)),
         .marks = marks,
         .range =
             BarRange{at(gain.lower), at(gain.upper),
                      fmt::format("between {} and {}", to_text(gain.lower), to_text(gain.upper))}});
  }
  return html_bars("What each suggestion saves of a step; the tables below say the same", rows) +
         html_legend(legend);
}

}  // namespace foretrace
