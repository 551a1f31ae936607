// Describes what the loader did.

#include "transform/input/loader.h"

namespace foretrace {
namespace {

void assume_workers(const LoaderSettings& settings, const LoaderTally& tally, Effect& effect) {
  const auto assume = [&](const std::string& text) { effect.assumptions.push_back(text); };
  assume("the workers have started and are evenly staggered");
  if (settings.prep_rates.empty()) {
    assume(
        "loading a batch takes a worker " +
        std::string(settings.batch_time ? "the time given" : "what it took the training thread") +
        (settings.work_factor == 1 ? "" : " times " + to_text(settings.work_factor)));
  } else {
    assume("all workers together prepare as many samples a second as prep_rates says");
  }
  if (tally.slowed > 0) {
    assume("other host work takes " + to_text(settings.host_factor) +
           " times as long beside busy workers (host_factor, fitted)");
  }
  if (tally.shares_cores) {
    assume("workers and the threads of the training process get equal parts of " +
           to_text(*settings.cores_of_job()) +
           " cores when more of them are busy; a thread that waits for the device sleeps");
  }
  if (tally.largest.count > 0) {
    const Bytes ahead = times(tally.largest, settings.workers * settings.prefetch_factor);
    assume("host memory has room for up to " + to_text(ahead) + " of loaded batches");
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
    effect.summary = std::to_string(n) + (n == 1 ? " batch" : " batches") + " of " +
                     to_text(scaled(tally.work, settings.work_factor) / n) + " loaded by " +
                     counted(static_cast<std::size_t>(settings.workers), "worker") +
                     "; the training thread keeps " + to_text(tally.hand_over / n) + " for each";
  }
  if (settings.reads()) effect.summary += "; " + bottleneck(times) + " is what bounds a step";
  if (settings.workers > 0) assume_workers(settings, tally, effect);
  assume_reading(settings, effect);
}

}  // namespace foretrace
