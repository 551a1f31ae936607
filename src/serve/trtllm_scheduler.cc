// TensorRT-LLM (_torch/pyexecutor/scheduler.py): a capacity scheduler admits requests by blocks, a
// second one puts all that decode into the step and then prompts while its tokens last.
//
//     all     a request reserves its blocks to its end (GUARANTEED_NO_EVICT)
//     next    it reserves those of its next step (MAX_UTILIZATION); the last one pauses if they
//     lack
//
// Not modelled: equal progress of chunks, attention data parallelism, reuse of partial blocks.

#include <algorithm>

#include "serve/engine.h"

namespace foretrace::serve {
namespace {

class TrtllmScheduler final : public Scheduler {
 public:
  void plan(Engine& engine, std::vector<Part>& parts) override {
    const EngineSettings& settings = engine.settings();
    std::int64_t budget = settings.max_tokens - engine.finishing();
    for (std::size_t i = 0; i < engine.running.size() && budget > 0; ++i) {
      Sequence& sequence = *engine.running[i];
      if (!sequence.is_decoding()) continue;
      if (!make_room(engine, i)) break;
      parts.push_back({&sequence, 1});
      --budget;
    }
    for (const auto& sequence : engine.running) {
      if (sequence->is_decoding()) continue;
      if (!add_prompt(settings, *sequence, budget, parts)) return;
    }
    start_waiting(engine, budget, parts);
  }

  bool keeps_waiting(const Engine& engine) const override {
    const Sequence& next = *engine.waiting.front();
    return engine.room() <= 0 || !engine.fits(next, reserved(engine.settings(), next));
  }

  std::vector<std::int64_t> graph_sizes(const EngineSettings& settings) const override {
    const std::int64_t most = std::min(settings.max_sequences, settings.max_graph);
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {1, 2, 4}) {
      if (size <= most) sizes.push_back(size);
    }
    for (std::int64_t size = 8; size <= most; size = size < 128 ? size + 8 : 2 * size)
      sizes.push_back(size);
    return sizes;
  }

 private:
  static void start_waiting(Engine& engine, std::int64_t budget, std::vector<Part>& parts) {
    const EngineSettings& settings = engine.settings();
    while (!engine.waiting.empty() && engine.room() > 0) {
      const Sequence& next = *engine.waiting.front();
      if (!engine.fits(next, reserved(settings, next))) break;
      const std::int64_t missing = next.total() - engine.hit(next);
      if (budget <= 0 || (!settings.is_chunked && missing > budget)) break;
      if (settings.is_chunked && chunk_of(settings, missing, budget) == 0) break;
      Sequence& started = engine.admit(reserved(settings, next));
      if (!add_prompt(settings, started, budget, parts)) break;
    }
  }

  static std::int64_t reserved(const EngineSettings& settings, const Sequence& sequence) {
    return settings.reserve == "all" ? sequence.input + sequence.output : sequence.total();
  }

  static std::int64_t chunk_of(const EngineSettings& settings, std::int64_t missing,
                               std::int64_t budget) {
    return missing <= budget ? missing : budget / settings.block * settings.block;
  }

  /// Returns false if the step is full.
  static bool add_prompt(const EngineSettings& settings, Sequence& sequence, std::int64_t& budget,
                         std::vector<Part>& parts) {
    const std::int64_t missing = sequence.total() - sequence.computed;
    if (!settings.is_chunked && missing > budget) return false;
    const std::int64_t tokens = chunk_of(settings, missing, budget);
    if (tokens <= 0) return false;
    parts.push_back({&sequence, tokens});
    budget -= tokens;
    return tokens == missing;
  }

  /// Blocks for the next token of running request `i`; pauses the last ones. Returns false if it is
  /// paused itself.
  static bool make_room(Engine& engine, std::size_t i) {
    Sequence& sequence = *engine.running[i];
    while (!engine.grow(sequence, sequence.computed + 1)) {
      engine.preempt(engine.running.size() - 1, true);
      if (i >= engine.running.size()) return false;
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_trtllm_scheduler(const EngineSettings& /*settings*/) {
  return std::make_unique<TrtllmScheduler>();
}

}  // namespace foretrace::serve
