#include "foretrace/ask/size.h"

#include <cmath>
#include <fmt/core.h>

#include "ask/job/job.h"
#include "ask/predict/baseline.h"
#include "ask/predict/trust.h"
#include "ask/size/batches.h"
#include "base/wording.h"
#include "foretrace/error.h"
#include "plan/size.h"
#include "transform/parallel/gradients.h"

namespace foretrace {
namespace {

/// Adds the parts of a step, and as overhead the time in which no kernel computes.
void add_parts(const Breakdown& step, SizingReport& report) {
  report.compute = step.compute;
  report.overhead = Nanoseconds{0};
  const std::pair<const char*, Nanoseconds> parts[] = {{"communication", step.communication},
                                                       {"copies", step.copy},
                                                       {"input", step.input},
                                                       {"host", step.host},
                                                       {"idle", step.idle}};
  for (const auto& [name, time] : parts) {
    report.parts.emplace_back(name, time);
    *report.overhead += time;
  }
}

void read_trace(const SizeQuestion& question, SizingReport& report) {
  const Job job = read_job(question.trace, {.reading = question.reading});
  const Inference& inference = only_rank(job).inference;
  const Baseline baseline = baseline_of(inference);
  report.trace = question.trace;
  report.trust = trust_of_recording(baseline.prediction, AnswerAbout::changes);
  report.notes = inference.notes;
  add_parts(baseline.prediction.baseline_breakdown, report);
  if (*report.compute <= 0ns) throw Error(question.trace + ": no kernel of a step computes");
  if (question.server.bytes_per_second <= 0 || question.model) return;
  try {
    report.model =
        total_bytes(find_gradients(inference.graph, baseline.replayed, {}).passes.back());
  } catch (const Error&) {
    throw Error("--model-bytes: must be given, as the trace does not show its gradients");
  }
  report.assumptions.emplace_back("the model is as large as the gradients of a recorded step");
}

void size_gpus(const SizeQuestion& question, SizingReport& report) {
  const double share = report.overhead_share();
  if (share > 0) report.speedup_limit = (1 + share) / share;
  if (question.speedup) {
    report.gpus_for_speedup = gpus_for_speedup(share, *question.speedup);
    if (!report.gpus_for_speedup)
      throw Error(
          fmt::format("--speedup: must be below {}, the limit of any number of GPUs, got {}",
                      to_fixed(*report.speedup_limit, 2), to_text(*question.speedup)));
  }
  if (question.efficiency) {
    const double most = gpus_for_efficiency(share, *question.efficiency);
    if (std::isfinite(most)) report.gpus_for_efficiency = most;
  }
  for (const std::int64_t gpus : question.gpus) {
    const auto count = static_cast<double>(gpus);
    SizedCount& sized = report.counts.emplace_back();
    sized.gpus = gpus;
    sized.speedup = speedup_of(share, count);
    sized.efficiency = sized.speedup / count;
    if (question.efficiency) {
      const double allowed = overhead_allowed(*question.efficiency, count);
      if (std::isfinite(allowed)) sized.overhead_allowed = allowed;
    }
    if (report.model)
      sized.servers = static_cast<std::int64_t>(
          std::ceil(servers_for(*report.model, gpus, question.server, *report.compute)));
  }
  report.assumptions.emplace_back(
      "GPUs divide the computation of a step, and each has the whole overhead");
}

void check_question(const SizeQuestion& question) {
  const bool has_numbers = question.compute || question.overhead;
  if (!question.trace.empty() && has_numbers)
    throw Error(
        "--compute and --overhead: must not be given together with a trace, which has its "
        "own");
  if (question.trace.empty() && !has_numbers && question.layers.empty())
    throw Error("plan size: which TRACE? Without one, give --compute and --overhead, or --layers");
  if (has_numbers && (!question.compute || *question.compute <= 0ns))
    throw Error("--compute: must be above 0, the time of a step's kernels on one GPU");
  if (question.overhead && *question.overhead < 0ns)
    throw Error("--overhead: must be at least 0, got " + to_text(*question.overhead));
  if (question.speedup && !(*question.speedup >= 1))
    throw Error("--speedup: must be at least 1, got " + to_text(*question.speedup));
  if (question.efficiency && !(*question.efficiency > 0 && *question.efficiency <= 1))
    throw Error("--efficiency: must be above 0 and at most 1, got " +
                to_text(*question.efficiency));
  if (question.model && question.server.bytes_per_second <= 0)
    throw Error("--server-bandwidth: must be given with --model-bytes");
}

}  // namespace

SizingReport size_job(const SizeQuestion& question) {
  check_question(question);
  SizingReport report{.speedup = question.speedup,
                      .efficiency = question.efficiency,
                      .model = question.model,
                      .server = question.server};
  if (!question.trace.empty()) {
    read_trace(question, report);
  } else if (question.compute) {
    report.compute = question.compute, report.overhead = question.overhead.value_or(0ns);
    if (question.server.bytes_per_second > 0 && !question.model)
      throw Error("--model-bytes: must be given with --server-bandwidth where there is no trace");
  }
  if (report.compute) size_gpus(question, report);
  if (!question.layers.empty()) size_batches(question, report);
  return report;
}

}  // namespace foretrace
