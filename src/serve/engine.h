#pragma once

// An engine that serves one copy of a model: its waiting and running requests, its blocks, and the
// scheduler that decides what the next step computes.
//
//     waiting --admit--> running --one token a step--> finished
//        ^                  |
//        +----- preempt ----+       (its blocks are given back, its tokens computed again)
//
// A step computes for each of its requests as many tokens as the scheduler gives it. A request
// whose tokens are then all computed produces one more.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foretrace/fields.h"
#include "serve/blocks.h"
#include "serve/requests.h"

namespace foretrace::serve {

/// Settings of an engine under the names that vLLM gives them. 0: what the scheduler has by
/// default.
struct EngineSettings final : Described {
  void describe(Fields& fields) override;

  std::string scheduler = "vllm";
  std::int64_t max_tokens = 0;         ///< In a step (max_num_batched_tokens).
  std::int64_t max_sequences = 0;      ///< max_num_seqs
  std::int64_t max_length = 0;         ///< Tokens of a request; 0: no limit.
  std::int64_t prefill_threshold = 0;  ///< Most tokens of one prompt in a step; 0: no limit.
  std::string chunked = "default";     ///< Prompts may be cut: default, on, off.
  std::int64_t block = 0;              ///< Tokens of a block.
  std::int64_t blocks = 0;             ///< Usable blocks.
  std::int64_t held_blocks = 0;        ///< Blocks of a request that do not grow (states, windows).
  std::int64_t max_graph = 0;          ///< Largest captured size; -1: no graphs.
  double hit_share = 0;                ///< Share of a prompt that the prefix cache holds.
  bool overlapped = true;  ///< The host prepares a step while the device computes the one before.
  std::string reserve = "all";  ///< TensorRT-LLM: all (no eviction), or next (most utilization).
  std::int64_t stream = 1;      ///< Tokens of the first chunk that a client gets (stream_interval).
  double conservativeness = 1;  ///< SGLang: of the share of outputs that admission expects.

  bool is_chunked = true;  ///< Made of `chunked` by with_defaults().
};

/// Fills in the defaults of the scheduler. Throws Error with the nearest name.
EngineSettings with_defaults(EngineSettings settings);

struct Sequence {
  std::int64_t id = 0;
  std::int64_t input = 1, output = 1;
  std::int64_t carried = 0;   ///< Tokens whose keys and values arrive with it.
  std::int64_t computed = 0;  ///< Tokens with keys and values.
  std::int64_t produced = 0;
  std::int64_t blocks = 0;
  bool was_preempted = false;

  std::int64_t total() const { return input + produced; }
  bool is_decoding() const { return produced > 0 && computed + 1 == total(); }
};

/// The parts of one step, for its price.
struct StepWork {
  double prompt_tokens = 0;
  double prompt_pairs = 0;    ///< Pairs of a token and one that it attends to, in prompts.
  double prompt_context = 0;  ///< Tokens computed before, of the prompts in this step.
  double sequences = 0;       ///< That decode one token each.
  double context = 0;         ///< Sum of their tokens, the new one included.
  double sampled = 0;         ///< Rows of the head.
  /// Tokens that products are computed for: those above, or padded to a captured size.
  double rows = 0;
  bool in_graph = false;

  double tokens() const { return prompt_tokens + sequences; }
};

class Scheduler;

struct Part {
  Sequence* sequence;
  std::int64_t tokens;
};

/// REQUIRES: settings have their defaults.
class Engine {
 public:
  explicit Engine(EngineSettings settings);
  Engine(Engine&&) noexcept;
  ~Engine();

  const EngineSettings& settings() const { return settings_; }
  KvBlocks& blocks() { return blocks_; }
  const KvBlocks& blocks() const { return blocks_; }

  void submit(std::unique_ptr<Sequence> sequence);
  std::size_t waiting_count() const { return waiting.size(); }
  std::size_t outstanding() const { return waiting.size() + running.size(); }

  /// Chooses the parts of the next step; none if nothing can run.
  void plan(std::vector<Part>& parts);
  StepWork work_of(const std::vector<Part>& parts) const;
  /// How often a step of these parts would repeat if nothing arrives: at least 1. Only steps in
  /// which all running requests decode repeat.
  std::int64_t repeats(const std::vector<Part>& parts) const;
  /// Takes the blocks that `count` such steps need.
  void hold(const std::vector<Part>& parts, std::int64_t count);
  /// Advances by `count` equal steps, whose blocks it holds. Returns the requests that finished;
  /// the engine has forgotten them.
  std::vector<std::unique_ptr<Sequence>> advance(const std::vector<Part>& parts,
                                                 std::int64_t count);

  double used_share() const {
    return static_cast<double>(blocks_.used()) /
           static_cast<double>(std::max<std::int64_t>(1, blocks_.count()));
  }
  std::int64_t preemptions() const { return preemptions_; }

  // For schedulers.
  std::deque<std::unique_ptr<Sequence>> waiting;
  std::vector<std::unique_ptr<Sequence>> running;

  /// Tokens that a request which starts need not compute.
  std::int64_t hit(const Sequence& sequence) const;
  std::int64_t blocks_to_hold(const Sequence& sequence, std::int64_t tokens) const;
  /// Whether a waiting request could hold `tokens`.
  bool fits(const Sequence& sequence, std::int64_t tokens) const;
  /// Blocks so that the request holds `tokens`; false if they lack.
  bool grow(Sequence& sequence, std::int64_t tokens);
  /// Moves the first waiting request to the running ones, with its hits. REQUIRES: it fits.
  Sequence& admit(std::int64_t tokens);
  /// Takes back a running request, to be computed again. In front of the waiting ones, or behind.
  void preempt(std::size_t index, bool to_front);
  std::int64_t finishing() const { return static_cast<std::int64_t>(finished_.size()); }
  /// Room in the running list; requests that ended keep their place for an overlapped step.
  std::int64_t room() const {
    return settings_.max_sequences - static_cast<std::int64_t>(running.size()) - finishing();
  }

 private:
  void release_finished();

  EngineSettings settings_;
  KvBlocks blocks_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<std::int64_t> graph_sizes_;
  /// Blocks of requests that ended, which an overlapped step still computes.
  std::vector<std::int64_t> finished_;
  std::int64_t preemptions_ = 0;
};

/// The rules of one engine: one file each, listed in schedulers.def.
class Scheduler {
 public:
  virtual ~Scheduler() = default;
  virtual void plan(Engine& engine, std::vector<Part>& parts) = 0;
  /// Whether the next decoding step starts no waiting request, so that steps repeat.
  virtual bool keeps_waiting(const Engine& engine) const = 0;
  /// Called for `count` decoding steps.
  virtual void decoded(std::int64_t /*count*/) {}
  virtual std::vector<std::int64_t> graph_sizes(const EngineSettings& settings) const = 0;
  /// Whether steps with prompts use (a part of) graphs.
  virtual bool captures_prompts() const { return false; }
};

struct SchedulerEntry {
  std::string_view name, summary;
  std::int64_t max_tokens, max_sequences, block, max_graph;
  bool is_chunked;
  std::unique_ptr<Scheduler> (*make)(const EngineSettings& settings);
};
const std::vector<SchedulerEntry>& schedulers();

/// Captured sizes, ascending; empty without graphs. REQUIRES: settings have their defaults.
std::vector<std::int64_t> graph_sizes(const EngineSettings& settings);
/// The least size that holds `tokens`; 0 if none does.
std::int64_t padded(const std::vector<std::int64_t>& sizes, std::int64_t tokens);

#define SCHEDULER(name, tokens, sequences, block, graph, chunked, summary) \
  std::unique_ptr<Scheduler> make_##name##_scheduler(const EngineSettings& settings);
#include "serve/schedulers.def"
#undef SCHEDULER

}  // namespace foretrace::serve
