#pragma once

// Replays requests through engines, step by step. Steps of an engine are not tasks of a graph:
// which one comes next depends on what has arrived meanwhile. One clock jumps to the next arrival
// or end of a step; equal decoding steps are one jump, which an arrival cuts short.
//
//     requests -> router -> engine 0 .. engine n                     (replicas)
//     requests -> router -> prefill engines -> transfer -> engines   (prefill apart)

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "foretrace/units.h"
#include "serve/engine.h"

namespace foretrace::serve {

/// The parts of a step's time: reading weights, reading keys and values, arithmetic, exchanges
/// between devices, and the host with launches.
enum class Bound : std::uint8_t { weights, cache, arithmetic, exchange, host };
constexpr std::size_t kBounds = 5;

struct StepTime {
  double ns = 0;
  std::array<double, kBounds> parts{};  ///< Add up to `ns`.
  bool is_outside = false;              ///< It is outside of the measured steps of a table.
};

/// The time of a step.
class StepPrice {
 public:
  virtual ~StepPrice() = default;
  virtual StepTime of(const StepWork& work) const = 0;
};

/// The servers before the queues: each takes requests one after the other, and a request takes the
/// first that is free.
struct FrontEnd {
  Nanoseconds constant{0};  ///< For a request, beside others.
  Nanoseconds each{0};      ///< For a request, one after the other.
  double token_ns = 0;      ///< The same, for each token of a prompt.
  std::int64_t count = 1;   ///< Servers: one for each copy that prompts come to.

  /// Time of a server that a prompt of so many tokens takes.
  double busy_ns(double input) const {
    return static_cast<double>(each.count()) + token_ns * input;
  }
};

struct Fleet {
  EngineSettings engine;  ///< With defaults and blocks.
  std::int64_t replicas = 1;
  bool least_busy = true;  ///< The router prefers the engine with the fewest requests.
  /// Engines that only compute prompts; 0: each engine computes its own.
  std::int64_t prefill_replicas = 0;
  EngineSettings prefill_engine = {};
  std::function<Nanoseconds(std::int64_t tokens)> transfer = {};  ///< For a prompt's cache.
  FrontEnd front = {};
};

struct RequestRecord {
  Nanoseconds sent{0}, started{-1}, first{-1}, end{0};
  std::int64_t input = 0, output = 0;
};

/// Equal gaps between tokens.
struct Gap {
  double ns;
  std::int64_t count;
};

struct ServedLoad {
  std::vector<RequestRecord> records;  ///< In the order of requests.
  std::vector<Gap> gaps;               ///< Between tokens of a request.
  Nanoseconds end{0};
  double busy_ns = 0;   ///< Sum over engines.
  double front_ns = 0;  ///< The same, of servers before them.
  std::array<double, kBounds> parts{};
  double graph_ns = 0, prompt_ns = 0;  ///< In graphs; in steps with prompts.
  double outside_ns = 0;               ///< In steps outside of a table.
  double used_ns = 0;                  ///< Integral of the share of blocks in use, while busy.
  double peak_used = 0;
  double waiting_ns = 0;  ///< Integral of waiting requests, while busy.
  std::int64_t peak_waiting = 0, steps = 0, preemptions = 0;
  std::int64_t peak_running = 0;  ///< Of one engine, with requests that just ended.
  double tokens_computed = 0;
};

/// `concurrency` above 0 sends that many at once, and the next when one ends; else each at its
/// time. Throws Error if a request can never run on an engine.
ServedLoad replay(const std::vector<Request>& requests, std::int64_t concurrency,
                  const Fleet& fleet, const StepPrice& price);

/// Throws Error unless the engine can run the request: its length, its blocks, its prompt in a
/// step.
void check_runs(const Request& request, const EngineSettings& settings);

}  // namespace foretrace::serve
