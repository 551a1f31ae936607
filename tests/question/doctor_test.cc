#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/census.h"
#include "foretrace/answer/diagnosis.h"
#include "foretrace/question/examine.h"
#include "foretrace/trace.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// A trace without problems: three marked steps, each with an op, a launch and its kernel.
class Doctor : public testing::Test {
 protected:
  Doctor() {
    trace_.format = "kineto";
    trace_.threads.push_back({1, 1, "python"});
    trace_.streams.push_back({0, 7});
    trace_.op_details.push_back({.shapes = name("[[4, 4]]"), .stack = name("nn.Module: Net")});
    for (std::int64_t step = 0; step < 3; ++step) {
      const std::int64_t at = 1000 * step;
      const auto correlation = static_cast<std::uint32_t>(step + 1);
      host(HostKind::annotation, "ProfilerStep#" + std::to_string(step), at, 1000);
      host(HostKind::op, "aten::mm", at + 100, 200).details = 0;
      host(HostKind::runtime, "cudaLaunchKernel", at + 150, 50).correlation = correlation;
      kernel("gemm", at + 300, 400).correlation = correlation;
    }
    trace_.memory.push_back(
        {.time_ns = 10, .address = 512, .bytes = 64, .total_allocated = 64, .device = 0});
  }

  NameId name(const std::string& text) { return trace_.names.intern(text); }

  HostRecord& host(HostKind kind, const std::string& text, std::int64_t start,
                   std::int64_t duration) {
    trace_.hosts.push_back(
        {.start_ns = start, .duration_ns = duration, .name = name(text), .kind = kind});
    return trace_.hosts.back();
  }

  DeviceRecord& kernel(const std::string& text, std::int64_t start, std::int64_t duration) {
    trace_.devices.push_back({.start_ns = start, .duration_ns = duration, .name = name(text)});
    return trace_.devices.back();
  }

  /// "warning: what -> fix" for each finding, one a line.
  std::string findings() const {
    std::string all;
    for (const Finding& finding : examine(trace_)) {
      EXPECT_FALSE(finding.cost.empty()) << finding.what;
      all += std::string(to_string(finding.severity)) + ": " + finding.what + " -> " + finding.fix +
             "\n";
    }
    return all;
  }

  Trace trace_;
};

TEST_F(Doctor, HasNothingToSayAboutAGoodTrace) { EXPECT_EQ(findings(), ""); }

TEST_F(Doctor, HelpsWithTheToolThatRecorded) {
  trace_.hosts.clear();
  for (const char* format : {"rocprof", "rocpd", "rpd"}) {
    trace_.format = format;
    EXPECT_NE(findings().find("-> rocprofv3 --hip-trace --marker-trace\n"), std::string::npos);
    EXPECT_NE(findings().find("-> put each step into a roctx range"), std::string::npos);
    EXPECT_EQ(findings().find("prof.step()"), std::string::npos) << findings();
  }
  trace_.format = "xplane";
  EXPECT_NE(findings().find("-> jax.profiler.StepTraceAnnotation"), std::string::npos);
  trace_.format = "collect";
  EXPECT_NE(findings().find("-> --record with api and nvtx"), std::string::npos) << findings();
}

TEST_F(Doctor, NamesTheFlagForShapes) {
  trace_.op_details[0].shapes = {};
  EXPECT_EQ(findings(), "info: no shapes of tensors -> record_shapes=True\n");
}

TEST_F(Doctor, NamesTheFlagForMemory) {
  trace_.memory.clear();
  EXPECT_EQ(findings(), "info: no memory events -> profile_memory=True\n");
}

TEST_F(Doctor, NamesTheFlagForModules) {
  trace_.op_details[0].stack = {};
  EXPECT_EQ(findings(),
            "info: no names of modules -> with_stack=True (Python modules), with_modules=True "
            "(TorchScript)\n");
}

TEST_F(Doctor, NamesTheFlagForSynchronization) {
  trace_.streams.push_back({0, 20});
  host(HostKind::runtime, "cudaStreamWaitEvent", 50, 10);
  trace_.devices[0].stream = 1;
  EXPECT_EQ(
      findings(),
      "warning: no synchronization records, despite 2 streams and 1 wait for events -> "
      "experimental_config=torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)\n");
}

TEST_F(Doctor, AsksForStepMarkers) {
  std::erase_if(trace_.hosts,
                [](const HostRecord& record) { return record.kind == HostKind::annotation; });
  EXPECT_EQ(findings(),
            "warning: no step markers -> call prof.step() at the end of each training step\n");
}

TEST_F(Doctor, AsksForMoreStepsThanTwo) {
  trace_.hosts[0].name = name("something else");
  EXPECT_EQ(
      findings(),
      "warning: only 2 steps -> schedule=torch.profiler.schedule(wait=1, warmup=2, active=6)\n");
}

TEST_F(Doctor, CountsKernelsWithoutTheirLaunch) {
  kernel("early", 0, 10).correlation = 77;
  EXPECT_TRUE(findings().starts_with(
      "warning: 1 of 4 device records (25.0 %) without the call that launched them"));
}

TEST_F(Doctor, CountsLaunchesWithoutTheirKernel) {
  host(HostKind::runtime, "cudaLaunchKernel", 2900, 10).correlation = 78;
  EXPECT_TRUE(findings().starts_with("warning: 1 of 4 launches (25.0 %) without a kernel -> call"));
}

TEST_F(Doctor, ExpectsNoKernelOfALaunchThatIsCaptured) {
  const auto call = [&](const char* text, std::int64_t at) {
    host(HostKind::runtime, text, at, 1).correlation = static_cast<std::uint32_t>(at);
  };
  call("cudaStreamBeginCapture", 2400);
  for (std::int64_t at = 2401; at < 2405; ++at) call("cudaLaunchKernel", at);
  call("cudaStreamEndCapture", 2405);
  EXPECT_EQ(findings(), "");
  EXPECT_EQ(take_census(trace_).launches, 3);
  call("cudaLaunchKernel", 2406);
  EXPECT_NE(findings().find("1 of 4 launches (25.0 %) without a kernel"), std::string::npos)
      << findings();
}

TEST_F(Doctor, TellsClocksThatDisagree) {
  trace_.devices[0].start_ns = 100;
  EXPECT_TRUE(
      findings().starts_with("info: starts before the call that launches: 1, by up to 50 ns"));
}

TEST_F(Doctor, TellsWholeMicroseconds) {
  trace_.tick_ns = 1000;
  trace_.devices[0].duration_ns = 0;
  EXPECT_EQ(findings(),
            "info: times are whole microseconds, recorded as 0 for 1 kernel -> a "
            "PyTorch from 2024 or later records nanoseconds\n");
}

TEST_F(Doctor, AsksForTheOtherRanks) {
  trace_.rank = 3;
  trace_.world_size = 8;
  EXPECT_EQ(findings(),
            "info: rank 3 of 8 -> write a trace on every rank, put them into one folder, and give "
            "that folder\n");
}

TEST_F(Doctor, WarnsOfAProfilerThatTookItsTime) {
  host(HostKind::overhead, "Instrumentation", 500, 600);
  EXPECT_TRUE(findings().starts_with(
      "warning: the profiler itself worked for 600 ns in 1 stretch (20.0 % of the rec"));
}

TEST_F(Doctor, ASlowKernelIsNoWorkOfTheProfilerThatWaitsForIt) {
  host(HostKind::overhead, "Activity Buffer Flush", 500, 600);
  trace_.devices[0].start_ns = 400;
  trace_.devices[0].duration_ns = 690;
  EXPECT_EQ(findings().find("the profiler itself worked for 600 ns"), std::string::npos);
  EXPECT_NE(findings().find("the profiler itself worked for 10 ns in 1 stretch"), std::string::npos)
      << findings();
}

TEST_F(Doctor, PassesOnWhatTheImporterFoundOdd) {
  trace_.notes.add(Severity::warning, "the file is cut off", "after 12 events");
  EXPECT_EQ(findings(),
            "warning: the file is cut off (after 12 events) -> record the trace again, and copy it "
            "completely\n");
}

TEST_F(Doctor, SeesThatTheHostIsMissing) {
  trace_.hosts.clear();
  const std::string all = findings();
  EXPECT_NE(all.find("warning: no host records"), std::string::npos) << all;
  EXPECT_NE(all.find("ProfilerActivity.CPU"), std::string::npos) << all;
}

TEST_F(Doctor, SeesThatTheDeviceIsMissing) {
  trace_.devices.clear();
  const std::string all = findings();
  EXPECT_NE(all.find("warning: 3 launches without a single device record"), std::string::npos)
      << all;
}

TEST_F(Doctor, SaysSomethingAboutAnEmptyTrace) {
  trace_ = Trace();
  EXPECT_FALSE(findings().empty());
}

TEST(DoctorOfSnapshots, SpeaksOfMemoryAlone) {
  Diagnosis diagnosis;
  diagnosis.replay.emplace();
  diagnosis.replay->has_times = false;
  diagnosis.replay->tasks = 12;
  std::ostringstream text;
  write_text(document_of(std::vector<Diagnosis>{diagnosis}), text);
  EXPECT_EQ(text.str().substr(0, text.str().find("\n\n")),
            "rank 0 of 1: can be used, 0 warnings and 0 remarks\n"
            "only memory can be predicted, from 12 events of the allocator\n");
}

TEST(DoctorOfFolders, WarnsOfTwoRunsOfAJob) {
  const Folder folder;
  for (const char* name :
       {"resnet18-v100-loader0.pt.trace.json.gz", "resnet18-v100-loader4.pt.trace.json.gz"})
    std::filesystem::copy_file(std::string(FORETRACE_SOURCE_DIR "/traces/") + name, folder / name);
  const std::vector<Diagnosis> all = diagnose(folder.path(), {});
  ASSERT_EQ(all.size(), 2U);
  ASSERT_FALSE(all[0].findings.empty());
  EXPECT_EQ(all[0].findings[0].severity, Severity::warning);
  EXPECT_EQ(all[0].findings[0].what,
            "the recordings are not of one job: one rank was recorded twice: rank 0 "
            "(resnet18-v100-loader0.pt.trace.json.gz) and rank 0 "
            "(resnet18-v100-loader4.pt.trace.json.gz); give one run at a time");
}

TEST_F(Doctor, InfoCountsWhatIsThere) {
  const nlohmann::json info = describe_trace(trace_);
  EXPECT_EQ(info["records"]["ops"], 3);
  EXPECT_EQ(info["records"]["kernels"], 3);
  EXPECT_EQ(info["window_ns"], 3000);
  EXPECT_EQ(info["device_busy_ns"], 1200);
  EXPECT_EQ(info["steps_on_host_ns"], nlohmann::json::parse("[1000, 1000, 1000]"));
  EXPECT_EQ(info["heaviest"][0]["name"], "gemm");
  std::ostringstream text;
  Document document("Recording");
  add_info(trace_, nullptr, nullptr, document);
  write_text(document, text);
  EXPECT_NE(text.str().find("3 kernels, 0 copies, 0 fills on 1 stream, busy for 1.2 us"),
            std::string::npos)
      << text.str();
}

}  // namespace
}  // namespace foretrace
