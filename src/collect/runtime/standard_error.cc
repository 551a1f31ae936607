#include "collect/runtime/standard_error.h"

#include <unistd.h>

namespace foretrace::collect {

const FileIdentity kStandardErrorAtLoad = FileIdentity::of(STDERR_FILENO);

bool write_line(std::string_view line, const FileIdentity& at_start) {
  if (!FileIdentity::of(STDERR_FILENO).is(at_start)) return false;
  return ::write(STDERR_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace foretrace::collect
