#include "scenario/advise/barred.h"

#include <algorithm>
#include <vector>

#include "foretrace/simulate.h"
#include "scenario/advise/lever.h"
#include "scenario/advise/suggestions.h"

namespace foretrace {
namespace {

std::string worst_text(const Trust& trust) {
  for (const TrustReason& reason : trust.reasons) {
    if (reason.grade == trust.grade()) return reason.text;
  }
  return {};
}

/// CUDA graphs replay what was captured, with the shapes of then.
std::string why_not_captured(const AdvisedJob& job, const Suggestion& made) {
  const bool captures = made.use.starts_with("cuda_graphs") ||
                        made.use.find("mode=reduce-overhead") != std::string::npos;
  return captures ? job.hinders_capture : std::string();
}

/// The names of the levers that a suggestion acts on; empty where no lever stands for it.
std::vector<std::string_view> levers_of(std::string_view use) {
  struct Hold {
    std::string_view hold, lever;
  };
  constexpr Hold kHolds[] = {
      {"launches", "launches"}, {"fusion", "launches"},     {"fusion", "kernels"},
      {"waits", "syncs"},       {"input copies", "copies"}, {"pinning", "copies"},
      {"loading", "input"},     {"precision", "kernels"},   {"layout", "kernels"}};
  std::vector<std::string_view> levers;
  for (const std::string_view held : worth_of(use).holds) {
    for (const Hold& one : kHolds) {
      if (one.hold == held) levers.push_back(one.lever);
    }
  }
  return levers;
}

/// Steps cannot get shorter than they are with all that the suggestion acts on gone.
std::string why_refuted(const AdvisedJob& job, const Suggestion& made) {
  const std::vector<std::string_view> levers = levers_of(made.use);
  if (made.goal != "time" || levers.empty()) return {};
  Graph edited = job.inference.graph.clone();
  std::string titles;
  for (Lever& lever : all_levers(job.inference.graph)) {
    if (std::find(levers.begin(), levers.end(), lever.name) == levers.end()) continue;
    pull(edited, lever, 0);
    titles += (titles.empty() ? "" : " and ") + lever.title;
  }
  const Nanoseconds ceiling =
      step_times(edited, simulate(edited, {.reasons = false, .memory = false})).step_time;
  if (made.step_time + scaled(job.now(), job.noise) >= std::min(ceiling, job.now())) return {};
  return "would bring more than " + titles + " in no time at all, which is " +
         to_text(std::min(ceiling, job.now())) + " a step";
}

}  // namespace

std::string why_barred(const AdvisedJob& job, const Suggestion& made) {
  if (std::string why = why_not_captured(job, made); !why.empty()) return why;
  if (!job.matters(made.gain)) return {};
  for (const Trust* trust : {&made.trust, &job.trust}) {
    if (trust->grade() == Grade::poor) return "not to be relied on: " + worst_text(*trust);
  }
  return why_refuted(job, made);
}

}  // namespace foretrace
