#include "import/file_member.h"

#include <filesystem>

#include "foretrace/error.h"
#include "import/sniff.h"
#include "import/sqlite_file.h"

namespace foretrace {

FileMember split_file_member(const std::string& path) {
  std::error_code ignored;
  const std::size_t colon = path.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(path, ignored)) return {path, {}};
  const std::string member = path.substr(colon + 1);
  const bool number =
      !member.empty() && member.find_first_not_of("-0123456789") == std::string::npos;
  if (!number) return {path, {}};
  const std::string file = path.substr(0, colon);
  try {
    if (is_sqlite(sniff(file))) return {file, member};
  } catch (const TraceError&) {
    // The path as a whole gives the better message.
  }
  return {path, {}};
}

}  // namespace foretrace
