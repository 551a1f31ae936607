// Commands that keep their results when they are asked to stop.

#include "cli/options/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace foretrace {
namespace {

// `timeout` sends two signals within a microsecond.
TEST(StopSignals, TwoAtOnceAreOneRequest) {
  const StopSignals signals;
  EXPECT_FALSE(stop_requested());
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  std::raise(SIGINT);
  EXPECT_TRUE(stop_requested());
  EXPECT_EQ(exit_code_of_stop(), 128 + SIGTERM);
}

void ask_twice() {
  const StopSignals signals;
  std::raise(SIGINT);
  std::this_thread::sleep_for(StopSignals::kOneRequest);
  std::raise(SIGINT);
}

TEST(StopSignalsDeathTest, ASecondRequestEndsTheProgram) {
  EXPECT_EXIT(ask_twice(), testing::KilledBySignal(SIGINT), "");
}

void ask_after() {
  { const StopSignals signals; }
  std::raise(SIGTERM);
}

TEST(StopSignalsDeathTest, SignalsAreWhatTheyWereAfterwards) {
  EXPECT_EXIT(ask_after(), testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace foretrace
