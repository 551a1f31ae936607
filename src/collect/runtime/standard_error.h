#pragma once

// Writes a line to standard error, if that is still the file that it was when the program started.
// A program that closed it may have a file of its own with that number.

#include <string_view>

#include "collect/runtime/file_identity.h"

namespace foretrace::collect {

/// Standard error when this library was loaded.
extern const FileIdentity kStandardErrorAtLoad;

/// Returns whether the line was written. `at_start` is standard error when the program started.
bool write_line(std::string_view line, const FileIdentity& at_start);

}  // namespace foretrace::collect
