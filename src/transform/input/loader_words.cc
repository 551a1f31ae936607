// Describes what the loader did.

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "transform/input/loader.h"

namespace foretrace {
namespace {

void assume_workers(const LoaderSettings& settings, const LoaderTally& tally, Effect& effect) {
  const auto assume = [&](const std::string& text) { effect.assumptions.push_back(text); };
  assume("the workers have started and are evenly staggered");
  if (settings.prep_rates.empty()) {
    assume(fmt::format(
        "loading a batch takes a worker {}{}",
        settings.batch_time ? "the time given" : "what it took the training thread",
        settings.work_factor == 1 ? "" : fmt::format(" times {}", to_text(settings.work_factor))));
  } else {
    assume("all workers together prepare as many samples a second as prep_rates says");
  }
  if (tally.slowed > 0) {
    assume(fmt::format(
        "other host work takes {} times as long beside busy workers (host_factor, fitted)",
        to_text(settings.host_factor)));
  }
  if (tally.shares_cores) {
    assume(
        fmt::format("workers and the threads of the training process get equal parts of {} cores "
                    "when more of them are busy; a thread that waits for the device sleeps",
                    to_text(*settings.cores_of_job())));
  }
  if (tally.largest.count > 0) {
    const Bytes ahead = times(tally.largest, settings.workers * settings.prefetch_factor);
    assume(fmt::format("host memory has room for up to {} of loaded batches", to_text(ahead)));
  }
}

void assume_reading(const LoaderSettings& settings, Effect& effect) {
  if (settings.dataset_bytes.count == 0) return;
  const auto assume = [&](const std::string& text) { effect.assumptions.push_back(text); };
  if (settings.set.policy != "none") {
    assume("caches are as they are after the first epoch, and every epoch has a new random order");
  }
  if (settings.reads() && !settings.batch_time && settings.prep_rates.empty()) {
    assume("what was recorded as loading is preparation alone: the data it read was cached");
  }
  if (settings.set.jobs > 1 && !settings.coordinated && settings.set.policy == "page_cache") {
    assume(
        "each job reads in its own order; 8 jobs read 6.3 times as much as one by the formula with "
        "35 % cached, 7.1 times was measured (Mohan et al., VLDB'21)");
  }
  if (settings.coordinated && settings.set.jobs > 1) {
    assume("the jobs keep pace with each other, and batches are staged in memory of the host");
  }
}

/// Fewest threads of a process whose ops use several.
constexpr std::int64_t kFewestThreads = 2;

/// Ops of PyTorch run on all cores of a process that trains and on one of a worker. At worst they
/// used all cores well, and all workers together load no faster.
void doubt_threads(const LoaderSettings& settings, const LoaderTally& tally,
                   const StageTimes& times, Effect& effect) {
  const bool is_given = settings.batch_time || !settings.prep_rates.empty();
  if (settings.workers == 0 || is_given || settings.work_factor != 1) return;
  if (2 * tally.ops <= tally.work) return;
  LoaderSettings worst = settings;
  worst.work_factor = static_cast<double>(std::max(settings.workers, kFewestThreads));
  effect.slower = ratio(stage_times(worst, times, tally.work_of_step(worst)).fetch, times.fetch);
  if (effect.slower <= 1) return;
  effect.doubts.push_back(fmt::format(
      "{} of loading is ops of PyTorch, which use all cores in the process that trains but one "
      "thread in a worker, so this is a lower bound; work_factor says how many times as long a "
      "worker takes",
      to_share(ratio(tally.ops, tally.work))));
}

}  // namespace

CpuWork LoaderTally::work_of_step(const LoaderSettings& settings) const {
  const double all = static_cast<double>(std::max<std::size_t>(steps * threads, 1));
  const double factor = settings.workers > 0 ? settings.work_factor : 1;
  return {.loading = scaled(work, factor * cost_of_batch(settings).part / all),
          .host = scaled(host, 1 / all),
          .batches = static_cast<double>(batches) / all};
}

void describe_loading(const LoaderSettings& settings, const LoaderTally& tally,
                      const StageTimes& times, Effect& effect) {
  const auto n = static_cast<std::int64_t>(tally.batches);
  if (settings.workers == 0) {
    effect.summary = "the training thread loads its batches itself";
  } else {
    effect.summary =
        fmt::format("{} of {} loaded by {}; the training thread keeps {} for each",
                    counted(n, "batch"), to_text(scaled(tally.work, settings.work_factor) / n),
                    counted(settings.workers, "worker"), to_text(tally.hand_over / n));
  }
  if (settings.reads())
    effect.summary += fmt::format("; {} is what bounds a step", bottleneck(times));
  if (settings.workers > 0) assume_workers(settings, tally, effect);
  doubt_threads(settings, tally, times, effect);
  assume_reading(settings, effect);
}

}  // namespace foretrace
