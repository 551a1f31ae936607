#include <filesystem>
#include <fmt/core.h>

#include "foretrace/ask/pairs.h"
#include "foretrace/error.h"

namespace foretrace {

namespace fs = std::filesystem;

std::vector<PairList> shipped_pairs(const std::string& recordings) {
  std::error_code ignored;
  std::vector<fs::path> folders = {"traces"};
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) {
    folders.push_back(program.parent_path() / "traces");
    folders.push_back(program.parent_path().parent_path() / "share" / "foretrace" / "traces");
  }
  std::string searched;
  for (const fs::path& folder : folders) {
    searched += (searched.empty() ? "" : ", ") + fs::absolute(folder, ignored).string();
    if (!fs::exists(folder / "pairs.json", ignored)) continue;
    std::vector<PairList> lists = {read_pairs((folder / "pairs.json").string())};
    const fs::path public_pairs = folder / "public_pairs.json";
    if (!recordings.empty() && fs::exists(public_pairs, ignored))
      lists.push_back(read_pairs(public_pairs.string(), recordings));
    return lists;
  }
  throw Error(fmt::format(
      "validate: which TRACE? There is no pairs.json in {}; give a TRACE, or --pairs FILE",
      searched));
}

}  // namespace foretrace
