#include "cli/options/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/shown.h"
#include "base/threads.h"

namespace foretrace {

Progress::Progress(std::string what, bool quiet) : what_(shown(what)) {
  if (!quiet && isatty(STDERR_FILENO) == 1) thread_ = new_thread([this] { show(); });
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

void Progress::show() {
  using namespace std::chrono_literals;
  std::unique_lock lock(mutex_);
  bool shown = false;
  for (int seconds = 2;
       !done_changed_.wait_for(lock, seconds == 2 ? 2s : 1s, [this] { return done_; }); ++seconds) {
    std::fprintf(stderr, "\r%s ... %d s", what_.c_str(), seconds);
    shown = true;
  }
  if (shown) std::fprintf(stderr, "\r%*s\r", static_cast<int>(what_.size()) + 12, "");
}

}  // namespace foretrace
