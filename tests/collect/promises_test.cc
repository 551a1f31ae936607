// A program may rely on these promises while it is recorded; README.md lists them.

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "collect/recording.h"
#include "support/folder.h"

namespace foretrace {
namespace {

namespace fs = std::filesystem;

void expect_own_files_whole(const Folder& folder) {
  for (int i = 0; i < 8; ++i) {
    const std::string found = contents_of(folder / "data" + std::to_string(i));
    const std::string written(200'000, static_cast<char>('a' + i));
    EXPECT_TRUE(found == written) << "data" << i << " has " << found.size() << " bytes";
  }
}

TEST(Promises, AProgramThatClosesAllDescriptorsKeepsItsFilesAndItsRecording) {
  for (const char* forbidden : {"none", "close_range", "both"}) {
    SCOPED_TRACE(forbidden);
    const Folder folder;
    Recording recording({.program = {"closes", folder.path(), "3", forbidden},
                         .environment = {{"FORETRACE_FLUSH_MS", "2"}}});
    EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
    expect_own_files_whole(folder);
    EXPECT_EQ(told(recording.ended.out, "kept"), 8);
    EXPECT_EQ(told(recording.ended.out, "kept_by_child"), 8);
    expect_all_there(recording);
  }
}

TEST(Promises, ADaemonThatClosesItsStandardStreamsTooKeepsItsFiles) {
  for (const char* forbidden : {"none", "both"}) {
    SCOPED_TRACE(forbidden);
    const Folder folder;
    Recording recording({.program = {"closes", folder.path(), "0", forbidden},
                         .environment = {{"FORETRACE_FLUSH_MS", "2"}}});
    EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
    expect_own_files_whole(folder);
    EXPECT_EQ(recording.spooled().rows["kernel"], 2U * 520U);
  }
}

TEST(Promises, AFileOfOursThatIsClosedForGoodIsToldOf) {
  const Folder folder;
  const Recording recording({.program = {"closes", folder.path(), "3", "both", "full"},
                             .environment = {{"FORETRACE_FLUSH_MS", "60000"}}});
  EXPECT_EQ(recording.ended.status, 3);
  EXPECT_NE(recording.ended.out.find("lost 0"), std::string::npos) << "the program must go on";
  expect_own_files_whole(folder);
  const std::string& err = recording.ended.err;
  EXPECT_NE(err.find("closed the recorder's file, and it cannot be opened again"),
            std::string::npos)
      << err;
  EXPECT_NE(err.find("nothing was recorded: the program closed the recorder's file"),
            std::string::npos)
      << err;
}

TEST(Promises, NothingIsWrittenToAFileAtTheNumberOfStandardError) {
  for (const char* when : {"before", "after"}) {
    SCOPED_TRACE(when);
    const Folder folder;
    const Recording recording(
        {.program = {"stderr", folder.path(), when},
         .environment = {{"FORETRACE_STANDIN", "subscribe=39,holder=Nsight Systems"}}});
    EXPECT_EQ(contents_of(folder / "data"), "");
    // The user is told nevertheless.
    EXPECT_NE(recording.ended.err.find("held by Nsight Systems"), std::string::npos)
        << recording.ended.err;
  }
}

TEST(Promises, SignalsBelongToTheProgram) {
  Recording recording({.program = {"signals"}, .environment = {{"FORETRACE_FLUSH_MS", "2"}}});
  const std::string& out = recording.ended.out;
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  EXPECT_EQ(told(out, "same"), 1) << "a handler or the mask has changed";
  EXPECT_GE(told(out, "handled"), 40);
  EXPECT_EQ(told(out, "elsewhere"), 0) << "a handler ran on a thread of ours";
  EXPECT_EQ(told(out, "childless"), 1);
  EXPECT_EQ(told(out, "ours"), 3) << "the flusher, the thread of files, the one that fetches";
  EXPECT_EQ(told(out, "deaf"), 3);
  expect_all_there(recording);
}

TEST(Promises, IgnoredSignalsStayIgnoredAsUnderNohup) {
  const std::string command = std::string("trap '' HUP; exec ") + FORETRACE_BINARY +
                              " collect -o /tmp/foretrace-nohup-" + std::to_string(getpid()) +
                              ".ftrace -- " + PLAYED_APP + " signals";
  const Ended ended = run_program({"/bin/sh", "-c", command},
                                  {{"LD_LIBRARY_PATH", STANDIN_13}, {"FORETRACE_FLUSH_MS", "2"}});
  fs::remove("/tmp/foretrace-nohup-" + std::to_string(getpid()) + ".ftrace");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("HUP i\n"), std::string::npos) << ended.out;
}

TEST(Promises, SignalsOfItsOwnDoingEndTheProgramAsWithoutUs) {
  const Folder folder;
  Recording pipe({.program = {"own_signal", "pipe", folder.path()}});
  EXPECT_EQ(pipe.ended.status, 128 + SIGPIPE);
  EXPECT_EQ(kernels_of(pipe.trace()).at("gemm_kernel(float*, float const*, int)"), 20);
  Recording limit({.program = {"own_signal", "limit", folder.path()}});
  EXPECT_EQ(limit.ended.status, 128 + SIGXFSZ);
  EXPECT_EQ(kernels_of(limit.trace()).at("gemm_kernel(float*, float const*, int)"), 20);
}

TEST(Promises, ErrnoAndUmaskAreTheProgramsOwn) {
  Recording recording({.program = {"errno"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  EXPECT_EQ(told(recording.ended.out, "changed"), 0);
  EXPECT_EQ(told(recording.ended.out, "umask"), 1);
  expect_all_there(recording);
}

TEST(Promises, NumbersOfDescriptorsAreTheProgramsOwn) {
  Recording numbers({.program = {"numbers"}, .environment = {{"FORETRACE_FLUSH_MS", "1"}}});
  EXPECT_EQ(told(numbers.ended.out, "others"), 0);
  expect_all_there(numbers);
  for (const char* most : {"8", "16", "64"}) {
    SCOPED_TRACE(most);
    Recording limit({.program = {"limit", most}});
    EXPECT_EQ(limit.ended.status, 0) << limit.ended.err;
    EXPECT_GT(told(limit.ended.out, "before"), 0);
    EXPECT_EQ(told(limit.ended.out, "with"), told(limit.ended.out, "before"));
    expect_all_there(limit);
  }
}

TEST(Promises, AProgramMayLeaveItsFolder) {
  Recording recording({.program = {"moves"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  expect_all_there(recording);
}

TEST(Promises, AFolderOfSpoolsThatIsTakenAwayIsToldOf) {
  const Folder folder;
  Recording recording({.program = {"moves", folder.path() + "/elsewhere"}});
  EXPECT_EQ(recording.ended.status, 3);
  EXPECT_NE(recording.ended.out.find("lost 0"), std::string::npos) << "the program must go on";
  EXPECT_NE(recording.ended.err.find("the program removed or renamed the folder of the recording"),
            std::string::npos)
      << recording.ended.err;
}

// What hangs here hangs for good: whoever waits for it never ends.
TEST(Promises, ADiskThatHangsHoldsNobodyUp) {
  for (const char* hang : {"hang=3", "hang=30"}) {
    SCOPED_TRACE(hang);
    const Recording recording({.program = {"ranges", "50000"},
                               .environment = {{"FORETRACE_FLUSH_MS", "20"},
                                               {"FORETRACE_EXIT_MS", "400"},
                                               {"LD_PRELOAD", SLOW_DISK},
                                               {"PLAYED_DISK", hang}}});
    EXPECT_EQ(recording.ended.status, 5) << recording.ended.err;
    EXPECT_NE(recording.ended.out.find("handler 1"), std::string::npos);
  }
}

TEST(Promises, ACuptiThatHangsHoldsNobodyUp) {
  const Environment environment = {{"FORETRACE_STANDIN", "flush=hang"},
                                   {"FORETRACE_EXIT_MS", "500"}};
  const Recording hanging({.program = {"exit", "7"}, .environment = environment});
  EXPECT_EQ(hanging.ended.status, 7);
  EXPECT_NE(hanging.ended.err.find("CUPTI did not return its last records in time"),
            std::string::npos)
      << hanging.ended.err;
  // Rows that do not come from CUPTI are there nevertheless, including those since the last flush.
  Environment long_period = environment;
  long_period["FORETRACE_FLUSH_MS"] = "60000";
  Recording recording({.program = {"threads", "2", "1"}, .environment = long_period});
  EXPECT_EQ(host_names_of(recording.trace(), HostKind::annotation)["work of a thread"], 2);
  EXPECT_EQ(recording.spooled().header.state, spool::State::finished);
}

TEST(Promises, ASlowDiskDelaysTheEndByNoMoreThanWasAskedFor) {
  Recording recording({.program = {"normal", "3000"},
                       .environment = {{"FORETRACE_FLUSH_MS", "60000"},
                                       {"FORETRACE_BUFFER_BYTES", "1024"},
                                       {"FORETRACE_BUFFERS", "10000"},
                                       // All writes would take minutes.
                                       {"FORETRACE_EXIT_MS", "2000"},
                                       {"LD_PRELOAD", SLOW_DISK},
                                       {"PLAYED_DISK", "us=50000"}}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  expect_all_accounted(recording);
  const spool::Header header = recording.spooled().header;
  EXPECT_GT(header.lost_on_disk + header.dropped_by_cupti, 0U);
}

TEST(Promises, ChildrenThatTheLibraryKnowsNothingOfNeitherHangNorWrite) {
  Recording recording({.program = {"raw_fork"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  EXPECT_EQ(told(recording.ended.out, "raw"), 6);
  EXPECT_EQ(told(recording.ended.out, "vfork"), 0);
  EXPECT_EQ(recording.spools.size(), 1U);
  expect_all_there(recording);
  EXPECT_EQ(host_names_of(recording.trace(), HostKind::annotation),
            (std::map<std::string, int>{{"before", 1}}));
}

TEST(Promises, AFailingStatusIsPassedOnEvenIfNothingWasRecorded) {
  const Ended ended = run_program(
      {FORETRACE_BINARY, "collect", "-o", "/tmp/never.ftrace", "--", "/bin/sh", "-c", "exit 7"},
      {});
  EXPECT_EQ(ended.status, 7);
  EXPECT_NE(ended.err.find("exited with status 7"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace foretrace
