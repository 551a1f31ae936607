#pragma once

// Commands that end early and keep what they have.

#include <atomic>
#include <csignal>

namespace foretrace {

/// While it lives, the first SIGINT or SIGTERM asks to stop; a second one ends the program.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct sigaction interrupt_ = {}, terminate_ = {};
};

const std::atomic<bool>& stop_asked();
/// That of a shell for a program that the signal ended. REQUIRES: stop_asked().
int exit_code_of_stop();

}  // namespace foretrace
