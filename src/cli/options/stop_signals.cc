#include "cli/options/stop_signals.h"

namespace foretrace {
namespace {

using Clock = std::chrono::steady_clock;  // Reads CLOCK_MONOTONIC, which handlers may do.

// The only state that the signal handler may change.
std::atomic<bool> is_requested = false;
std::atomic<int> signal_number = 0;
std::atomic<Clock::time_point> requested_at;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free &&
              std::atomic<Clock::time_point>::is_always_lock_free);

// Written only while no handler of ours is installed.
std::chrono::milliseconds one_request_lasts = {};
struct sigaction before_interrupt = {};  // The actions of the signals before ours.
struct sigaction before_terminate = {};

extern "C" void request_stop(int signal) {
  if (!is_requested) {
    signal_number = signal;
    requested_at = Clock::now();
    is_requested = true;
  } else if (Clock::now() - requested_at.load() >= one_request_lasts) {
    sigaction(signal, signal == SIGINT ? &before_interrupt : &before_terminate, nullptr);
    raise(signal);  // Arrives when this handler returns.
  }
}

}  // namespace

StopSignals::StopSignals(std::chrono::milliseconds one_request) {
  is_requested = false;
  one_request_lasts = one_request;
  sigaction(SIGINT, nullptr, &before_interrupt);
  sigaction(SIGTERM, nullptr, &before_terminate);
  struct sigaction action = {};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  // The handler reads its state and then writes it, so it must run one at a time.
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  if (before_interrupt.sa_handler != SIG_IGN) sigaction(SIGINT, &action, nullptr);
  if (before_terminate.sa_handler != SIG_IGN) sigaction(SIGTERM, &action, nullptr);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &before_interrupt, nullptr);
  sigaction(SIGTERM, &before_terminate, nullptr);
}

const std::atomic<bool>& stop_requested() { return is_requested; }

int exit_code_of_stop() { return 128 + signal_number; }

}  // namespace foretrace
