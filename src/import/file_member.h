#pragma once

// One trace of a file that holds several, such as the process of a report: "report.sqlite:1234".

#include <string>

namespace foretrace {

struct FileMember {
  std::string file;
  std::string member;  ///< Empty: `file` is the whole path.
};

/// Splits at the last ':' if what is behind it is a number and what is in front is a database,
/// which may itself be in an archive.
FileMember split_file_member(const std::string& path);

}  // namespace foretrace
