#include "cli/options/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fmt/core.h>

#include "base/shown.h"
#include "base/threads.h"
#include "foretrace/units.h"

namespace foretrace {

using namespace std::chrono_literals;

Progress::Progress(std::string activity, bool quiet)
    : Progress(
          [activity = shown(activity)](double seconds) {
            return fmt::format("{} ... {} s", activity, to_fixed(seconds, 0));
          },
          2s, 1s, quiet) {}

Progress::Progress(Line line, std::chrono::milliseconds first, std::chrono::milliseconds every,
                   bool quiet)
    : line_(std::move(line)) {
  if (!quiet && isatty(STDERR_FILENO) == 1)
    thread_ = new_thread([this, first, every] { show(first, every); });
}

Progress::~Progress() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  done_changed_.notify_one();
  thread_->join();
}

void Progress::show(std::chrono::milliseconds first, std::chrono::milliseconds every) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  int width = 0;
  while (!done_changed_.wait_for(lock, width == 0 ? first : every, [this] { return done_; })) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    width = std::max(width, std::fprintf(stderr, "\r%s", line_(passed.count()).c_str()));
  }
  if (width > 0) std::fprintf(stderr, "\r%*s\r", width, "");
}

CountedProgress::CountedProgress(const std::string& noun, std::uint64_t total, bool quiet)
    : progress_(
          [this, noun, total](double seconds) {
            const auto done = static_cast<double>(done_.load());
            const double rate = done / seconds;
            const std::string left =
                rate > 0 ? fmt::format(", {} s left",
                                       to_fixed((static_cast<double>(total) - done) / rate, 0))
                         : "";
            return fmt::format("{} of {} {}, {} a second{}  ", to_fixed(done, 0), total, noun,
                               to_fixed(rate, rate < 10 ? 1 : 0), left);
          },
          1s, 500ms, quiet) {}

}  // namespace foretrace
