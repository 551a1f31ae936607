#pragma once

// One line on standard error, if that still is what it was when the program started: a program that
// has closed it may have a file of its own at that number.

#include <string_view>

#include "collect/own/file_identity.h"

namespace foretrace::collect {

/// Standard error when this library was loaded.
extern const FileIdentity standard_error_at_load;

/// True if the line was written. `at_start` is what standard error was when the program started.
bool tell(std::string_view line, const FileIdentity& at_start);

}  // namespace foretrace::collect
