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

Progress::Progress(std::string what, bool quiet)
    : Progress([what = shown(what)](
                   double seconds) { return what + " ... " + to_fixed(seconds, 0) + " s"; },
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

CountedProgress::CountedProgress(const std::string& things, std::uint64_t all, bool quiet)
    : shown_(
          [this, things, all](double seconds) {
            const auto done = static_cast<double>(done_.load());
            const double rate = done / seconds;
            const std::string left =
                rate > 0 ? ", " + to_fixed((static_cast<double>(all) - done) / rate, 0) + " s left"
                         : "";
            return fmt::format("{} of {} {}, {} a second{}  ", to_fixed(done, 0), all, things,
                               to_fixed(rate, rate < 10 ? 1 : 0), left);
          },
          1s, 500ms, quiet) {}

}  // namespace foretrace
