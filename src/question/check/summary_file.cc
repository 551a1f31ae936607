#include "question/check/summary_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fmt/core.h>
#include <string_view>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// GitHub refuses a step summary of more bytes than this.
constexpr std::size_t kLongestSummary = 1024 * 1024;

/// Cuts the text after a whole line, so that it and a note about the cut fit into `room` bytes.
std::string truncated(std::string text, std::size_t room) {
  if (text.size() <= room) return text;
  constexpr std::string_view kCut = "\n(cut: the summary is full)\n";
  if (room < kCut.size()) return {};
  const std::size_t end = text.rfind('\n', room - kCut.size());
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text.append(kCut);
}

}  // namespace

void append_summary(const std::string& path, const std::string& text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const auto fail = [&] {
    throw Error(fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  };
  if (file < 0) fail();
  struct stat before = {};
  const bool has_size = ::fstat(file, &before) == 0 && S_ISREG(before.st_mode);
  const auto old_size = has_size ? static_cast<std::size_t>(before.st_size) : 0;
  const std::string added =
      truncated(text, old_size >= kLongestSummary ? 0 : kLongestSummary - old_size);
  const ::ssize_t written = ::write(file, added.data(), added.size());
  const int error = written < 0 ? errno : ENOSPC;
  const bool is_written = written >= 0 && static_cast<std::size_t>(written) == added.size();
  if (!is_written && has_size) static_cast<void>(::ftruncate(file, before.st_size));
  const bool closed = ::close(file) == 0;
  if (is_written && closed) return;
  if (!is_written) errno = error;
  fail();
}

}  // namespace foretrace
