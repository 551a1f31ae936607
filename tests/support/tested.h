#pragma once

#include <cstdlib>
#include <string>

namespace foretrace {

/// The program to test: the one that was `built`, or the one that FORETRACE_TESTED names, which may
/// have a planted bug (see tests/mutants).
inline std::string tested_program(const char* built) {
  const char* other = std::getenv("FORETRACE_TESTED");
  return other != nullptr ? other : built;
}

}  // namespace foretrace
