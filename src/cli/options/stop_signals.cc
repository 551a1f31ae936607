#include "cli/options/stop_signals.h"

namespace foretrace {
namespace {

// The only state that the signal handler may change.
std::atomic<bool> is_asked = false;
std::atomic<int> signal_number = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void ask_to_stop(int signal) {
  signal_number = signal;
  is_asked = true;
}

}  // namespace

StopSignals::StopSignals() {
  is_asked = false;
  struct sigaction action = {};
  action.sa_handler = ask_to_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &interrupt_);
  sigaction(SIGTERM, &action, &terminate_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
}

const std::atomic<bool>& stop_asked() { return is_asked; }

int exit_code_of_stop() { return 128 + signal_number; }

}  // namespace foretrace
