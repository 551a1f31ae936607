#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace foretrace {

/// Shows a line on stderr while the object lives: only on a terminal, and only after the work has
/// taken a while.
class Progress {
 public:
  /// Shows the activity and the elapsed time.
  Progress(std::string activity, bool quiet);
  /// Makes the line from the elapsed seconds. It is called from another thread.
  using Line = std::function<std::string(double seconds)>;
  Progress(Line line, std::chrono::milliseconds first, std::chrono::milliseconds every, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show(std::chrono::milliseconds first, std::chrono::milliseconds every);

  Line line_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::optional<std::jthread> thread_;  ///< Nothing is shown without it.
};

/// Shows how many of `total` things are done, the speed and the remaining time.
class CountedProgress {
 public:
  CountedProgress(const std::string& noun, std::uint64_t total, bool quiet);
  void add() { ++done_; }

 private:
  std::atomic<std::uint64_t> done_ = 0;
  Progress progress_;
};

}  // namespace foretrace
