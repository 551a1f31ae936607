#include "serve/loop.h"

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <queue>

#include "foretrace/error.h"

namespace foretrace::serve {
namespace {

/// Equal steps are priced at both ends; they are fewer if the price between is off by more.
constexpr double kStraight = 1e-3;

/// Consecutive steps of one engine with the same parts, the last one ending at `end`.
struct Stretch {
  Nanoseconds start{0}, end{0};
  std::int64_t count = 0;  ///< 0: the engine is idle.
  StepTime first{}, last{};
  double increment = 0;  ///< From one step to the next.

  double after(std::int64_t steps) const {
    const auto n = static_cast<double>(steps);
    return n * first.ns + increment * n * (n - 1) / 2;
  }
  Nanoseconds time_after(std::int64_t steps) const {
    return start + std::max(Nanoseconds{1}, from_nanoseconds(after(steps)));
  }
};

struct Replica {
  Engine engine;
  bool only_prompts;
  std::vector<Part> parts{};
  StepWork work{};
  Stretch stretch{};
};

struct Arrival {
  Nanoseconds time;
  std::int64_t id;
  bool has_cache;  ///< It comes from an engine for prompts.
  bool operator>(const Arrival& other) const {
    return std::tie(time, id) > std::tie(other.time, other.id);
  }
};

class Replay {
 public:
  Replay(const std::vector<Request>& requests, std::int64_t concurrency, const Fleet& fleet,
         const StepPrice& price)
      : requests_(requests),
        closed_(concurrency > 0),
        fleet_(fleet),
        price_(price),
        front_free_(static_cast<std::size_t>(fleet.front.count)) {
    for (std::int64_t i = 0; i < fleet.prefill_replicas; ++i)
      replicas_.push_back({Engine(fleet.prefill_engine), true});
    for (std::int64_t i = 0; i < fleet.replicas; ++i)
      replicas_.push_back({Engine(fleet.engine), false});
    for (const Request& request : requests)
      run_.records.push_back(
          {.sent = request.arrival, .input = request.input, .output = request.output});
    const std::size_t sent = closed_
                                 ? std::min(requests.size(), static_cast<std::size_t>(concurrency))
                                 : requests.size();
    for (std::size_t i = 0; i < sent; ++i) send(closed_ ? Nanoseconds{0} : requests[i].arrival);
  }

  ServedLoad run() {
    for (std::size_t ended = 0; ended < requests_.size();) {
      Replica* const next = next_end();
      if (next == nullptr && arrivals_.empty())
        throw Error(
            "a request can never start: its prompt and answer must leave room in the cache; allow "
            "more blocks, or shorter answers");
      if (next != nullptr && (arrivals_.empty() || next->stretch.end <= arrivals_.top().time)) {
        now_ = next->stretch.end;
        ended += finish(*next);
      } else {
        now_ = arrivals_.top().time;
        deliver(arrivals_.top());
        arrivals_.pop();
      }
      if (!arrivals_.empty() && arrivals_.top().time <= now_) continue;
      start_idle();
    }
    for (const Replica& replica : replicas_) run_.preemptions += replica.engine.preemptions();
    run_.end = now_;
    return std::move(run_);
  }

 private:
  void send(Nanoseconds time) {
    const FrontEnd& front = fleet_.front;
    run_.records[sent_].sent = time;
    const double busy = front.busy_ns(static_cast<double>(requests_[sent_].input));
    run_.front_ns += busy;
    Nanoseconds& free = *std::ranges::min_element(front_free_);
    free = std::max(free, time) + from_nanoseconds(busy);
    arrivals_.push({free + front.constant, static_cast<std::int64_t>(sent_++), false});
  }

  Replica* next_end() {
    Replica* next = nullptr;
    for (Replica& replica : replicas_) {
      if (replica.stretch.count > 0 && (!next || replica.stretch.end < next->stretch.end))
        next = &replica;
    }
    return next;
  }

  Replica& chosen(bool only_prompts) {
    const std::size_t prefill = static_cast<std::size_t>(fleet_.prefill_replicas);
    const std::size_t begin = only_prompts ? 0 : prefill;
    const std::size_t end = only_prompts ? prefill : replicas_.size();
    std::size_t& turn = turns_[only_prompts ? 1 : 0];
    Replica* best = &replicas_[begin + turn];
    for (std::size_t i = begin; fleet_.least_busy && i < end; ++i) {
      if (replicas_[i].engine.outstanding() < best->engine.outstanding()) best = &replicas_[i];
    }
    turn = (turn + 1) % (end - begin);
    return *best;
  }

  void deliver(const Arrival& arrival) {
    const Request& request = requests_[static_cast<std::size_t>(arrival.id)];
    Replica& replica = chosen(fleet_.prefill_replicas > 0 && !arrival.has_cache);
    auto sequence = std::make_unique<Sequence>();
    sequence->id = arrival.id, sequence->input = request.input;
    sequence->output = replica.only_prompts ? 1 : request.output;
    if (arrival.has_cache) sequence->carried = request.input, sequence->produced = 1;
    Stretch& stretch = replica.stretch;
    // Behind a request that must wait itself, it changes nothing.
    if (stretch.count > 1 && replica.engine.waiting_count() == 0) {
      std::int64_t low = 1, high = stretch.count;
      while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (stretch.time_after(middle) >= now_)
          high = middle;
        else
          low = middle + 1;
      }
      stretch.count = low, stretch.end = stretch.time_after(low);
    }
    replica.engine.submit(std::move(sequence));
    run_.peak_waiting =
        std::max(run_.peak_waiting, static_cast<std::int64_t>(replica.engine.waiting_count()));
  }

  void start_idle() {
    for (Replica& replica : replicas_) {
      if (replica.stretch.count > 0 || replica.engine.outstanding() == 0) continue;
      replica.engine.plan(replica.parts);
      if (replica.parts.empty()) continue;
      run_.peak_running = std::max(run_.peak_running,
                                   std::ssize(replica.engine.running) + replica.engine.finishing());
      for (const Part& part : replica.parts) {
        Nanoseconds& started = run_.records[static_cast<std::size_t>(part.sequence->id)].started;
        if (started < 0ns) started = now_;
      }
      begin(replica);
    }
  }

  StepTime priced(const StepWork& work, std::int64_t ahead) const {
    StepWork later = work;
    later.context += later.sequences * static_cast<double>(ahead);
    return price_.of(later);
  }

  void begin(Replica& replica) {
    replica.work = replica.engine.work_of(replica.parts);
    std::int64_t count = replica.engine.repeats(replica.parts);
    Stretch stretch{.start = now_, .first = priced(replica.work, 0)};
    stretch.last = count > 1 ? priced(replica.work, count - 1) : stretch.first;
    while (count > 2) {
      const double middle = priced(replica.work, (count - 1) / 2).ns;
      const double part = static_cast<double>((count - 1) / 2) / static_cast<double>(count - 1);
      const double straight = stretch.first.ns + part * (stretch.last.ns - stretch.first.ns);
      if (std::abs(middle - straight) <= kStraight * middle) break;
      count = std::max<std::int64_t>(2, count / 2);
      stretch.last = priced(replica.work, count - 1);
    }
    stretch.count = count;
    if (count > 1)
      stretch.increment = (stretch.last.ns - stretch.first.ns) / static_cast<double>(count - 1);
    stretch.end = stretch.time_after(count);
    replica.stretch = stretch;
  }

  void add_gap(double ns, std::int64_t count) {
    if (!run_.gaps.empty() && run_.gaps.back().ns == ns)
      run_.gaps.back().count += count;
    else
      run_.gaps.push_back({ns, count});
  }

  void add_tokens(const Replica& replica) {
    const Stretch& stretch = replica.stretch;
    const Nanoseconds first = stretch.count > 1 ? stretch.time_after(1) : stretch.end;
    const auto more = stretch.count - 1;
    std::int64_t producing = 0;
    for (const auto& [sequence, tokens] : replica.parts) {
      if (sequence->computed + tokens != sequence->total()) continue;
      RequestRecord& record = run_.records[static_cast<std::size_t>(sequence->id)];
      const std::int64_t shown = std::min(replica.engine.settings().stream, sequence->output);
      if (record.first < 0ns && shown <= sequence->produced + stretch.count)
        record.first = stretch.time_after(std::max<std::int64_t>(1, shown - sequence->produced));
      if (sequence->produced > 0) add_gap(static_cast<double>((first - record.end).count()), 1);
      record.end = stretch.end;
      ++producing;
    }
    if (more > 0 && producing > 0)
      add_gap(static_cast<double>((stretch.end - first).count()) / static_cast<double>(more),
              more * producing);
  }

  /// Also takes the blocks that the steps need.
  void account(Replica& replica) {
    const Stretch& stretch = replica.stretch;
    const auto ns = static_cast<double>((stretch.end - stretch.start).count());
    const auto n = static_cast<double>(stretch.count);
    run_.busy_ns += ns, run_.steps += stretch.count;
    run_.tokens_computed += replica.work.tokens() * n;
    if (replica.work.in_graph) run_.graph_ns += ns;
    if (stretch.first.is_outside || stretch.last.is_outside) run_.outside_ns += ns;
    if (replica.work.prompt_tokens > 0) run_.prompt_ns += ns;
    for (std::size_t i = 0; i < kBounds; ++i)
      run_.parts[i] += n * (stretch.first.parts[i] + stretch.last.parts[i]) / 2;
    const double before = replica.engine.used_share();
    replica.engine.hold(replica.parts, stretch.count);
    const double after = replica.engine.used_share();
    run_.used_ns += (before + after) / 2 * ns, run_.peak_used = std::max(run_.peak_used, after);
    run_.waiting_ns += static_cast<double>(replica.engine.waiting_count()) * ns;
  }

  /// Returns the number of requests that ended.
  std::size_t finish(Replica& replica) {
    add_tokens(replica);
    account(replica);
    const std::int64_t count = replica.stretch.count;
    replica.stretch.count = 0;
    std::size_t ended = 0;
    for (const auto& sequence : replica.engine.advance(replica.parts, count)) {
      const RequestRecord& record = run_.records[static_cast<std::size_t>(sequence->id)];
      if (replica.only_prompts && record.output > 1) {
        arrivals_.push({now_ + fleet_.transfer(sequence->input), sequence->id, true});
        continue;
      }
      ++ended;
      if (closed_ && sent_ < requests_.size()) send(now_);
    }
    return ended;
  }

  const std::vector<Request>& requests_;
  bool closed_;
  const Fleet& fleet_;
  const StepPrice& price_;
  std::vector<Replica> replicas_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  std::array<std::size_t, 2> turns_{};
  std::size_t sent_ = 0;
  Nanoseconds now_{0};
  std::vector<Nanoseconds> front_free_;  ///< When each server before the engines is free.
  ServedLoad run_;
};

}  // namespace

void check_runs(const Request& request, const EngineSettings& settings) {
  const std::int64_t tokens = request.input + request.output;
  if (settings.max_length > 0 && tokens > settings.max_length)
    throw Error(fmt::format("max_model_len: must be at least the request's {} tokens, got {}",
                            tokens, settings.max_length));
  if (!settings.is_chunked && request.input > settings.max_tokens)
    throw Error(
        fmt::format("max_num_batched_tokens: must hold a prompt of {} tokens while chunked_prefill "
                    "is off, got {}",
                    request.input, settings.max_tokens));
  const std::int64_t blocks = blocks_for(tokens, settings.block) + settings.held_blocks;
  if (blocks > settings.blocks)
    throw Error(fmt::format(
        "cache: must hold one request of {} tokens, {} blocks of {} tokens, but has {} blocks",
        tokens, blocks, settings.block, settings.blocks));
}

ServedLoad replay(const std::vector<Request>& requests, std::int64_t concurrency,
                  const Fleet& fleet, const StepPrice& price) {
  check_requests(requests);
  for (const Request& request : requests) {
    check_runs(request, fleet.engine);
    if (fleet.prefill_replicas > 0)
      check_runs({.input = request.input, .output = 1}, fleet.prefill_engine);
  }
  return Replay(requests, concurrency, fleet, price).run();
}

}  // namespace foretrace::serve
