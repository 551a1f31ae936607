#pragma once

// How much of a step waits for input: the device is idle while the training thread loads, or only
// copies input. The part of loading is known from its records:
//
//     train   |LLLLLLxxxxLLLx|       stall   6, nothing runs on the device
//     device  |......KKKKKK..|       hidden  2, the device works
//                                    (of the second L, one is stall)
//
// A stall is observed time, not a possible gain: what follows may wait for something else, too. A
// replay of the graph with loading that takes no time shows the gain.

#include <cstdint>

#include "foretrace/timeline.h"

namespace foretrace {

struct InputStalls {
  /// Average over the steps.
  struct Part {
    Nanoseconds stall{0};
    Nanoseconds hidden{0};
  };
  Part reading;    ///< Records that say so: files, sockets.
  Part preparing;  ///< Operators, decoding and transforming.
  Part waiting;    ///< Waiting for processes that load; their own work is not recorded.
  Part untold;     ///< Loading in the training thread that records do not divide further.
  Part copying;    ///< To the device. Hidden beside kernels and other work of the device.

  Nanoseconds step{0};
  std::int64_t steps = 0;     ///< That the averages are of.
  std::int64_t batches = 0;   ///< Loaded in these.
  std::int64_t pageable = 0;  ///< Copies in, by the memory they come from.
  std::int64_t pinned = 0;    ///< Copies whose records do not show it are neither.
  Bytes copied{};             ///< In a step.
};

/// Over the steps that the step time is taken from. n log n.
InputStalls input_stalls(const Graph& graph, const Timeline& timeline);

/// The kind of a loading task, by its name; tasks that load have kind input.
enum class Loading : std::uint8_t { untold, reading, preparing, waiting };
Loading loading_named(std::string_view name);

}  // namespace foretrace
