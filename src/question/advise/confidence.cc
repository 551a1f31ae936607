#include "question/advise/confidence.h"

#include <fmt/core.h>

#include "analysis/doubt/ledger.h"
#include "job/step_cost.h"

namespace foretrace {
namespace {

/// If more than this share of kernel time was recorded as whole CUDA graphs, every what-if is
/// doubtful.
constexpr double kMuchUnseen = 0.2;

/// Outcomes that a kind counts as having before it was ever compared; see ledger.h.
constexpr int kAssumedOutcomes = 2;
/// Fewest outcomes for more than low confidence: a single one, from some other job, says next to
/// nothing about this job.
constexpr int kFewestOutcomes = 2;
/// Fewest outcomes for high confidence: fewer show that the kind was right elsewhere, not that it
/// is right here.
constexpr int kConvincingOutcomes = 3;
/// Greatest typical error for high confidence, as a share of the step time. Chosen.
constexpr double kGreatestError = 0.2;
/// Fewest measured steps for high confidence; with fewer, their variation is a guess.
constexpr std::size_t kFewestSteps = 2;

}  // namespace

Confidence confidence_of(const AdvisedJob& job, const Suggestion& found) {
  if (!found.doubt.empty()) return {"low", found.doubt};
  const double replay_error = job.baseline.prediction.replay_error;
  if (replay_error > 0.01)
    return {"low", fmt::format("the unmodified replay is {} off", to_share(replay_error))};
  if (found.trust.grade() == Grade::poor) return {"low", trust_sentence(found.trust)};
  if (job.whole_graphs > kMuchUnseen)
    return {"low", to_share(job.whole_graphs) +
                       " of kernel time is that of CUDA graphs whose kernels were not recorded"};
  const ErrorScale error = error_scale(found.use, job.baseline.user_outcomes);
  if (error.outcomes <= kAssumedOutcomes) return {"low", "never compared with an outcome"};
  const std::string& known = error.text;
  if (known_outcomes(found.use, job.baseline.user_outcomes) < kFewestOutcomes)
    return {"low", known + "; that is from one job, which may not be like this one"};
  const Nanoseconds after = scaled(found.upper, 1 / found.samples);
  const Nanoseconds least = job.now() - after;
  if (least <= 0ns) return {"low", known + "; it may also gain nothing"};
  if (!job.baseline.prediction.has_steps)
    return {"medium", known + "; the recording has no steps, so its start and end count, too"};
  if (2 * least < found.gain || error.outcomes < kAssumedOutcomes + kConvincingOutcomes ||
      error.scale > kGreatestError)
    return {"medium", known};
  if (job.baseline.prediction.measured.steps() < kFewestSteps)
    return {"medium", known + "; too few steps were recorded to know how much they vary"};
  return {"high", known};
}

std::string doubt_of(const AdvisedJob& job, const Graph& edited, Nanoseconds gain) {
  const Graph& graph = job.inference.graph;
  const MeasuredSteps steps = measured_steps(graph);
  TaskId longest = kNoTask;
  Nanoseconds most{0};
  for (std::uint32_t i = 0; i < graph.task_count(); ++i) {
    const TaskId id{i};
    const Task& task = graph.task(id);
    if (task.kind != TaskKind::host || !steps.has(task)) continue;
    const Nanoseconds left = edited.removed(id) ? 0ns : edited.task(id).duration;
    if (task.duration - left > most) most = task.duration - left, longest = id;
  }
  if (longest == kNoTask || 2 * most <= gain) return {};
  return fmt::format("most of it is one piece of host work, \"{}\" of {}, which may remain",
                     graph.name(longest), to_text(most));
}

}  // namespace foretrace
