#pragma once

// Commands that end early and keep what they have.

#include <atomic>
#include <csignal>
#include <cstdint>

namespace foretrace {

/// While it lives, the first SIGINT or SIGTERM asks to stop, and one that arrives kOneRequestNs or
/// more after it ends the program as if this object did not exist. Signals in between belong to the
/// first: `timeout` signals the program and then its whole process group.
class StopSignals {
 public:
  static constexpr std::int64_t kOneRequestNs = 200'000'000;

  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
};

const std::atomic<bool>& stop_asked();
/// That of a shell for a program that the signal ended. REQUIRES: stop_asked().
int exit_code_of_stop();

}  // namespace foretrace
