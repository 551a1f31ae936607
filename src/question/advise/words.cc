#include "question/advise/words.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <numeric>

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

std::string change_from(const Advice& advice, Nanoseconds after) {
  return change_text(advice.step_time, after);
}

std::string times_text(double times) {
  if (times >= 1e6) return "over a million times";
  return to_fixed(times, times >= 100 ? 0 : times >= 10 ? 1 : 2) + " times";
}

std::string times_as_fast(Nanoseconds before, Nanoseconds after) {
  return after <= 0ns ? "" : times_text(ratio(before, after)) + " as fast";
}

const Suggestion* best_for_time(const Advice& advice) {
  for (const Suggestion& one : advice.suggestions) {
    if (one.recommended && one.goal == "time") return &one;
  }
  return nullptr;
}

std::string joint_text(const Advice& advice) {
  if (!advice.joint || advice.joint->members.size() < 2) return {};
  const JointAdvice& joint = *advice.joint;
  std::string names;
  for (std::size_t i = 1; i < joint.members.size(); ++i) {
    names += i == 1 ? "" : i + 1 == joint.members.size() ? " and " : ", ";
    names += joint.uses[i];
  }
  if (joint.uses[0] != advice.suggestions[joint.members[0]].use)
    return fmt::format("; {} with {} {}", joint.uses[0], names, to_text(joint.step_time));
  return fmt::format("; with {} {}", names, to_text(joint.step_time));
}

std::string help_sentence(const Advice& advice) {
  if (advice.trust.grade() == Grade::poor)
    return "not shown: the effect of a change depends on time that this recording does not explain";
  const Suggestion* best = best_for_time(advice);
  if (best == nullptr) {
    return fmt::format(
        "nothing that was tried: no transform gains more than {} of a step (less is noise)",
        to_share(advice.noise));
  }
  return fmt::format("{}: {} -> {}{} ({}), between {} and {}, confidence {}{}", best->use,
                     to_text(advice.step_time), to_text(best->step_time),
                     per_step_text(advice.has_steps), change_from(advice, best->step_time),
                     to_text(best->lower), to_text(best->upper), best->confidence.word,
                     joint_text(advice));
}

std::string best_sentence(const Advice& advice) {
  if (advice.ladder.empty()) return {};
  const Nanoseconds least = advice.ladder.back().step_time;
  if (least <= 0ns) return "there are no kernels, so nothing that stays as it is bounds a step";
  std::string text = fmt::format("{}{} while kernels stay as they are", to_text(least),
                                 per_step_text(advice.has_steps));
  if (ratio(advice.step_time - least, advice.step_time) >= 0.01)
    text += fmt::format(" ({})", times_as_fast(advice.step_time, least));
  else
    text += ": about what it takes now";
  return text + "; only other or faster kernels beat that";
}

bool is_member(const Advice& advice, const Suggestion& one) {
  if (!advice.joint) return false;
  const std::vector<std::size_t>& members = advice.joint->members;
  return std::any_of(members.begin(), members.end(),
                     [&](std::size_t member) { return &advice.suggestions[member] == &one; });
}

/// Returns the lowest confidence among the members of the joint advice.
std::string lowest_confidence(const Advice& advice) {
  std::string word = "high";
  for (const std::size_t member : advice.joint->members) {
    const std::string& other = advice.suggestions[member].confidence.word;
    if (other == "low" || word == "high") word = other;
    if (word == "low") break;
  }
  return word;
}

std::string bytes_change(const std::optional<Bytes>& before, const std::optional<Bytes>& after) {
  if (!before || !after) return "-";
  return change_text(*before, *after);
}

/// An added GPU pays off if it brings at least this share of what one alone does. Our choice.
constexpr double kMinPayoff = 0.5;

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

std::string more_gpus_sentence(const MoreGpus& more) {
  if (more.network.empty()) return {};
  if (more.points.empty()) return "not shown: " + more.refused;
  const auto text_of = [](const MoreGpus::Point& point) {
    return fmt::format("{} train {} as fast", point.gpus, times_text(point.times_as_fast));
  };
  const MoreGpus::Point* last = nullptr;
  for (const MoreGpus::Point& point : more.points) {
    if (point.each_added < kMinPayoff) {
      const std::string brings =
          fmt::format("each GPU added up to {} brings {} of what one alone does", point.gpus,
                      to_share(std::max(0., point.each_added)));
      if (last == nullptr) return "adding GPUs does not pay off: " + brings;
      return fmt::format("{}, on {}; adding more does not pay off: {}", text_of(*last),
                         more.network, brings);
    }
    last = &point;
  }
  return fmt::format("{}, on {}; each added one brings {} of what one alone does", text_of(*last),
                     more.network, to_share(last->each_added));
}

std::string_view to_string(PathPart part) {
  switch (part) {
    case PathPart::kernels:
      return "kernels";
    case PathPart::communication:
      return "communication";
    case PathPart::copies:
      return "copies";
    case PathPart::input:
      return "input";
    case PathPart::host:
      return "host work";
    case PathPart::launches:
      return "launches";
    case PathPart::delays:
      return "delays";
  }
  return "delays";
}

AdviceVerdict advice_verdict(const Advice& advice) {
  return {bound_sentence(advice), help_sentence(advice), best_sentence(advice)};
}

std::string path_text(const PathShares& path) {
  std::string text;
  for (std::size_t i = 0; i < kPathParts; ++i) {
    const auto part = static_cast<PathPart>(i);
    if (path.share(part) < 0.01) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(part),
                        to_share(path.share(part), 0));
  }
  return text;
}

Table ladder_table(const Advice& advice) {
  Table table{.heading = {"if this took no time", "step", "change", "then bound by", "assumes"},
              .rows = {},
              .left = {0, 3, 4}};
  for (const AdviceCeiling& ceiling : advice.ladder) {
    if (!ceiling.is_present) {
      table.rows.push_back({ceiling.title, "-", "-", "-", "this trace has none"});
      continue;
    }
    table.rows.push_back({ceiling.title, to_text(ceiling.step_time),
                          change_from(advice, ceiling.step_time),
                          std::string(to_string(ceiling.bound)), ceiling.assumes});
  }
  return table;
}

std::vector<const Suggestion*> recommended(const Advice& advice, std::string_view goal) {
  std::vector<const Suggestion*> found;
  for (const Suggestion& one : advice.suggestions) {
    if (one.recommended && one.goal == goal && found.size() < advice.top) found.push_back(&one);
  }
  return found;
}

Table suggestion_table(const Advice& advice, std::string_view goal) {
  const bool of_samples = goal == "throughput";
  const bool memory = advice.allocated.has_value();
  Table table{.heading = {"", "step", of_samples ? "per sample" : "change", "between"},
              .rows = {},
              .left = {0}};
  if (memory) table.heading.emplace_back("memory");
  for (std::size_t i = 0; i < 3; ++i) table.left.push_back(table.heading.size() + i);
  table.heading.insert(table.heading.end(), {"sure", "then bound by", ""});
  for (const Suggestion* one : recommended(advice, goal)) {
    std::vector<std::string> row = {
        one->use, to_text(one->step_time), change_from(advice, advice.step_time - one->gain),
        fmt::format("{} to {}", to_text(one->lower), to_text(one->upper))};
    if (memory) row.push_back(bytes_change(advice.allocated, one->allocated));
    row.push_back(one->confidence.word);
    row.emplace_back(to_string(one->path.largest()));
    row.push_back(one->instead_of.empty() ? "" : "instead of " + one->instead_of);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> suggestion_details(const Advice& advice, const Suggestion& one) {
  std::vector<std::string> lines = {"in the whole recording: " + one.summary};
  if (!one.local.lane.empty()) {
    lines.push_back(fmt::format(
        "locally {} has {} -> {} of work per step, {} less; end to end a step gets {} shorter",
        one.local.lane, to_text(one.local.before), to_text(one.local.after),
        to_text(one.local.before - one.local.after), to_text(one.gain)));
  }
  lines.push_back(
      fmt::format("the path was {}; becomes {}", path_text(advice.path), path_text(one.path)));
  lines.push_back(fmt::format("confidence {}: {}", one.confidence.word, one.confidence.reason));
  if (!one.assumptions.empty()) {
    std::string all;
    for (const std::string& assumption : one.assumptions)
      all += (all.empty() ? "" : "; ") + assumption;
    lines.push_back("assumes that " + all);
  }
  return lines;
}

Table memory_choice_table(const Advice& advice) {
  Table table{.heading = {"", "allocated", "change", "reserved", "step", "change", "sure"},
              .rows = {},
              .left = {0, 6}};
  std::vector<const Suggestion*> all = recommended(advice, "memory");
  std::stable_sort(all.begin(), all.end(), [](const Suggestion* a, const Suggestion* b) {
    return a->allocated->count < b->allocated->count;
  });
  for (const Suggestion* one : all) {
    table.rows.push_back({one->use, to_text(*one->allocated),
                          bytes_change(advice.allocated, one->allocated),
                          one->reserved ? to_text(*one->reserved) : "-", to_text(one->step_time),
                          change_from(advice, one->step_time), one->confidence.word});
  }
  return table;
}

Table candidate_table(const Advice& advice) {
  Table table{
      .heading = {"kernels", "factor", "work", "saved there", "step", "change", "of what is saved"},
      .rows = {},
      .left = {0}};
  for (const KernelCandidate& one : advice.candidates) {
    const Nanoseconds saved = one.work - scaled(one.work, one.factor);
    const Nanoseconds gain = advice.step_time - one.step_time;
    table.rows.push_back({one.name, to_fixed(one.factor, 3), to_text(one.work), to_text(saved),
                          to_text(one.step_time), change_from(advice, one.step_time),
                          saved > 0ns ? to_share(std::max(0.0, ratio(gain, saved))) : "-"});
  }
  return table;
}

Table speed_table(const Advice& advice) {
  Table table{.heading = {"made faster alone", "work", "at best", "change", "", "then bound by"},
              .rows = {},
              .left = {0, 4, 5}};
  if (advice.target) {
    table.left.push_back(table.heading.size());
    table.heading.push_back("for " + advice.target->text);
  }
  for (const SpeedUp& one : advice.speed_ups) {
    std::string enough = "not reached in the range tried";
    const bool brings = ratio(advice.step_time - one.at_best, advice.step_time) >= 0.01;
    if (!brings)
      enough = "no effect";
    else if (!one.graded)
      enough = "all or nothing";
    else if (one.enough > 0)
      enough = fmt::format("enough at {} as fast", times_text(one.enough));
    std::vector<std::string> row = {one.name,
                                    one.graded ? to_text(one.work) : "-",
                                    to_text(one.at_best),
                                    change_from(advice, one.at_best),
                                    enough,
                                    brings ? std::string(to_string(one.bound_by)) : ""};
    if (advice.target) {
      std::string needed = "not alone: at best " + to_text(one.at_best);
      if (one.needed && *one.needed == 1)
        needed = "holds already";
      else if (one.needed && (!one.graded || *one.needed <= 0))
        needed = "without any";
      else if (one.needed)
        needed = times_text(std::ceil(*one.needed * 100) / 100) + " as fast";
      row.push_back(needed);
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<std::string> joint_sentences(const Advice& advice) {
  if (!advice.joint) return {};
  const JointAdvice& joint = *advice.joint;
  std::vector<std::string> lines;
  if (joint.members.size() < 2) {
    if (joint.left_out.empty()) return {};
    lines.push_back("no other suggestion adds to " + advice.suggestions[joint.members.front()].use);
    for (const std::string& left : joint.left_out) lines.push_back("leaving out " + left);
    return lines;
  }
  const Nanoseconds as_sum = advice.step_time - joint.sum;
  std::string verdict = fmt::format(
      "{}{} ({}){}, between {} and {}, confidence {} for the least certain",
      to_text(joint.step_time), per_step_text(advice.has_steps),
      change_from(advice, joint.step_time),
      joint.step_time <= 0ns ? "" : ", " + times_as_fast(advice.step_time, joint.step_time),
      to_text(joint.lower), to_text(joint.upper), lowest_confidence(advice));
  const double off = ratio(joint.gain - joint.sum, advice.step_time);
  if (std::abs(off) < 0.005)
    verdict += "; their gains add up";
  else if (as_sum <= 0ns)
    verdict += "; the single gains would add up to more than the whole step";
  else
    verdict += fmt::format("; instead of the {} that the single gains add up to",
                           times_text(ratio(advice.step_time, as_sum)));
  lines.push_back(std::move(verdict));
  for (std::size_t i = 0; i < joint.members.size(); ++i) {
    lines.push_back(fmt::format("{} contributes {} (alone {})", joint.uses[i],
                                to_text(joint.attributed[i]), to_text(joint.alone[i])));
  }
  if (joint.path.total() > 0ns) lines.push_back("the path becomes " + path_text(joint.path));
  if (const Nanoseconds off_order = joint.gain - joint.other_order;
      std::abs(ratio(off_order, advice.step_time)) >= 0.005) {
    lines.push_back("in the other order they save " + to_text(joint.other_order));
  }
  for (const std::string& left : joint.left_out) lines.push_back("leaving out " + left);
  return lines;
}

Table pair_table(const Advice& advice) {
  Table table{.heading = {"two together", "both save", "sum of each alone", ""},
              .rows = {},
              .left = {0, 3}};
  if (!advice.joint || advice.joint->members.size() < 3) return table;
  for (const PairEffect& pair : advice.joint->pairs) {
    std::string why = pair.why;
    if (std::abs(ratio(pair.gain - pair.other_order, advice.step_time)) >= 0.005)
      why += "; in the other order " + to_text(pair.other_order);
    table.rows.push_back(
        {fmt::format("{} + {}", advice.joint->uses[pair.first], advice.joint->uses[pair.second]),
         to_text(pair.gain), to_text(pair.sum), std::move(why)});
  }
  return table;
}

std::string target_sentence(const Advice& advice) {
  if (!advice.target) return {};
  const AdviceTarget& target = *advice.target;
  if (target.holds_now)
    return fmt::format("{} holds already, with {}{}", target.text, to_text(advice.step_time),
                       per_step_text(advice.has_steps));
  std::string reached;
  const auto add = [&](const std::string& what) {
    reached += (reached.empty() ? "" : ", or ") + what;
  };
  for (const Suggestion& one : advice.suggestions) {
    if (one.goal == "time" && one.recommended && one.step_time <= target.step_time) add(one.use);
  }
  if (advice.joint && reached.empty() && advice.joint->step_time <= target.step_time)
    add("what helps most together");
  for (const SpeedUp& one : advice.speed_ups) {
    if (!one.needed) continue;
    add(one.graded && *one.needed > 0
            ? fmt::format("{} {} as fast", one.name, times_text(std::ceil(*one.needed * 100) / 100))
            : "no " + one.title);
  }
  if (advice.curve) return fmt::format("{} {}", target.text, advice.curve->answer_text);
  if (reached.empty()) return target.text + " is not reached by anything that was tried";
  return fmt::format("{} is reached by {}", target.text, reached);
}

std::vector<std::string> not_recommended(const Advice& advice) {
  std::vector<std::string> lines;
  for (const Suggestion& one : advice.suggestions) {
    if (one.recommended) continue;
    std::string line = fmt::format("{}: {}", one.use, one.why_not);
    if (is_member(advice, one)) line += " alone, but see what it adds to the others";
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace foretrace
