#include "question/advise/joint_advice.h"

#include <algorithm>
#include <bit>
#include <fmt/core.h>

#include "base/threads.h"
#include "foretrace/error.h"
#include "job/step_cost.h"
#include "question/advise/suggestions.h"
#include "scenario/use_text.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxMembers = 4;
/// Gains that differ by less than this share of the step are the same.
constexpr double kSameGain = 0.005;

/// Whether `gain` exceeds the noise of a step as long as `step`.
bool exceeds_noise(const AdvisedJob& job, Nanoseconds gain, Nanoseconds step) {
  return gain > scaled(step, job.noise);
}

/// A setting that was enough for a member alone may be too little in combination: a shorter step
/// needs its data sooner. Returns whether the settings changed.
bool retune(const AdvisedJob& job, std::size_t member, JointAdvice& joint) {
  const std::vector<std::string_view>& tries = advice_policy(joint.uses[member]).tries;
  if (tries.size() < 2) return false;
  std::vector<Nanoseconds> times(tries.size(), Nanoseconds::max());
  on_all_cores(tries.size(), [&](std::size_t i) {
    std::vector<std::string> uses = joint.uses;
    uses[member] = tries[i];
    try {
      times[i] = step_time_with(job, uses);
    } catch (const Error&) {
      // These settings cannot be applied.
    }
  });
  const Nanoseconds best = *std::min_element(times.begin(), times.end());
  if (best == Nanoseconds::max()) return false;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    if (times[i] == Nanoseconds::max() || exceeds_noise(job, times[i] - best, best)) continue;
    const bool other = joint.uses[member] != tries[i];
    joint.uses[member] = tries[i];
    return other;
  }
  return false;
}

/// Finds suggestions that combine: the best one, then repeatedly the one that adds most.
class MemberSearch {
 public:
  MemberSearch(const AdvisedJob& job, const std::vector<Suggestion>& suggestions,
               JointAdvice& joint)
      : job_(job), suggestions_(suggestions), joint_(joint) {}

  void choose() {
    const auto lead =
        std::find_if(suggestions_.begin(), suggestions_.end(),
                     [](const Suggestion& one) { return one.recommended && one.goal == "time"; });
    if (lead == suggestions_.end()) return;
    take({.suggestion = static_cast<std::size_t>(lead - suggestions_.begin()),
          .step_time = lead->step_time});
    std::vector<Addition> others;
    for (std::size_t i = 0; i < suggestions_.size(); ++i) {
      const Suggestion& one = suggestions_[i];
      if (one.goal == "time" && one.fits && !one.is_rejected && i != joint_.members.front())
        others.push_back({.suggestion = i});
    }
    while (!others.empty() && joint_.members.size() < kMaxMembers) {
      replay_additions(others);
      // A suggestion that adds nothing to some members adds nothing to more of them, as long as
      // these do not change.
      std::erase_if(others, [&](const Addition& one) { return leave_out(one); });
      if (others.empty()) break;
      take(others.front());
      others.erase(others.begin());
      if (!retune_all()) continue;
      for (const LeftOut& left : left_out_) others.push_back(left.addition);
      left_out_.clear();
    }
    for (const Addition& one : others)
      left_out_.push_back({one, fmt::format("{} are combined at most", kMaxMembers)});
    report_left_out();
  }

 private:
  struct Addition {
    std::size_t suggestion = 0;
    Nanoseconds step_time{0};  ///< With it and all members.
  };
  struct LeftOut {
    Addition addition;
    std::string why;
  };

  void take(const Addition& one) {
    joint_.members.push_back(one.suggestion);
    joint_.uses.push_back(suggestions_[one.suggestion].use);
    step_time_ = one.step_time;
  }

  /// Replays each of `others` together with the members, and sorts them by step time.
  void replay_additions(std::vector<Addition>& others) const {
    on_all_cores(others.size(), [&](std::size_t i) {
      std::vector<std::string> uses = joint_.uses;
      uses.push_back(suggestions_[others[i].suggestion].use);
      others[i].step_time = step_time_;
      if (!overlap_reason(others[i]).empty()) return;
      try {
        others[i].step_time = step_time_with(job_, uses);
      } catch (const Error&) {
        // The members have left it nothing to do.
      }
    });
    std::stable_sort(others.begin(), others.end(), [](const Addition& a, const Addition& b) {
      return a.step_time < b.step_time;
    });
  }

  /// Says which member applies to the same work; empty if none does.
  std::string overlap_reason(const Addition& one) const {
    for (const std::string& use : joint_.uses) {
      const std::string_view work = common_work(use, suggestions_[one.suggestion].use);
      if (!work.empty()) return fmt::format("{} applies to {}, too", kind_of(use), work);
    }
    return {};
  }

  bool leave_out(const Addition& one) {
    const std::string why = overlap_reason(one);
    if (why.empty() && exceeds_noise(job_, step_time_ - one.step_time, step_time_)) return false;
    left_out_.push_back(
        {one, why.empty() ? fmt::format("adds nothing once {} is done", kind_of(joint_.uses.back()))
                          : why});
    return true;
  }

  bool retune_all() {
    bool other = false;
    for (std::size_t i = 0; i < joint_.members.size(); ++i)
      other = retune(job_, i, joint_) || other;
    if (other) step_time_ = step_time_with(job_, joint_.uses);
    return other;
  }

  void report_left_out() {
    for (const LeftOut& left : left_out_) {
      const Suggestion& one = suggestions_[left.addition.suggestion];
      if (one.recommended)
        joint_.left_out.push_back(fmt::format("{}: {}", kind_of(one.use), left.why));
    }
  }

  const AdvisedJob& job_;
  const std::vector<Suggestion>& suggestions_;
  JointAdvice& joint_;
  std::vector<LeftOut> left_out_;
  Nanoseconds step_time_{0};
};

/// Gains of all sets of members, applied in the order they were chosen; of pairs and of the whole
/// set in reverse order, too.
class SubsetGains {
 public:
  SubsetGains(const AdvisedJob& job, const std::vector<Suggestion>& suggestions,
              const JointAdvice& joint)
      : job_(job),
        uses_(joint.uses),
        gains_(std::size_t{1} << joint.members.size(), 0ns),
        reversed_(gains_) {
    struct Run {
      std::size_t set;
      bool reversed;
    };
    std::vector<Run> runs;
    for (std::size_t set = 1; set < gains_.size(); ++set) {
      const int size = std::popcount(set);
      if (size == 1) {
        const auto member = static_cast<std::size_t>(std::countr_zero(set));
        const Suggestion& alone = suggestions[joint.members[member]];
        gains_[set] = alone.gain;
        if (alone.use == uses_[member]) continue;
      }
      runs.push_back({set, false});
      if (size == 2 || set + 1 == gains_.size()) runs.push_back({set, true});
    }
    on_all_cores(runs.size(), [&](std::size_t i) {
      (runs[i].reversed ? reversed_ : gains_)[runs[i].set] = gain_of(runs[i].set, runs[i].reversed);
    });
  }

  const std::vector<Nanoseconds>& gains() const { return gains_; }
  Nanoseconds gain(std::size_t set) const { return gains_[set]; }
  Nanoseconds reversed(std::size_t set) const { return reversed_[set]; }

 private:
  /// A member that has nothing left to do, because the others did its work, is left out.
  Nanoseconds gain_of(std::size_t set, bool reversed) const {
    std::vector<std::string> uses;
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      if ((set >> i & 1) != 0) uses.push_back(uses_[i]);
    }
    if (reversed) std::reverse(uses.begin(), uses.end());
    while (!uses.empty()) {
      try {
        return job_.now() - step_time_with(job_, uses);
      } catch (const Error& error) {
        const std::string text = error.what();
        const auto refused = std::find_if(uses.begin(), uses.end(), [&](const std::string& use) {
          return text.starts_with(use + ":");
        });
        uses.erase(refused == uses.end() ? uses.end() - 1 : refused);
      }
    }
    return 0ns;
  }

  const AdvisedJob& job_;
  std::vector<std::string> uses_;
  std::vector<Nanoseconds> gains_, reversed_;
};

/// The part of the path that a suggestion shortens most.
PathPart most_relieved_part(const AdvisedJob& job, const Suggestion& one) {
  std::size_t best = 0;
  Nanoseconds most = Nanoseconds::min();
  for (std::size_t i = 0; i < kPathParts; ++i) {
    const Nanoseconds less = job.path.parts[i] - one.path.parts[i];
    if (less > most) most = less, best = i;
  }
  return static_cast<PathPart>(best);
}

std::string pair_reason(const AdvisedJob& job, const Suggestion& a, const Suggestion& b,
                        const PairEffect& pair) {
  if (job.now() <= 0ns) return {};
  const double off =
      static_cast<double>((pair.gain - pair.sum).count()) / static_cast<double>(job.now().count());
  if (std::abs(off) < kSameGain) return "they add up";
  const PathPart first = most_relieved_part(job, a), second = most_relieved_part(job, b);
  if (off > 0) return "one exposes what the other removes";
  if (first == second) return fmt::format("both remove {}", to_string(first));
  const PathPart one = a.path.largest(), other = b.path.largest();
  const std::string waits = fmt::format("once one is done, a step waits for {}", to_string(one));
  return one == other ? waits : fmt::format("{} or {}", waits, to_string(other));
}

void add_pairs(const AdvisedJob& job, const std::vector<Suggestion>& suggestions,
               const SubsetGains& subsets, JointAdvice& joint) {
  for (std::size_t a = 0; a < joint.members.size(); ++a) {
    for (std::size_t b = a + 1; b < joint.members.size(); ++b) {
      const std::size_t set = std::size_t{1} << a | std::size_t{1} << b;
      const Suggestion& first = suggestions[joint.members[a]];
      const Suggestion& second = suggestions[joint.members[b]];
      PairEffect pair{.first = a,
                      .second = b,
                      .gain = subsets.gain(set),
                      .sum = joint.alone[a] + joint.alone[b],
                      .other_order = subsets.reversed(set),
                      .why = {}};
      pair.why = pair_reason(job, first, second, pair);
      joint.pairs.push_back(std::move(pair));
    }
  }
}

void add_figures(const AdvisedJob& job, const std::vector<Suggestion>& suggestions,
                 const SubsetGains& subsets, JointAdvice& joint) {
  joint.gain = subsets.gains().back();
  joint.other_order = subsets.reversed(subsets.gains().size() - 1);
  joint.attributed = shapley(subsets.gains(), joint.members.size());
  for (std::size_t i = 0; i < joint.members.size(); ++i) {
    joint.alone.push_back(subsets.gain(std::size_t{1} << i));
    joint.sum += joint.alone.back();
  }
  joint.step_time = job.now() - joint.gain;
  joint.lower = joint.upper = joint.step_time;
  try {
    const Scenario scenario = scenario_with(joint.uses);
    Edited edited = edited_by(job, scenario, {.reasons = true, .memory = false});
    const Prediction all = predict_edited(job.baseline, job.inference, scenario, edited,
                                          {.memory = false, .trust = false});
    joint.lower = all.lower;
    joint.upper = all.upper;
    joint.path = path_shares(edited.graph, edited.timeline);
  } catch (const Error&) {
    // A member had nothing left to do: the gain above is that of the others.
    joint.path = suggestions[joint.members.front()].path;
  }
  add_pairs(job, suggestions, subsets, joint);
}

}  // namespace

std::vector<Nanoseconds> shapley(const std::vector<Nanoseconds>& gains, std::size_t members) {
  const auto factorial = [](std::size_t n) {
    std::int64_t product = 1;
    for (std::size_t i = 2; i <= n; ++i) product *= static_cast<std::int64_t>(i);
    return product;
  };
  std::vector<Nanoseconds> shares(members, 0ns);
  for (std::size_t i = 0; i < members; ++i) {
    Nanoseconds sum{0};  // Over all orders; divided once, so that little is lost by rounding.
    for (std::size_t set = 0; set < gains.size(); ++set) {
      if ((set >> i & 1) != 0) continue;
      const auto size = static_cast<std::size_t>(std::popcount(set));
      const std::int64_t orders = factorial(size) * factorial(members - size - 1);
      sum += orders * (gains[set | std::size_t{1} << i] - gains[set]);
    }
    shares[i] = sum / factorial(members);
  }
  if (members > 0) {
    Nanoseconds left = gains.back();
    for (const Nanoseconds share : shares) left -= share;
    shares[0] += left;
  }
  return shares;
}

std::optional<JointAdvice> joint_advice(const AdvisedJob& job,
                                        const std::vector<Suggestion>& suggestions) {
  JointAdvice joint;
  MemberSearch(job, suggestions, joint).choose();
  if (joint.members.empty()) return std::nullopt;
  const Suggestion& lead = suggestions[joint.members.front()];
  if (joint.members.size() == 1) {
    joint.gain = joint.sum = joint.other_order = lead.gain;
    joint.attributed = joint.alone = {lead.gain};
    joint.step_time = lead.step_time;
    joint.lower = lead.lower;
    joint.upper = lead.upper;
    joint.path = lead.path;
    return joint;
  }
  add_figures(job, suggestions, SubsetGains(job, suggestions, joint), joint);
  return joint;
}

}  // namespace foretrace
