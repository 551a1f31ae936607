#include "serve/engine.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"

namespace foretrace::serve {
namespace {

const SchedulerEntry& scheduler_named(std::string_view name) {
  for (const SchedulerEntry& entry : schedulers()) {
    if (entry.name == name) return entry;
  }
  std::string names;
  for (const SchedulerEntry& entry : schedulers())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  throw Error(fmt::format("scheduler: must be one of {}, got \"{}\"", names, name));
}

}  // namespace

const std::vector<SchedulerEntry>& schedulers() {
  static const std::vector<SchedulerEntry> entries = {
#define SCHEDULER(name, tokens, sequences, block, graph, chunked, summary) \
  {#name, summary, tokens, sequences, block, graph, chunked, make_##name##_scheduler},
#include "serve/schedulers.def"
#undef SCHEDULER
  };
  return entries;
}

void EngineSettings::describe(Fields& fields) {
  constexpr std::int64_t kMax = 1 << 24;
  std::vector<std::string_view> names;
  for (const SchedulerEntry& entry : schedulers()) names.push_back(entry.name);
  fields.choice("scheduler", scheduler, names, "Whose rules the engine has");
  fields.integer("max_num_batched_tokens", max_tokens, "Tokens of a step; 0: the engine's default",
                 0, kMax);
  fields.integer("max_num_seqs", max_sequences, "Requests that run at a time; 0: its default", 0,
                 kMax);
  fields.integer("max_model_len", max_length, "Tokens of a request; 0: the model's", 0, kMax);
  fields.integer("long_prefill_token_threshold", prefill_threshold,
                 "Tokens of one prompt in a step; 0: no limit", 0, kMax);
  fields.choice("chunked_prefill", chunked, {"default", "on", "off"}, "Prompts may be cut");
  fields.integer("block_size", block, "Tokens of a block; 0: its default", 0, 1 << 16);
  fields.integer("num_blocks", blocks, "Blocks; 0: what memory holds", 0);
  fields.integer("max_capture_size", max_graph, "Largest captured size; 0: its default, -1: none",
                 -1, kMax);
  fields.number("prefix_hits", hit_share, "Share of a prompt that the prefix cache holds", 0, 1);
  fields.flag("overlapped", overlapped, "The host prepares a step while the device computes");
  fields.choice("reserve", reserve, {"all", "next"},
                "TensorRT-LLM: blocks that a request reserves, to its end or for its next step");
  fields.integer("stream_interval", stream, "Tokens of the first chunk that a client gets", 1,
                 kMax);
  fields.number("conservativeness", conservativeness,
                "SGLang: factor of the outputs that admission expects", 0.01, 10);
}

EngineSettings with_defaults(EngineSettings settings) {
  const SchedulerEntry& entry = scheduler_named(settings.scheduler);
  settings.is_chunked = settings.chunked == "default" ? entry.is_chunked : settings.chunked == "on";
  if (settings.max_sequences == 0) settings.max_sequences = entry.max_sequences;
  if (settings.max_tokens == 0) settings.max_tokens = entry.max_tokens;
  if (settings.block == 0) settings.block = entry.block;
  if (settings.max_graph == 0) settings.max_graph = entry.max_graph;
  return settings;
}

std::vector<std::int64_t> graph_sizes(const EngineSettings& settings) {
  return scheduler_named(settings.scheduler).make(settings)->graph_sizes(settings);
}

std::int64_t padded(const std::vector<std::int64_t>& sizes, std::int64_t tokens) {
  const auto size = std::ranges::lower_bound(sizes, tokens);
  return size == sizes.end() ? 0 : *size;
}

Engine::Engine(EngineSettings settings)
    : settings_(std::move(settings)),
      blocks_(settings_.blocks),
      scheduler_(scheduler_named(settings_.scheduler).make(settings_)),
      graph_sizes_(scheduler_->graph_sizes(settings_)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine::~Engine() = default;

void Engine::submit(std::unique_ptr<Sequence> sequence) { waiting.push_back(std::move(sequence)); }

void Engine::plan(std::vector<Part>& parts) {
  parts.clear();
  if (running.empty()) release_finished();  // No step follows in which they could be computed.
  scheduler_->plan(*this, parts);
}

StepWork Engine::work_of(const std::vector<Part>& parts) const {
  StepWork work;
  for (const auto& [sequence, tokens] : parts) {
    if (sequence->computed + tokens == sequence->total()) ++work.sampled;
    const auto n = static_cast<double>(tokens), past = static_cast<double>(sequence->computed);
    if (sequence->is_decoding()) {
      ++work.sequences, work.context += past + 1;
    } else {
      work.prompt_tokens += n, work.prompt_context += past;
      work.prompt_pairs += n * past + n * (n + 1) / 2;
    }
  }
  work.sequences += static_cast<double>(finishing());
  work.rows = work.tokens();
  if (work.prompt_tokens == 0 || scheduler_->captures_prompts()) {
    const std::int64_t size = padded(graph_sizes_, static_cast<std::int64_t>(work.tokens()));
    if (size > 0) work.rows = static_cast<double>(size), work.in_graph = true;
  }
  return work;
}

std::int64_t Engine::repeats(const std::vector<Part>& parts) const {
  if (parts.size() != running.size() || !finished_.empty()) return 1;
  if (!waiting.empty() && !scheduler_->keeps_waiting(*this)) return 1;
  std::int64_t count = INT64_MAX;
  for (const Part& part : parts) {
    if (!part.sequence->is_decoding()) return 1;
    count = std::min(count, part.sequence->output - part.sequence->produced);
  }
  const auto lacks = [&](std::int64_t steps) {
    std::int64_t more = 0;
    for (const Part& part : parts) {
      const Sequence& sequence = *part.sequence;
      more += std::max<std::int64_t>(
          0, blocks_to_hold(sequence, sequence.computed + steps) - sequence.blocks);
    }
    return more > blocks_.unused();
  };
  if (!lacks(count)) return std::max<std::int64_t>(count, 1);
  std::int64_t low = 1, high = count;  // The scheduler has found blocks for one step.
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (lacks(middle) ? high : low) = middle;
  }
  return low;
}

void Engine::hold(const std::vector<Part>& parts, std::int64_t count) {
  if (count == 1) return;  // The scheduler has taken them.
  for (const Part& part : parts) grow(*part.sequence, part.sequence->computed + count);
}

std::vector<std::unique_ptr<Sequence>> Engine::advance(const std::vector<Part>& parts,
                                                       std::int64_t count) {
  release_finished();
  bool is_decoding = true, has_ended = false;
  for (const auto& [sequence, tokens] : parts) {
    is_decoding &= sequence->is_decoding();
    sequence->computed += tokens + count - 1;
    if (count > 1) sequence->produced += count - 1;
    if (sequence->computed == sequence->total()) ++sequence->produced;
    has_ended |= sequence->produced >= sequence->output;
  }
  if (is_decoding) scheduler_->decoded(count);
  std::vector<std::unique_ptr<Sequence>> ended;
  if (!has_ended) return ended;
  for (auto& sequence : running) {
    if (sequence->produced < sequence->output) continue;
    if (settings_.overlapped)
      finished_.push_back(sequence->blocks);
    else
      blocks_.give_back(sequence->blocks);
    ended.push_back(std::move(sequence));
  }
  std::erase(running, nullptr);
  return ended;
}

void Engine::release_finished() {
  for (const std::int64_t blocks : finished_) blocks_.give_back(blocks);
  finished_.clear();
}

std::int64_t Engine::hit(const Sequence& sequence) const {
  const std::int64_t block = settings_.block;
  if (sequence.carried > 0 && !sequence.was_preempted) return sequence.carried;
  std::int64_t held =
      static_cast<std::int64_t>(static_cast<double>(sequence.input) * settings_.hit_share);
  // It had computed all its tokens but the last one, so each kept block is full.
  if (sequence.was_preempted) held = std::max(held, blocks_.kept_by(sequence.id) * block);
  return std::min(held / block * block, greatest_hit(sequence.total(), block));
}

std::int64_t Engine::blocks_to_hold(const Sequence& /*sequence*/, std::int64_t tokens) const {
  return blocks_for(tokens, settings_.block) + settings_.held_blocks;
}

bool Engine::fits(const Sequence& sequence, std::int64_t tokens) const {
  return blocks_to_hold(sequence, tokens) - sequence.blocks <= blocks_.unused();
}

bool Engine::grow(Sequence& sequence, std::int64_t tokens) {
  const std::int64_t more = blocks_to_hold(sequence, tokens) - sequence.blocks;
  if (more <= 0) return true;
  if (more > blocks_.unused()) return false;
  blocks_.take(more), sequence.blocks += more;
  return true;
}

Sequence& Engine::admit(std::int64_t tokens) {
  running.push_back(std::move(waiting.front()));
  waiting.pop_front();
  Sequence& sequence = *running.back();
  sequence.computed = hit(sequence);
  if (sequence.was_preempted) blocks_.claim(sequence.id);
  grow(sequence, tokens);
  return sequence;
}

void Engine::preempt(std::size_t index, bool to_front) {
  std::unique_ptr<Sequence> sequence = std::move(running[index]);
  running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
  blocks_.give_back(sequence->blocks, to_front ? sequence->id : -1);
  sequence->blocks = 0, sequence->computed = 0, sequence->was_preempted = true;
  ++preemptions_;
  if (to_front)
    waiting.push_front(std::move(sequence));
  else
    waiting.push_back(std::move(sequence));
}

}  // namespace foretrace::serve
