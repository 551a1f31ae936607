#include "base/threads.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <latch>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

namespace foretrace {
namespace {

int sum_of_first(int count) {
  std::vector<int> squares(static_cast<std::size_t>(count));
  on_threads(8, squares.size(),
             [&](std::size_t, std::size_t i) { squares[i] = static_cast<int>(i * i); });
  return std::accumulate(squares.begin(), squares.end(), 0);
}

TEST(Threads, DoAllWorkOnce) {
  EXPECT_EQ(sum_of_first(100), 328350);
  EXPECT_EQ(sum_of_first(0), 0);
}

TEST(Threads, AreNumberedBelowTheirLimit) {
  std::atomic<bool> fine = true;
  on_threads(3, 1000, [&](std::size_t thread, std::size_t) {
    if (thread >= 3) fine = false;
  });
  EXPECT_TRUE(fine);
}

// Runs in a child process, because the process gives up its right to make threads for good.
int sum_without_threads() {
  constexpr uid_t kNobody = 65534;
  if (::getuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setuid(kNobody) != 0)) return 2;
  const rlimit none{0, 0};
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 3;
  if (new_thread([] {})) return 4;
  std::set<std::size_t> threads;
  on_threads(4, 10, [&](std::size_t thread, std::size_t) { threads.insert(thread); });
  return threads == std::set<std::size_t>{0} && sum_of_first(100) == 328350 ? 0 : 1;
}

TEST(Threads, TheCallerDoesTheWorkAloneWhereNoThreadCanBeMade) {
  EXPECT_EXIT(::_exit(sum_without_threads()), testing::ExitedWithCode(0), "");
}

TEST(Threads, ThrowTheExceptionOfTheSmallestNumber) {
  for (int run = 0; run < 50; ++run) {
    std::string thrown;
    try {
      on_threads(4, 100, [](std::size_t, std::size_t i) {
        if (i % 10 == 7) throw std::runtime_error(std::to_string(i));
      });
    } catch (const std::runtime_error& error) {
      thrown = error.what();
    }
    EXPECT_EQ(thrown, "7");
  }
}

TEST(Threads, BeginNoMoreWorkAfterAnException) {
  std::atomic<int> begun = 0;
  EXPECT_THROW(on_threads(1, 100,
                          [&](std::size_t, std::size_t i) {
                            ++begun;
                            if (i == 3) throw std::runtime_error("no more");
                          }),
               std::runtime_error);
  EXPECT_EQ(begun, 4);
}

TEST(Threads, OfCallsInsideOfCallsDoNotMultiply) {
  std::latch all_run(static_cast<std::ptrdiff_t>(core_count()));
  std::atomic<bool> fine = true;
  run_on_threads(core_count(), [&](std::size_t) {
    all_run.arrive_and_wait();
    if (threads_for_idle_cores() != 1) fine = false;
  });
  EXPECT_TRUE(fine);
  EXPECT_EQ(threads_for_idle_cores(), core_count());
}

}  // namespace
}  // namespace foretrace
