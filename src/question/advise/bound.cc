#include "question/advise/bound.h"

#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

double host_share(const PathShares& path) {
  return path.share(PathPart::host) + path.share(PathPart::launches);
}

bool is_host(PathPart part) { return part == PathPart::host || part == PathPart::launches; }

/// Says how often the host waits for the device. Empty if this is too rare to keep the host from
/// running ahead, or if host work is a small part of the critical path.
std::string host_waits_text(const Advice& advice) {
  if (advice.path.host_waits < 0.5 || host_share(advice.path) < 0.1) return {};
  return fmt::format(", and the host waits for the device {}{}",
                     to_fixed(advice.path.host_waits, advice.path.host_waits < 10 ? 1 : 0),
                     advice.has_steps ? " times a step" : " times");
}

/// If a step gets no shorter than this without what bounds it, because something else takes as
/// long, neither of the two is the one to look at alone. Chosen.
constexpr double kLevel = 0.9;

/// Whether host and device take about equally long.
bool is_level(const Advice& advice) {
  const StepBound& bound = advice.bound;
  const bool both = (is_host(bound.part) && bound.next == PathPart::kernels) ||
                    (bound.part == PathPart::kernels && is_host(bound.next));
  return both && bound.without >= scaled(advice.step_time, kLevel);
}

/// "the host: its work and launches take 76 % of what a step waits for; "
std::string part_text(const Advice& advice) {
  const StepBound& bound = advice.bound;
  if (!advice.ladder.empty() && is_level(advice)) return "the host and the device alike: ";
  const PathShares& path = advice.path;
  const bool agrees = is_host(bound.part) ? is_host(path.largest()) : path.largest() == bound.part;
  std::string text = bound_name(bound.part) + ": ";
  if (!agrees && !advice.ladder.empty()) return text;
  return text +
         fmt::format("{}{} of what a step waits for; ",
                     is_host(bound.part)               ? "its work and launches take "
                     : bound.part == PathPart::kernels ? "kernels take "
                                                       : "",
                     to_share(is_host(bound.part) ? host_share(path) : path.share(bound.part), 0));
}

}  // namespace

std::string bound_name(PathPart part) {
  if (is_host(part)) return "the host";
  return part == PathPart::kernels ? "the device" : std::string(to_string(part));
}

std::string bound_sentence(const Advice& advice) {
  const bool ceilings = !advice.ladder.empty();
  const StepBound& bound = advice.bound;
  std::string text = part_text(advice);
  if (ceilings) {
    text += fmt::format("without {} {} would take {} ({}); ",
                        is_host(bound.part) ? is_level(advice) ? "host work" : "its work"
                        : bound.part == PathPart::kernels ? "kernels"
                        : bound.part == PathPart::copies  ? "them"
                                                          : "it",
                        advice.has_steps ? "a step" : "the recording", to_text(bound.without),
                        change_text(advice.step_time, bound.without));
  }
  if (const TrustReason* open = advice.trust.reason("unexplained");
      ceilings && open != nullptr && open->grade == Grade::poor)
    text = fmt::format("not known: {}; ", open->text);
  const double busy = ratio(advice.breakdown.compute, advice.step_time);
  return fmt::format("{}kernels run {} of the time{}", text, to_share(busy, 0),
                     host_waits_text(advice));
}

}  // namespace foretrace
