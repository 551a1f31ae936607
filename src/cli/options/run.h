#pragma once

#include <iosfwd>
#include <string>

namespace foretrace {

/// Exit codes of the process; the numbers are part of the contract.
enum ExitCode : int {
  kAnswered = 0,
  kCheckFailed = 1,
  kWrongUse = 2,
  kUnusableTrace = 3,
  kUndecided = 4,
  kBug = 70,
};

/// Runs the program and returns its exit code. Never throws; an error is one line on `err`. With a
/// `root`, no file outside that folder is opened, and none is written.
int run(int argc, const char* const* argv, std::ostream& out, std::ostream& err,
        const std::string& root = "");

}  // namespace foretrace
