// Commands that keep their results when they are asked to stop.

#include "cli/options/stop_signals.h"

#include <gtest/gtest.h>

#include <csignal>

namespace foretrace {
namespace {

using namespace std::chrono_literals;

/// A shell that runs the tests in the background makes them ignore signals.
class StopSignalsTest : public testing::Test {
 protected:
  StopSignalsTest() {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  }
};
using StopSignalsDeathTest = StopSignalsTest;

// `timeout` sends two signals within a microsecond.
TEST_F(StopSignalsTest, TwoAtOnceAreOneRequest) {
  const StopSignals signals(1h);
  EXPECT_FALSE(stop_requested());
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  std::raise(SIGINT);
  EXPECT_TRUE(stop_requested());
  EXPECT_EQ(exit_code_of_stop(), 128 + SIGTERM);
}

void ask_twice() {
  const StopSignals signals(0ms);
  std::raise(SIGINT);
  std::raise(SIGINT);
}

TEST_F(StopSignalsDeathTest, ASecondRequestEndsTheProgram) {
  EXPECT_EXIT(ask_twice(), testing::KilledBySignal(SIGINT), "");
}

void ask_after() {
  { const StopSignals signals; }
  std::raise(SIGTERM);
}

TEST_F(StopSignalsDeathTest, SignalsAreWhatTheyWereAfterwards) {
  EXPECT_EXIT(ask_after(), testing::KilledBySignal(SIGTERM), "");
}

TEST_F(StopSignalsTest, IgnoredSignalsStayIgnored) {
  std::signal(SIGINT, SIG_IGN);
  const StopSignals signals;
  std::raise(SIGINT);
  EXPECT_FALSE(stop_requested());
  std::raise(SIGTERM);
  EXPECT_TRUE(stop_requested());
}

}  // namespace
}  // namespace foretrace
