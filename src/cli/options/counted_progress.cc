#include "cli/options/counted_progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/threads.h"

namespace foretrace {

CountedProgress::CountedProgress(std::string things, std::uint64_t all, bool quiet)
    : things_(std::move(things)), all_(all) {
  if (!quiet && isatty(STDERR_FILENO) == 1) thread_ = new_thread([this] { show(); });
}

CountedProgress::~CountedProgress() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  over_changed_.notify_one();
  thread_->join();
}

void CountedProgress::show() {
  using namespace std::chrono_literals;
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  int width = 0;
  while (!over_changed_.wait_for(lock, width == 0 ? 1s : 500ms, [this] { return over_; })) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    const auto done = static_cast<double>(done_.load());
    const double rate = done / passed.count();
    char left[32] = "";
    if (rate > 0)
      std::snprintf(left, sizeof left, ", %.0f s left", (static_cast<double>(all_) - done) / rate);
    const int written = std::fprintf(stderr, "\r%.0f of %llu %s, %.*f a second%s  ", done,
                                     static_cast<unsigned long long>(all_), things_.c_str(),
                                     rate < 10 ? 1 : 0, rate, left);
    width = std::max(width, written);
  }
  if (width > 0) std::fprintf(stderr, "\r%*s\r", width, "");
}

}  // namespace foretrace
