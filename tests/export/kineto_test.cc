#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command_line.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/import.h"
#include "support/corpus.h"
#include "support/records_as_text.h"

namespace foretrace {
namespace {

Trace exported(const Trace& trace, const Folder& folder, const std::string& name) {
  export_trace(trace, folder / name);
  return import_trace(folder / name);
}

/// Checks all Kineto traces among these files.
void expect_same_after_export(const std::vector<std::string>& paths) {
  const Folder folder;
  for (const std::string& path : paths) {
    std::vector<Trace> traces;
    try {
      traces = import_all(path);
    } catch (const Error&) {
      continue;  // Not a trace; other tests cover that.
    }
    for (const Trace& trace : traces) {
      if (trace.format != "kineto") continue;
      const Trace again = exported(trace, folder, "again.json.gz");
      EXPECT_EQ(first_difference(trace, again), "") << path;
      EXPECT_EQ(trace.tick_ns, again.tick_ns) << path;
      EXPECT_EQ(trace.rank, again.rank) << path;
      EXPECT_EQ(trace.world_size, again.world_size) << path;
      for (const auto& [key, value] : trace.metadata) {
        if (key == "baseTimeNanoseconds" || key == "distributedInfo") continue;
        const auto found = again.metadata.find(key);
        EXPECT_TRUE(found != again.metadata.end() && found->second == value) << path << " " << key;
      }
    }
  }
}

TEST(Kineto, ExportOfTheSamplesReadsBackTheSame) { expect_same_after_export(sample_files()); }

TEST(Kineto, ExportOfTheCorpusReadsBackTheSame) {
  const std::vector<std::string> paths = corpus_files({".json", ".json.gz", ".tar.gz"});
  if (paths.empty()) GTEST_SKIP() << kNoCorpus;
  expect_same_after_export(paths);
}

/// One call that launches one copy.
Trace small() {
  Trace trace;
  trace.format = "nsys";
  trace.origin_ns = 5'000'000'000;
  trace.threads.push_back({.process = 1, .id = 2, .name = "main"});
  trace.streams.push_back({.device = 0, .id = 7});
  trace.hosts.push_back({.start_ns = 0,
                         .duration_ns = 10,
                         .name = trace.names.intern("cudaMemcpyAsync"),
                         .correlation = 9,
                         .kind = HostKind::runtime});
  trace.devices.push_back({.start_ns = 20,
                           .duration_ns = 100,
                           .bytes = 64,
                           .name = trace.names.intern("[memcpy]"),
                           .correlation = 9,
                           .kind = DeviceKind::copy,
                           .direction = CopyDirection::in,
                           .pinned_host = true});
  return trace;
}

TEST(Kineto, ACopyWhoseNameDoesNotSayFromWhereGetsTheProfilersSpelling) {
  const Folder folder;
  const Trace again = exported(small(), folder, "x.json");
  ASSERT_EQ(again.devices.size(), 1U);
  EXPECT_EQ(again.names[again.devices[0].name], "Memcpy HtoD (Pinned -> Device)");
  EXPECT_EQ(again.devices[0].direction, CopyDirection::in);
  EXPECT_TRUE(again.devices[0].pinned_host);
  EXPECT_EQ(again.devices[0].bytes, 64);
}

TEST(Kineto, AbsoluteTimesAndTheResolutionOfTheClockSurvive) {
  const Folder folder;
  Trace trace = small();
  trace.hosts[0].duration_ns = trace.devices[0].duration_ns = 2000;
  trace.devices[0].start_ns = 5000;
  for (const std::int64_t tick : {1, 1000}) {
    trace.tick_ns = tick;
    const Trace again = exported(trace, folder, "x.json");
    EXPECT_EQ(again.tick_ns, tick);
    EXPECT_EQ(again.origin_ns, 5'000'000'000);
    EXPECT_EQ(again.devices[0].start_ns, 5000);
  }
}

TEST(Kineto, ArrowsLeadFromCallsToWhatTheyLaunched) {
  const Folder folder;
  export_trace(small(), folder / "x.json");
  const std::string text = contents_of(folder / "x.json");
  EXPECT_NE(text.find(R"({"ph": "s", "id": 9, "cat": "ac2g")"), std::string::npos);
  EXPECT_NE(text.find(R"({"ph": "f", "bp": "e", "id": 9, "cat": "ac2g")"), std::string::npos);
}

TEST(Kineto, ADriverCallKeepsWhatItLaunched) {
  const Folder folder;
  Trace trace = small();
  trace.hosts[0].name = trace.names.intern("cuLaunchKernel");
  trace.hosts[0].kind = HostKind::driver;
  const Trace again = exported(trace, folder, "x.json");
  ASSERT_EQ(again.hosts.size(), 1U);
  EXPECT_EQ(again.hosts[0].kind, HostKind::driver);
  EXPECT_EQ(again.hosts[0].correlation, 9U);
  const std::string text = contents_of(folder / "x.json");
  EXPECT_NE(text.find(R"("cat": "cuda_driver", "name": "cuLaunchKernel")"), std::string::npos);
  EXPECT_NE(text.find(R"({"ph": "s", "id": 9, "cat": "ac2g")"), std::string::npos);
}

// The profiler's numbers: device type 0 is the CPU, 1 a CUDA device.
TEST(Kineto, MemoryOfTheHostIsNotThatOfADevice) {
  const Folder folder;
  for (const auto& [device, type] : {std::pair(-1, "0"), std::pair(0, "1")}) {
    Trace trace = small();
    trace.memory.push_back(
        {.time_ns = 3, .address = 0x100, .bytes = 64, .device = static_cast<std::int16_t>(device)});
    const Trace again = exported(trace, folder, "x.json");
    ASSERT_EQ(again.memory.size(), 1U);
    EXPECT_EQ(again.memory[0].device, device);
    EXPECT_NE(contents_of(folder / "x.json").find(std::string("\"Device Type\": ") + type),
              std::string::npos);
  }
}

TEST(Kineto, ARankOtherThanTheRecordedOneReplacesIt) {
  const Folder folder;
  Trace trace = small();
  trace.rank = 3;
  trace.world_size = 8;
  trace.metadata["distributedInfo"] = R"({"backend": "nccl", "rank": 0})";
  const Trace again = exported(trace, folder, "x.json");
  EXPECT_EQ(again.rank, 3);
  EXPECT_EQ(again.world_size, 8);
  EXPECT_NE(again.metadata.at("distributedInfo").find("nccl"), std::string::npos);
}

TEST(Kineto, TextsThatAreNoJsonAreWrittenAsStrings) {
  const Folder folder;
  Trace trace = small();
  trace.metadata["odd"] = "{no json";
  trace.op_details.push_back({.shapes = trace.names.intern("[[1, 2"),
                              .values = trace.names.intern("say \"hi\"\n\x01"),
                              .stack = trace.names.intern("null")});
  trace.hosts.push_back({.duration_ns = 5, .name = trace.names.intern("a\"b"), .details = 0});
  const Trace again = exported(trace, folder, "x.json");
  ASSERT_EQ(again.op_details.size(), 1U);
  EXPECT_EQ(again.names[again.op_details[0].shapes], "[[1, 2");
  EXPECT_EQ(again.names[again.op_details[0].values], "say \"hi\"\n\x01");
  EXPECT_EQ(again.names[again.op_details[0].stack], "null");
  EXPECT_EQ(again.metadata.at("odd"), "\"{no json\"");
}

TEST(Kineto, ATraceWithoutTimesIsRefused) {
  const Folder folder;
  Trace trace = small();
  trace.has_times = false;
  EXPECT_THROW(export_trace(trace, folder / "x.json"), Error);
  EXPECT_THROW(export_trace(Trace(), folder / "x.json"), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "x.json"));
}

TEST(Kineto, WhatCannotBeWrittenIsAnError) {
  EXPECT_THROW(export_trace(small(), "/nowhere/x.json"), Error);
}

}  // namespace
}  // namespace foretrace
