// Checks what is left of a recording when a program ends unexpectedly.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/recording.h"
#include "support/folder.h"
#include "support/wait.h"

namespace foretrace {
namespace {

/// Expects everything that CUPTI had delivered. Later records may be there, but nothing else.
void expect_survival(const char* how, int status) {
  Recording recording({.program = {how, "100", "10"}});
  EXPECT_EQ(recording.ended.status, status) << how << recording.ended.err;
  const std::string& out = recording.ended.out;
  const auto safely = emitted(out.substr(0, out.find("at the end")));
  const auto at_the_end = recording.emitted;
  Spooled spooled = recording.spooled();
  ASSERT_EQ(safely.at("kernel").written, 200U);
  for (const auto& [kind, counts] : safely) {
    if (kind == "overhead") continue;
    EXPECT_GE(spooled.rows[kind], counts.written) << how << ' ' << kind;
    EXPECT_LE(spooled.rows[kind], at_the_end.at(kind).written) << how << ' ' << kind;
  }
  EXPECT_GE(spooled.rows["kernel"], 200U) << how;
  EXPECT_EQ(spooled.header.state, spool::State::recording) << how;
  const auto notes = notes_of(recording.trace());
  EXPECT_EQ(
      notes.count("the program did not end the recording properly: up to a second is missing"), 1U);
}

TEST(Survival, ProgramsThatAreKilledKeepWhatWasHandedOver) {
  expect_survival("kill", 128 + SIGKILL);
}
TEST(Survival, ProgramsThatAbortDoToo) { expect_survival("abort", 128 + SIGABRT); }
TEST(Survival, ProgramsThatCrashDoToo) { expect_survival("segfault", 128 + SIGSEGV); }
TEST(Survival, ProgramsThatLeaveWithoutTheirHandlersDoToo) {
  expect_survival("_exit", 0);
  expect_survival("quick_exit", 0);
}

TEST(Survival, ForkedChildrenNeitherHangNorWrite) {
  Recording recording({.program = {"fork", "20"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  const std::string& out = recording.ended.out;
  EXPECT_NE(out.find("child leaves at once exited 7\n"), std::string::npos) << out;
  EXPECT_NE(out.find("child leaves through its handlers exited 8\n"), std::string::npos) << out;
  EXPECT_NE(out.find("child becomes another program exited 0\n"), std::string::npos) << out;
  EXPECT_NE(out.find("child forks again exited 9\n"), std::string::npos) << out;
  EXPECT_EQ(recording.spools.size(), 1U);
  expect_all_there(recording);
  const auto ranges = host_names_of(recording.trace(), HostKind::annotation);
  EXPECT_EQ(ranges, (std::map<std::string, int>{{"before the fork", 1}}));
}

TEST(Survival, WhatStillRunsAtTheEndIsCountedNotInvented) {
  Recording recording({.program = {"unfinished", "10"}});
  expect_all_accounted(recording);
  EXPECT_EQ(recording.spooled().header.untimed, 5U);
  EXPECT_EQ(kernels_of(recording.trace()).count("still runs"), 0U);
  EXPECT_EQ(notes_of(recording.trace())["kernels and copies without times, left out"], 5);
}

TEST(Survival, CuptiMayEndBeforeTheProgramsHandlersRun) {
  // CUPTI's exit handler was registered when CUDA started, after ours; but ours is registered again
  // later.
  Recording later({.program = {"long", "3"}, .environment = {{"FORETRACE_STANDIN", "exit=first"}}});
  EXPECT_EQ(later.ended.status, 0) << later.ended.err;
  expect_all_there(later);
  // In a program that is too short for that, a message says that something is missing.
  Recording at_once(
      {.program = {"normal", "50"},
       .environment = {{"FORETRACE_STANDIN", "exit=first"}, {"FORETRACE_FLUSH_MS", "60000"}}});
  EXPECT_EQ(at_once.ended.status, 3);
  EXPECT_NE(at_once.ended.err.find("CUPTI ended before the program"), std::string::npos)
      << at_once.ended.err;
}

TEST(Survival, AFatalErrorOfCuptisIsToldAndTheProgramGoesOn) {
  Recording recording({.program = {"fail", "20"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  const Spooled spooled = recording.spooled();
  EXPECT_EQ(spooled.header.cupti_error, 999U);
  EXPECT_EQ(spooled.rows.at("kernel"), 40U);
  bool told_so = false;
  for (const Note& note : recording.trace().notes.all())
    told_so |= note.example.find("the GPU fell off the bus") != std::string::npos;
  EXPECT_TRUE(told_so);
}

TEST(Survival, TheProgramsStatusIsPassedOn) {
  for (const int status : {0, 1, 3, 77, 255}) {
    Recording recording({.program = {"exit", std::to_string(status)}});
    EXPECT_EQ(recording.ended.status, status);
    expect_all_there(recording);
  }
}

/// Runs `foretrace collect` on `script` in a process group of its own, and sends it a signal when
/// the program is ready.
struct Interrupted {
  int status = -1;
  bool has_trace = false;
  std::size_t kernels = 0;
};

Interrupted interrupt(int signal, bool whole_group, bool handles) {
  std::string folder = "/tmp/foretrace-signal-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) std::abort();
  const std::string out = folder + "/out";
  const pid_t process = fork();
  if (process == 0) {
    setpgid(0, 0);
    // A shell that runs the tests in the background ignores these signals, and the program would
    // inherit that.
    ::signal(signal, SIG_DFL);
    setenv("LD_LIBRARY_PATH", STANDIN_13, 1);
    setenv("FORETRACE_FLUSH_MS", "20", 1);
    static_cast<void>(!freopen(out.c_str(), "w", stdout));
    static_cast<void>(!freopen("/dev/null", "w", stderr));
    const std::string trace = folder + "/out.ftrace";
    execl(FORETRACE_BINARY, FORETRACE_BINARY, "collect", "-o", trace.c_str(), "--", PLAYED_APP,
          "wait", "10", handles ? "handles" : nullptr, nullptr);
    _exit(127);
  }
  wait_until([&] { return contents_of(out).find("ready") != std::string::npos; });
  kill(whole_group ? -process : process, signal);
  int status = 0;
  waitpid(process, &status, 0);
  Interrupted result;
  result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  result.has_trace = std::filesystem::exists(folder + "/out.ftrace");
  if (result.has_trace) result.kernels = read_ftrace(folder + "/out.ftrace").devices.size();
  std::filesystem::remove_all(folder);
  return result;
}

TEST(Survival, ControlCKeepsTheRecording) {
  // The terminal sends SIGINT to all processes of the group.
  const Interrupted plain = interrupt(SIGINT, true, false);
  EXPECT_EQ(plain.status, 128 + SIGINT);
  EXPECT_TRUE(plain.has_trace);
  EXPECT_EQ(plain.kernels, 50U);
  const Interrupted tidy = interrupt(SIGINT, true, true);
  EXPECT_EQ(tidy.status, 5);
  EXPECT_EQ(tidy.kernels, 50U);
}

TEST(Survival, ASchedulersSignalReachesTheProgram) {
  const Interrupted plain = interrupt(SIGTERM, false, false);
  EXPECT_EQ(plain.status, 128 + SIGTERM);
  EXPECT_TRUE(plain.has_trace);
  EXPECT_EQ(plain.kernels, 50U);
  const Interrupted warned = interrupt(SIGUSR1, false, false);
  EXPECT_EQ(warned.status, 128 + SIGUSR1);
  EXPECT_EQ(warned.kernels, 50U);
}

}  // namespace
}  // namespace foretrace
