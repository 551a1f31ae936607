#pragma once

// What of a step waits for input: the device stands still while the training thread loads, or has
// nothing to do but copies of input. Of loading that is told by its records:
//
//     train   |LLLLLLxxxxLLLx|       stall   6, nothing runs on the device
//     device  |......KKKKKK..|       hidden  2, the device works
//                                    (of the second L, one is stall)
//
// A stall is time that was seen, not time that would be won: what follows may wait for something
// else, too. Replaying the graph with loading that takes no time tells that.

#include <cstdint>

#include "foretrace/timeline.h"

namespace foretrace {

struct InputStalls {
  /// Of a step on average.
  struct Part {
    Nanoseconds stall{0};
    Nanoseconds hidden{0};
  };
  Part reading;    ///< Records that say so: files, sockets.
  Part preparing;  ///< Operators, decoding and transforming.
  Part waiting;    ///< For processes that load; what these do is not recorded.
  Part untold;     ///< Loading in the training thread that no record tells apart.
  Part copying;    ///< To the device. Hidden beside kernels and other work of the device.

  Nanoseconds step{0};
  std::int64_t steps = 0;     ///< That the averages are of.
  std::int64_t batches = 0;   ///< Loaded in these.
  std::int64_t pageable = 0;  ///< Copies in, by the memory they come from.
  std::int64_t pinned = 0;    ///< Those whose records do not tell are neither.
  Bytes copied{};             ///< In a step.
};

/// Over the steps that the step time is taken from. n log n.
InputStalls input_stalls(const Graph& graph, const Timeline& timeline);

/// Of a loading task, by its name; tasks that load have kind input.
enum class Loading : std::uint8_t { untold, reading, preparing, waiting };
Loading loading_named(std::string_view name);

}  // namespace foretrace
