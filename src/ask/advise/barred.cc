#include "ask/advise/barred.h"

#include <algorithm>
#include <fmt/core.h>

#include "ask/advise/suggestions.h"
#include "ask/predict/lever.h"
#include "base/threads.h"
#include "foretrace/simulate.h"

namespace foretrace {
namespace {

std::string worst_text(const Trust& trust) {
  for (const TrustReason& reason : trust.reasons) {
    if (reason.grade == trust.grade()) return reason.text;
  }
  return {};
}

/// Returns why a suggestion that captures CUDA graphs cannot work; a graph replays the captured
/// work with the shapes it had then. Empty if nothing prevents it.
std::string why_not_captured(const AdvisedJob& job, const Suggestion& made) {
  const bool captures = made.use.starts_with("cuda_graphs") ||
                        made.use.find("mode=reduce-overhead") != std::string::npos;
  return captures ? job.hinders_capture : std::string();
}

/// The names of the levers that a suggestion acts on; empty if there is none.
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

Ceiling ceiling_of(const AdvisedJob& job, const std::vector<Lever>& all,
                   const std::vector<std::string_view>& levers) {
  Graph edited = job.inference.graph.clone();
  Ceiling ceiling;
  for (const Lever& lever : all) {
    if (std::find(levers.begin(), levers.end(), lever.name) == levers.end()) continue;
    pull(edited, lever, 0);
    ceiling.titles += (ceiling.titles.empty() ? "" : " and ") + lever.title;
  }
  ceiling.step_time = std::min(job.now(), replayed_step_time(edited));
  return ceiling;
}

/// Returns why the predicted gain is impossible: removing all the work the suggestion acts on would
/// gain less. Empty if it is possible.
std::string why_refuted(const AdvisedJob& job, const Ceilings& ceilings, const Suggestion& made) {
  const std::vector<std::string_view> levers = levers_of(made.use);
  if (made.goal != "time" || levers.empty()) return {};
  const Ceiling& ceiling = ceilings.at(levers);
  if (made.step_time + scaled(job.now(), job.noise) >= ceiling.step_time) return {};
  return fmt::format("would gain more than if {} took no time at all, which leaves {} a step",
                     ceiling.titles, to_text(ceiling.step_time));
}

}  // namespace

Ceilings ceilings_of(const AdvisedJob& job, const std::vector<Suggestion>& made) {
  Ceilings ceilings;
  for (const Suggestion& one : made) {
    std::vector<std::string_view> levers = levers_of(one.use);
    if (one.goal == "time" && !levers.empty() && job.matters(one.gain))
      ceilings.try_emplace(std::move(levers));
  }
  if (ceilings.empty()) return ceilings;
  const std::vector<Lever> all = all_levers(job.inference.graph);
  on_all_cores(ceilings.size(), [&](std::size_t i) {
    auto& [levers, ceiling] = *std::next(ceilings.begin(), static_cast<std::ptrdiff_t>(i));
    ceiling = ceiling_of(job, all, levers);
  });
  return ceilings;
}

std::string why_barred(const AdvisedJob& job, const Ceilings& ceilings, const Suggestion& made) {
  if (std::string why = why_not_captured(job, made); !why.empty()) return why;
  if (!job.matters(made.gain)) return {};
  for (const Trust* trust : {&made.trust, &job.trust}) {
    if (trust->grade() == Grade::poor) return "not reliable: " + worst_text(*trust);
  }
  return why_refuted(job, ceilings, made);
}

}  // namespace foretrace
