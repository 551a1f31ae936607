#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace foretrace {

/// Shows progress, speed and the remaining time of a long piece of work: on stderr, once it has
/// taken a second, and only on a terminal.
class CountedProgress {
 public:
  CountedProgress(std::string things, std::uint64_t all, bool quiet);
  ~CountedProgress();
  CountedProgress(const CountedProgress&) = delete;
  CountedProgress& operator=(const CountedProgress&) = delete;

  void add() { ++done_; }

 private:
  void show();

  std::string things_;
  std::uint64_t all_;
  std::atomic<std::uint64_t> done_ = 0;
  std::mutex mutex_;
  std::condition_variable over_changed_;
  bool over_ = false;
  std::optional<std::jthread> thread_;  ///< Nothing is shown without it.
};

}  // namespace foretrace
