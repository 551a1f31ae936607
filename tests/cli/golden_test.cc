// Whole runs on the sample traces: tests/golden/<case>/cmd has the arguments of "foretrace",
// expected.txt the output. If FORETRACE_BLESS names a folder, <case>/expected.txt is written there
// instead (scripts/bless.sh).

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/command_line.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> cases() {
  std::vector<fs::path> all;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(FORETRACE_SOURCE_DIR "/tests/golden")) {
    if (fs::exists(entry.path() / "cmd")) all.push_back(entry.path());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string transcript(const fs::path& folder) {
  std::string arguments = contents_of(folder / "cmd");
  std::replace(arguments.begin(), arguments.end(), '\n', ' ');
  const Outcome outcome = foretrace_run(arguments);
  std::string text = outcome.out;
  if (!outcome.err.empty()) text += "-- on stderr:\n" + outcome.err;
  return text + "-- exit code " + std::to_string(outcome.exit_code) + "\n";
}

class Golden : public testing::TestWithParam<fs::path> {};

TEST_P(Golden, SaysWhatItShould) {
  const std::string found = transcript(GetParam());
  if (const char* blessed = std::getenv("FORETRACE_BLESS")) {
    const fs::path folder = blessed / GetParam().filename();
    fs::create_directories(folder);
    std::ofstream(folder / "expected.txt", std::ios::binary) << found;
    return;
  }
  EXPECT_EQ(found, contents_of(GetParam() / "expected.txt"))
      << "If this is as it should be now: scripts/bless.sh, and review the difference";
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(cases()), [](const auto& one) {
  std::string name = one.param.filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace foretrace
