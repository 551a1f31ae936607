// SGLang (srt/managers/schedule_policy.py, schedule_batch.py, 2026): if a batch of prompts can be
// made, the step computes prompts only; else each running request decodes a token. At most one
// prompt is cut, and goes on first.
//
// Admission expects that running requests still produce a share of their outputs. The share falls
// with each decoding step, and rises when requests must be retracted for lack of memory.
//
// Not modelled: order by longest prefix, mixed chunks, speculation.

#include <algorithm>

#include "serve/engine.h"
#include "serve/sglang_ratio.h"

namespace foretrace::serve {
namespace {

constexpr std::int64_t kMaxPrefill = 16384, kClip = 4096;

class SglangScheduler final : public Scheduler {
 public:
  explicit SglangScheduler(const EngineSettings& settings)
      : scale_(settings.conservativeness), ratio_(std::min(1., kStartRatio * scale_)) {}

  void plan(Engine& engine, std::vector<Part>& parts) override {
    if (engine.running.empty()) ratio_ = std::min(1., kStartRatio * scale_);
    plan_prompts(engine, parts);
    if (!parts.empty()) return;
    retract(engine);
    for (const auto& sequence : engine.running) {
      engine.grow(*sequence, sequence->computed + 1);
      parts.push_back({sequence.get(), 1});
    }
  }

  bool keeps_waiting(const Engine& engine) const override { return engine.room() <= 0; }

  void decoded(std::int64_t count) override { ratio_ = decayed_ratio(ratio_, count, scale_); }

  std::vector<std::int64_t> graph_sizes(const EngineSettings& settings) const override {
    std::vector<std::int64_t> sizes;
    for (const std::int64_t size : {1, 2, 4, 8, 12}) {
      if (size <= settings.max_graph) sizes.push_back(size);
    }
    for (std::int64_t size = 16; size <= settings.max_graph;
         size += size < 256 ? 8 : (size < 512 ? 16 : 32))
      sizes.push_back(size);
    return sizes;
  }

 private:
  static std::int64_t expected(const Sequence& sequence) {
    return std::min(sequence.output - sequence.produced, kClip);
  }

  void plan_prompts(Engine& engine, std::vector<Part>& parts) {
    const EngineSettings& settings = engine.settings();
    std::int64_t inputs = std::max(kMaxPrefill, settings.max_tokens);
    std::int64_t chunk = settings.is_chunked ? settings.max_tokens : inputs;
    double memory = static_cast<double>(engine.blocks().unused() * settings.block);
    for (const auto& sequence : engine.running) {
      memory -= static_cast<double>(expected(*sequence)) * ratio_;
      if (sequence->is_decoding()) continue;
      const std::int64_t tokens = cut(settings, sequence->total() - sequence->computed, chunk);
      engine.grow(*sequence, sequence->computed + tokens);
      parts.push_back({sequence.get(), tokens});
      chunk -= tokens, inputs -= tokens;
      if (sequence->computed + tokens < sequence->total()) return;
    }
    while (!engine.waiting.empty() && engine.room() > 0 && chunk > 0 && inputs > 0) {
      const Sequence& next = *engine.waiting.front();
      const std::int64_t hit = engine.hit(next), missing = next.total() - hit;
      const std::int64_t asked =
          missing + expected(next) + settings.block + settings.held_blocks * settings.block;
      if (static_cast<double>(asked) > memory) return;
      const std::int64_t tokens = cut(settings, missing, chunk);
      if (tokens == 0 || !engine.fits(next, next.total())) return;
      Sequence& started = engine.admit(next.total());
      parts.push_back({&started, tokens});
      memory -= static_cast<double>(asked), chunk -= tokens, inputs -= tokens;
      if (tokens < missing) return;
    }
  }

  static std::int64_t cut(const EngineSettings& settings, std::int64_t missing,
                          std::int64_t chunk) {
    return missing <= chunk ? missing : chunk / settings.block * settings.block;
  }

  /// Takes back requests with the fewest outputs, the longest prompt first among equal ones, until
  /// each of the others can have a token.
  void retract(Engine& engine) {
    const auto lacks = [&] {
      std::int64_t more = 0;
      for (const auto& sequence : engine.running)
        more += engine.blocks_to_hold(*sequence, sequence->computed + 1) - sequence->blocks;
      return more > engine.blocks().unused();
    };
    if (!lacks()) return;
    while (engine.running.size() > 1 && lacks()) {
      const auto least = std::ranges::min_element(engine.running, [](const auto& a, const auto& b) {
        return a->produced != b->produced ? a->produced < b->produced : a->input > b->input;
      });
      engine.preempt(static_cast<std::size_t>(least - engine.running.begin()), false);
    }
    std::int64_t produced = 0, outputs = 0;
    for (const auto& sequence : engine.running)
      produced += sequence->produced, outputs += sequence->output;
    ratio_ = retracted_ratio(produced, static_cast<std::int64_t>(engine.running.size()), outputs);
  }

  double scale_, ratio_;
};

}  // namespace

std::unique_ptr<Scheduler> make_sglang_scheduler(const EngineSettings& settings) {
  return std::make_unique<SglangScheduler>(settings);
}

}  // namespace foretrace::serve
