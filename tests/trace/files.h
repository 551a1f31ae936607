#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace foretrace {

/// The path of a file that is removed at the end.
class ScratchFile {
 public:
  ScratchFile() {
    std::string name = (std::filesystem::temp_directory_path() / "foretrace-test-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string path() const { return folder_ + "/x.ftrace"; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace foretrace
