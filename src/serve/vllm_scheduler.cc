// vLLM V1 (vllm/v1/core/sched/scheduler.py, early 2026): a step has a budget of tokens, running
// requests take from it first, in order, then waiting ones. There are no phases: each request
// catches up with its tokens, so chunks of prompts and single tokens share steps.
//
// Not modelled: priorities, remote caches, adapters, speculation.

#include <algorithm>

#include "serve/engine.h"

namespace foretrace::serve {
namespace {

class VllmScheduler final : public Scheduler {
 public:
  void plan(Engine& engine, std::vector<Part>& parts) override {
    const EngineSettings& settings = engine.settings();
    budget_ = settings.max_tokens - engine.finishing();
    const bool preempted = plan_running(engine, parts);
    while (!preempted && !engine.waiting.empty() && engine.room() > 0 && budget_ > 0) {
      const Sequence& next = *engine.waiting.front();
      const std::int64_t missing = next.total() - engine.hit(next);
      std::int64_t tokens = limited(settings, missing);
      if (!settings.is_chunked && tokens > budget_) break;
      tokens = std::min(tokens, budget_);
      // The whole prompt must fit, not only its first chunk (scheduler_reserve_full_isl).
      if (!engine.fits(next, next.total())) break;
      Sequence& started = engine.admit(engine.hit(next) + tokens);
      parts.push_back({&started, tokens});
      budget_ -= tokens;
    }
  }

  bool keeps_waiting(const Engine& engine) const override {
    return engine.room() <= 0 ||
           !engine.fits(*engine.waiting.front(), engine.waiting.front()->total());
  }

  std::vector<std::int64_t> graph_sizes(const EngineSettings& settings) const override {
    const std::int64_t most =
        std::min({2 * settings.max_sequences, settings.max_graph, settings.max_tokens});
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {1, 2, 4}) {
      if (size <= most) sizes.push_back(size);
    }
    for (std::int64_t size = 8; size <= most; size += size < 256 ? 8 : 16) sizes.push_back(size);
    return sizes;
  }

  bool captures_prompts() const override { return true; }

 private:
  static std::int64_t limited(const EngineSettings& settings, std::int64_t tokens) {
    return settings.prefill_threshold > 0 ? std::min(tokens, settings.prefill_threshold) : tokens;
  }

  /// Returns whether a request was preempted, the last running one first.
  bool plan_running(Engine& engine, std::vector<Part>& parts) {
    bool preempted = false;
    for (std::size_t i = 0; i < engine.running.size() && budget_ > 0; ++i) {
      Sequence& sequence = *engine.running[i];
      const std::int64_t tokens =
          std::min(limited(engine.settings(), sequence.total() - sequence.computed), budget_);
      if (tokens <= 0) continue;
      while (i < engine.running.size() && !engine.grow(sequence, sequence.computed + tokens)) {
        engine.preempt(engine.running.size() - 1, true);
        preempted = true;
      }
      if (i >= engine.running.size()) break;  // It was the last one itself.
      parts.push_back({&sequence, tokens});
      budget_ -= tokens;
    }
    return preempted;
  }

  std::int64_t budget_ = 0;
};

}  // namespace

std::unique_ptr<Scheduler> make_vllm_scheduler(const EngineSettings& /*settings*/) {
  return std::make_unique<VllmScheduler>();
}

}  // namespace foretrace::serve
