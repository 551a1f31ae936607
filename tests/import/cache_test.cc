#include "import/cache/cache.h"

#include <gtest/gtest.h>

#include "foretrace/import.h"
#include "import/files.h"

namespace foretrace {
namespace {

/// A trace that is long enough to be worth a cached copy.
std::string long_trace(const std::string& name) {
  std::string text = "[";
  for (int i = 0; i < 2000; ++i) {
    text += R"({"ph": "X", "cat": "kernel", "name": ")" + name +
            R"(", "pid": 0, "tid": 7, "dur": 1, "ts": )" + std::to_string(i * i) + "},\n";
  }
  return text + "{}]";
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().string());
  return files;
}

TEST(Cache, GivesBackTheSameTrace) {
  const Folder folder;
  const std::string path = folder.write("a.json", long_trace("gemm"));
  const ImportOptions options{.cache_folder = folder / "cache/foretrace"};
  const std::string first = describe(import_trace(path, options));
  ASSERT_EQ(files_in(options.cache_folder).size(), 1U);
  EXPECT_EQ(describe(import_trace(path, options)), first);
  EXPECT_EQ(import_trace(path, options).format, "kineto");
}

TEST(Cache, IsNotUsedForAFileThatChanged) {
  const Folder folder;
  const ImportOptions options{.cache_folder = folder / "cache"};
  const std::string path = folder.write("a.json", long_trace("gemm"));
  import_trace(path, options);
  folder.write("a.json", long_trace("conv2d"));
  const Trace trace = import_trace(path, options);
  EXPECT_EQ(trace.names[trace.devices[0].name], "conv2d");
}

TEST(Cache, ADamagedCopyIsReplaced) {
  const Folder folder;
  const ImportOptions options{.cache_folder = folder / "cache"};
  const std::string path = folder.write("a.json", long_trace("gemm"));
  const std::string first = describe(import_trace(path, options));
  const std::string copy = files_in(options.cache_folder).at(0);
  const std::string good = contents_of(copy);
  folder.write("cache/" + std::filesystem::path(copy).filename().string(), "nonsense");
  EXPECT_EQ(describe(import_trace(path, options)), first);
  EXPECT_EQ(contents_of(copy), good);
}

TEST(Cache, AFolderThatCannotBeWrittenIsNoError) {
  const Folder folder;
  const std::string path = folder.write("a.json", long_trace("gemm"));
  const ImportOptions options{.cache_folder = path + "/below-a-file"};
  EXPECT_EQ(import_trace(path, options).devices.size(), 2000U);
}

TEST(Cache, ShortFilesAreNotCopied) {
  const Folder folder;
  const ImportOptions options{.cache_folder = folder / "cache"};
  import_trace(folder.write("a.json", long_trace("k").substr(0, 50000)), options);
  EXPECT_FALSE(std::filesystem::exists(options.cache_folder));
}

TEST(Cache, TheDefaultFolderFollowsTheEnvironment) {
  const auto set = [](const char* name, const char* value) {
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  };
  const char* old_home = std::getenv("HOME");
  const std::string home = old_home == nullptr ? "" : old_home;
  set("XDG_CACHE_HOME", "/x");
  EXPECT_EQ(default_cache_folder(), "/x/foretrace");
  set("XDG_CACHE_HOME", nullptr);
  set("HOME", "/h");
  EXPECT_EQ(default_cache_folder(), "/h/.cache/foretrace");
  set("HOME", nullptr);
  EXPECT_EQ(default_cache_folder(), "");
  if (old_home != nullptr) set("HOME", home.c_str());
}

}  // namespace
}  // namespace foretrace
