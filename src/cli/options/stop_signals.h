#pragma once

// Lets commands end early on a signal and keep what they have.

#include <atomic>
#include <chrono>
#include <csignal>

namespace foretrace {

/// While this object lives, the first SIGINT or SIGTERM asks the command to stop, and another one
/// that arrives at least `one_request` later ends the program as if this object did not exist.
/// Signals in between count as part of the first request: `timeout` signals the program and then
/// its whole process group. Ignored signals stay ignored, as in a background job of a script.
class StopSignals {
 public:
  static constexpr std::chrono::milliseconds kOneRequest{200};

  explicit StopSignals(std::chrono::milliseconds one_request = kOneRequest);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

const std::atomic<bool>& stop_requested();
/// Returns the exit code that a shell reports for a program ended by this signal. REQUIRES:
/// stop_requested().
int exit_code_of_stop();

}  // namespace foretrace
