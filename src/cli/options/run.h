#pragma once

#include <iosfwd>
#include <string>

namespace foretrace {

/// Runs the program and returns its exit code. Never throws; an error is one line on `err`. With a
/// `root`, no file outside that folder is opened, and none is written.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
        const std::string& root = "");

}  // namespace foretrace
