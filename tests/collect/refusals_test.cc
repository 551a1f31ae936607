// If nothing, or not everything, can be recorded, the program runs nevertheless, and one line says
// why.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "collect/recording.h"
#include "support/folder.h"

namespace foretrace {
namespace {

std::ptrdiff_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

constexpr int kNothingRecorded = 3;

/// Expects that nothing is recorded, and that the one line from inside the program contains
/// `because` and `cure`.
void expect_refusal(const Recipe& recipe, const std::string& because, const std::string& cure) {
  Recipe normal = recipe;
  if (normal.program.empty()) normal.program = {"normal", "5"};
  const Recording recording(normal);
  const Ended& ended = recording.ended;
  EXPECT_EQ(ended.status, kNothingRecorded) << ended.err;
  EXPECT_EQ(told(ended.out, "injection"), 1) << "the driver must think that all is well";
  EXPECT_NE(ended.out.find("lost 0"), std::string::npos) << "the program did not come to its end";
  EXPECT_NE(ended.err.find(because), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find(cure), std::string::npos) << ended.err;
  EXPECT_LE(lines_of(ended.err), 2) << ended.err;
  EXPECT_FALSE(recording.has_trace());
}

/// A machine on which CUPTI ends with `code`: with the driver's library for this version of CUDA
/// (the stub if empty), and with a GPU or without.
Recipe machine(const std::string& code, const std::string& driver, bool has_gpu) {
  static const Folder with_gpu;
  static const Folder without_gpu;
  with_gpu.write("nvidiactl", "");
  Recipe recipe{
      .environment = {{"FORETRACE_STANDIN", "subscribe=" + code},
                      {"LD_LIBRARY_PATH", STANDIN_13 ":" DRIVER_FOLDER},
                      {"FORETRACE_DEVICES", has_gpu ? with_gpu.path() : without_gpu.path()}}};
  if (!driver.empty()) recipe.environment["PLAYED_DRIVER"] = driver;
  return recipe;
}

TEST(Refusals, NoDriverNoGpuAndAnOldDriverAreToldApart) {
  for (const std::string code : {"15", "999"}) {
    SCOPED_TRACE(code);
    expect_refusal(machine(code, "", true), code,
                   "there is no NVIDIA driver (libcuda.so.1 is a stub)");
    expect_refusal(machine(code, "12020", false), code, "there is no NVIDIA GPU");
    expect_refusal(
        machine(code, "11040", true), code,
        "the driver (CUDA 11.4) is older than this CUPTI (CUDA 13): install a newer driver");
    expect_refusal(machine(code, "13000", true), code,
                   "the driver (CUDA 13.0) does not let it start");
  }
}

TEST(Refusals, ADriverThatIsNotThere) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr)
    GTEST_SKIP() << "NVIDIA's driver is here, and the test is of machines without one";
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "subscribe=999"}}}, "CUPTI_ERROR_UNKNOWN",
                 "there is no NVIDIA driver (libcuda.so.1 is not found): install one");
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "no_driver=1"}}}, "999",
                 "there is no NVIDIA driver");
}

TEST(Refusals, AnotherProfilerIsNamed) {
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "subscribe=39,holder=Nsight Systems"}}},
                 "held by Nsight Systems", "record without it");
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "subscribe=39"}}, .cupti = STANDIN_12},
                 "39", "another profiler");
}

TEST(Refusals, MissingPrivileges) {
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "subscribe=35"}}}, "35",
                 "NVreg_RestrictProfilingToAdminUsers=0");
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "subscribe=40"}}}, "40", "administrator");
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "register=999"}}}, "CUPTI_ERROR_UNKNOWN",
                 "");
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "subscribe=38"}}}, "38", "");
}

TEST(Refusals, AnOldCupti) {
  expect_refusal({.environment = {{"FORETRACE_STANDIN", "version=16"}}, .cupti = STANDIN_12}, "16",
                 "CUDA 11.8");
}

TEST(Refusals, NoCuptiAtAll) {
  const Recording recording(
      {.program = {"normal", "5"},
       .environment = {{"FORETRACE_CUPTI", "/nowhere/libcupti.so.13"}, {"LD_LIBRARY_PATH", ""}}});
  EXPECT_EQ(recording.ended.status, kNothingRecorded);
  EXPECT_NE(recording.ended.err.find("libcupti.so.13, .12 or .11.8 is not found"),
            std::string::npos)
      << recording.ended.err;
  EXPECT_NE(recording.ended.out.find("no driver"), std::string::npos);
  EXPECT_LE(lines_of(recording.ended.err), 2) << recording.ended.err;
}

#ifdef REAL_CUPTI
TEST(Refusals, NvidiasOwnLibraryWithoutADriver) {
  if (!std::filesystem::exists(REAL_CUPTI))
    GTEST_SKIP() << "NVIDIA's library has gone from " REAL_CUPTI " since the tests were built";
  if (std::filesystem::exists("/dev/nvidiactl"))
    GTEST_SKIP() << "NVIDIA's driver is here, and the test is of machines without one";
  const Recording recording({.program = {"normal", "5"}, .cupti = REAL_CUPTI});
  EXPECT_EQ(recording.ended.status, kNothingRecorded);
  EXPECT_EQ(told(recording.ended.out, "injection"), 1);
  EXPECT_NE(recording.ended.err.find("(999)"), std::string::npos) << recording.ended.err;
  EXPECT_LE(lines_of(recording.ended.err), 2) << recording.ended.err;
}
#endif

TEST(Refusals, OneKindThatIsRefusedCostsOnlyThatKind) {
  for (const char* code : {"35", "21", "14"}) {
    Recording recording({.program = {"memory", "5"},
                         .environment = {{"FORETRACE_STANDIN", std::string("enable.49=") + code}}});
    EXPECT_EQ(recording.ended.status, 0);
    expect_all_there(recording);
    EXPECT_EQ(recording.emitted.count("memory"), 0U);
    EXPECT_EQ(notes_of(recording.trace())["kinds of records that CUPTI refused"], 1);
  }
}

TEST(Refusals, AFolderThatCannotBeWritten) {
  const Recipe recipe{.program = {"normal", "5"}, .output = "../../proc/nowhere/out.ftrace"};
  const Ended ended = run_program({FORETRACE_BINARY, "collect", "-o", "/proc/nowhere/out.ftrace",
                                   "--", PLAYED_APP, "normal", "5"},
                                  {{"LD_LIBRARY_PATH", STANDIN_13}});
  EXPECT_NE(ended.status, 0);
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_EQ(ended.out, "") << "the program must not run for nothing";
}

TEST(Refusals, ASpoolFolderThatIsGone) {
  const Ended ended =
      run_program({PLAYED_APP, "normal", "5"}, {{"LD_LIBRARY_PATH", STANDIN_13},
                                                {"CUDA_INJECTION64_PATH", COLLECT_LIBRARY},
                                                {"NVTX_INJECTION64_PATH", COLLECT_LIBRARY},
                                                {"FORETRACE_SPOOL", "/nowhere"}});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
  EXPECT_NE(ended.err.find("/nowhere"), std::string::npos) << ended.err;
  EXPECT_EQ(told(ended.out, "injection"), 1);
}

TEST(Refusals, WithoutAFolderNothingHappens) {
  const Ended ended = run_program({PLAYED_APP, "nvtx"}, {{"LD_LIBRARY_PATH", STANDIN_13},
                                                         {"CUDA_INJECTION64_PATH", COLLECT_LIBRARY},
                                                         {"NVTX_INJECTION64_PATH", COLLECT_LIBRARY},
                                                         {"FORETRACE_SPOOL", ""}});
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.err, "");
}

TEST(Refusals, AProgramThatIsNotThere) {
  const Ended ended = run_program(
      {FORETRACE_BINARY, "collect", "-o", "/tmp/never.ftrace", "--", "no-such-program"}, {});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.err.find("no-such-program"), std::string::npos);
  EXPECT_EQ(lines_of(ended.err), 1) << ended.err;
}

TEST(Refusals, AProgramThatUsesNoCuda) {
  const std::vector<std::string> command = {
      FORETRACE_BINARY, "collect", "-o", "/tmp/never.ftrace", "--", "/bin/echo", "hello"};
  const Ended ended = run_program(command, {{"LD_LIBRARY_PATH", DRIVER_FOLDER}});
  EXPECT_EQ(ended.status, kNothingRecorded);
  EXPECT_EQ(ended.out, "hello\n");
  EXPECT_NE(ended.err.find("did not use CUDA"), std::string::npos) << ended.err;
}

// A program that tries to use CUDA where there is no driver never comes to the driver's cuInit, so
// that it cannot be told from one that does not try.
TEST(Refusals, WithoutADriverNobodyIsSaidToUseNoCuda) {
  if (dlopen("libcuda.so.1", RTLD_NOW) != nullptr)
    GTEST_SKIP() << "NVIDIA's driver is here, and the test is of machines without one";
  const Ended ended = run_program(
      {FORETRACE_BINARY, "collect", "-o", "/tmp/never.ftrace", "--", "/bin/echo", "hello"}, {});
  EXPECT_EQ(ended.status, kNothingRecorded);
  EXPECT_NE(ended.err.find("could not start CUDA: there is no NVIDIA driver (libcuda.so.1"),
            std::string::npos)
      << ended.err;
}

TEST(Refusals, ASecondClientInTheProgramDoesNotTakeTheBuffers) {
  Recording recording({.app = SECOND_CLIENT});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  EXPECT_EQ(told(recording.ended.out, "subscribe"), 39);
  EXPECT_EQ(told(recording.ended.out, "register"), 39);
  EXPECT_EQ(told(recording.ended.out, "stolen"), 0);
  expect_all_there(recording);
  EXPECT_NE(recording.ended.err.find("another profiler asked for CUPTI and was refused"),
            std::string::npos);
}

TEST(Refusals, ASecondClientIsServedWhereNothingIsRecorded) {
  const Ended alone = run_program({SECOND_CLIENT}, {{"LD_LIBRARY_PATH", STANDIN_13}});
  EXPECT_EQ(told(alone.out, "subscribe"), 0);
  EXPECT_EQ(told(alone.out, "register"), 0);
  const Recording without({.options = {"--record", "nvtx"}, .app = SECOND_CLIENT});
  EXPECT_EQ(told(without.ended.out, "subscribe"), 0) << without.ended.err;
  EXPECT_EQ(told(without.ended.out, "register"), 0);
}

}  // namespace
}  // namespace foretrace
