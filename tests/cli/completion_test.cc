// Completion scripts for shells, and pages for man, checked by the programs that read them if these
// are installed.

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "cli/command_line.h"
#include "cli/options/command.h"

namespace foretrace {
namespace {

/// The completions that bash offers for the last of `words`.
std::string completed(const std::vector<std::string>& words) {
  const Folder folder;
  folder.write("completion.bash", foretrace_run("completion bash").out);
  std::string call = "source '" + (folder / "completion.bash") + "'; COMP_WORDS=(";
  for (const std::string& word : words) call += " '" + word + "'";
  call +=
      " ); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _foretrace; echo ${COMPREPLY[*]}";
  folder.write("call.bash", call);
  std::system(("cd '" FORETRACE_SOURCE_DIR "' && bash '" + (folder / "call.bash") + "' >'" +
               (folder / "out") + "'")
                  .c_str());
  return contents_of(folder / "out");
}

TEST(Completion, KnowsCommandsOptionsTransformsAndFormats) {
  if (std::system("command -v bash >/dev/null") != 0) GTEST_SKIP() << "there is no bash";
  EXPECT_EQ(completed({"foretrace", "pred"}), "predict\n");
  EXPECT_EQ(completed({"foretrace", "predict", "--perf"}), "--perfetto\n");
  EXPECT_EQ(completed({"foretrace", "predict", "x", "--with", "fused"}), "fused_optimizer\n");
  EXPECT_EQ(completed({"foretrace", "predict", "x", "--format", "js"}), "json\n");
  EXPECT_EQ(completed({"foretrace", "predict", "trac"}), "traces\n");
  EXPECT_EQ(completed({"foretrace", "list", "tr"}), "transforms\n");
  EXPECT_EQ(completed({"foretrace", "help", "channels"}), "channels_last\n");
  EXPECT_EQ(completed({"foretrace", "completion", "f"}), "fish\n");
}

TEST(Completion, NamesEveryCommandForEveryShell) {
  for (const char* shell : {"bash", "fish", "zsh"}) {
    const Outcome outcome = foretrace_run(std::string("completion ") + shell);
    EXPECT_EQ(outcome.exit_code, 0);
    for (const CommandEntry& command : outer_commands())
      EXPECT_NE(outcome.out.find(command.name), std::string::npos) << shell << command.name;
  }
}

TEST(Completion, RefusesOtherShells) {
  const Outcome outcome = foretrace_run("completion bosh");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(
      outcome.err,
      "foretrace: completion: SHELL: must be one of bash, fish, zsh, got \"bosh\" (did you mean "
      "\"bash\"?)\n");
}

TEST(Manual, EveryPageIsSoundRoff) {
  const bool has_man =
      std::system("command -v man >/dev/null && man --version >/dev/null 2>&1") == 0;
  std::vector<std::string> pages{"", "transforms"};
  for (const CommandEntry& command : outer_commands()) pages.emplace_back(command.name);
  for (const std::string& page : pages) {
    SCOPED_TRACE(page);
    const Outcome outcome = foretrace_run("help --man " + page);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.substr(0, 4), ".TH ");
    if (!has_man) continue;
    const Folder folder;
    folder.write("page", outcome.out);
    std::system(("man --warnings -E UTF-8 -l '" + (folder / "page") + "' 2>'" + (folder / "err") +
                 "' >/dev/null")
                    .c_str());
    EXPECT_EQ(contents_of(folder / "err"), "");
  }
}

TEST(Manual, SaysWhereSomethingElseIsMeant) {
  const Outcome outcome = foretrace_run("help --man predct");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.err, "foretrace: there is no command 'predct' (did you mean \"predict\"?)\n");
}

}  // namespace
}  // namespace foretrace
