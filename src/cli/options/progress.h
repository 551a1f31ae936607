#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace foretrace {

/// Shows the current activity and its elapsed time on stderr as long as the object lives: only on a
/// terminal, and only once it has taken two seconds.
class Progress {
 public:
  Progress(std::string what, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show();

  std::string what_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  std::optional<std::jthread> thread_;  ///< Nothing is shown without it.
};

}  // namespace foretrace
