#include "import/amd/rocprof.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "foretrace/import.h"
#include "import/files.h"
#include "support/corpus.h"

namespace foretrace {
namespace {

constexpr auto kAgents = R"("agents": [
    {"id": {"handle": 10}, "type": 1, "name": "EPYC", "mem_banks": [{"size_in_bytes": 5}]},
    {"id": {"handle": 11}, "type": 2, "name": "gfx942", "product_name": "MI300X", "cu_count": 304,
     "mem_banks": [{"size_in_bytes": 1000}]},
    {"id": {"handle": 12}, "type": 2, "name": "gfx942", "product_name": "MI300X", "cu_count": 304,
     "mem_banks": []}])";

constexpr auto kStrings = R"("strings": {
    "buffer_records": [{"kind": "NONE", "operations": []},
      {"kind": "HSA_CORE_API", "operations": ["hsa_init"]},
      {"kind": "HIP_RUNTIME_API", "operations": ["hipNone", "hipLaunchKernel"]},
      {"kind": "MARKER_CORE_API", "operations": ["roctxMarkA", "roctxRangePushA"]}],
    "callback_records": [], "marker_api": [{"key": 4, "value": "step \"1\""}]})";

constexpr auto kSymbols = R"("kernel_symbols": [
    {"kernel_id": 7, "kernel_name": "k.kd", "formatted_kernel_name": "kernel<float>"},
    {"kernel_id": 8, "kernel_name": "plain.kd", "formatted_kernel_name": ""}])";

constexpr auto kRecords = R"("buffer_records": {
    "kernel_dispatch": [
      {"size": 184, "kind": 11, "operation": 2, "thread_id": 5,
       "correlation_id": {"internal": 1, "external": 9}, "start_timestamp": 2000,
       "end_timestamp": 2500, "dispatch_info": {"agent_id": {"handle": 12},
       "queue_id": {"handle": 3}, "kernel_id": 7, "workgroup_size": {"x": 64, "y": 2, "z": 1},
       "grid_size": {"x": 200, "y": 2, "z": 1}}, "stream_id": {"handle": 4}},
      {"kind": 11, "operation": 2, "thread_id": 5, "correlation_id": {"internal": 2},
       "start_timestamp": 2600, "end_timestamp": 2700, "dispatch_info": {"agent_id": {"handle": 11},
       "queue_id": {"handle": 3}, "kernel_id": 8}},
      {"start_timestamp": 3000, "end_timestamp": 2999, "dispatch_info": {"kernel_id": 99}},
      {"start_timestamp": 3000, "end_timestamp": 3001, "dispatch_info": {"kernel_id": 99}}],
    "memory_copy": [
      {"kind": 9, "operation": 2, "thread_id": 5, "correlation_id": {"internal": 3},
       "start_timestamp": 1500, "end_timestamp": 1900, "dst_agent_id": {"handle": 11},
       "src_agent_id": {"handle": 10}, "bytes": 4096},
      {"start_timestamp": 1500, "end_timestamp": 1900, "dst_agent_id": {"handle": 12},
       "src_agent_id": {"handle": 11}, "bytes": 8}],
    "hip_api": [{"kind": 2, "operation": 1, "thread_id": 5, "correlation_id": {"internal": 1},
       "start_timestamp": 1000, "end_timestamp": 1200}],
    "hsa_api": [{"kind": 1, "operation": 0, "thread_id": 6, "correlation_id": {"internal": 8},
       "start_timestamp": 1000, "end_timestamp": 1001}],
    "marker_api": [{"kind": 3, "operation": 1, "thread_id": 5, "correlation_id": {"internal": 4},
       "start_timestamp": 900, "end_timestamp": 4000}],
    "memory_allocation": [
      {"kind": 16, "operation": 1, "thread_id": 5, "agent_id": {"handle": 11}, "address": {"value": 77},
       "allocation_size": 512, "start_timestamp": 1000, "end_timestamp": 1001},
      {"kind": 16, "operation": 3, "thread_id": 5, "agent_id": {"handle": 0}, "address": {"value": 77},
       "allocation_size": 0, "start_timestamp": 1100, "end_timestamp": 1101}],
    "scratch_memory": [{"start_timestamp": 1}]})";

std::string recording(const std::string& members) {
  return R"({"rocprofiler-sdk-tool": [{"metadata": {"pid": 42, "init_time": 1}, )" + members +
         "}]}";
}

std::string whole() {
  return recording(std::string(kAgents) + "," + kStrings + "," + kSymbols + "," + kRecords);
}

Trace read(const std::string& json, std::size_t window = TextWindow::kSize) {
  TextSource source(json, 50);
  return read_rocprof(source, window);
}

void expect_whole(const Trace& trace) {
  EXPECT_EQ(
      describe(trace),
      "runtime \"hipLaunchKernel\" 42/5 100+200 correlation=1\ndriver \"hsa_init\" 42/6 100+1 "
      "correlation=8\nannotation \"step \"1\"\" 42/5 0+3100\nkernel \"kernel<float>\" 1/4 1100+500 "
      "correlation=1 external=9 grid=4 block=128\nkernel \"plain.kd\" 0/3 1700+100 "
      "correlation=2\nkernel \"kernel 99\" 0/0 2100+1\ncopy \"Memcpy HtoD\" 0/0 600+400 in "
      "bytes=4096 correlation=3\ncopy \"Memcpy PtoP\" 1/0 600+400 peer bytes=8\nmemory device=0 "
      "100 bytes=512 address=77\nmemory device=0 200 bytes=-512 address=77\n! records with "
      "impossible times, left out: 1\n! kernels whose symbol is not in the file: 1\n! records of "
      "domains that a trace has no place for, left out: 1 (scratch_memory)\n");
  EXPECT_EQ(trace.origin_ns, 900);
  ASSERT_EQ(trace.properties.size(), 2U);
  EXPECT_EQ(trace.properties[0].name, "MI300X");
  EXPECT_EQ(trace.properties[0].memory_bytes, 1000);
  EXPECT_EQ(trace.properties[1].ordinal, 1);
  EXPECT_EQ(trace.metadata.at("pid"), "42");
}

TEST(Rocprof, ReadsWhatRanAndWhatLaunchedIt) { expect_whole(read(whole())); }

TEST(Rocprof, FreesWhatWasAllocatedBeforeTheRecording) {
  const Trace trace = read(recording(std::string(kAgents) + R"(, "buffer_records": {
    "memory_allocation": [
      {"kind": 16, "operation": 3, "thread_id": 5, "agent_id": {"handle": 11},
       "address": {"value": 77}, "allocation_size": 512, "start_timestamp": 1100,
       "end_timestamp": 1101}]})"));
  ASSERT_EQ(trace.memory.size(), 1U);
  EXPECT_EQ(trace.memory[0].bytes, -512);
}

TEST(Rocprof, ReadsTheSameInWindowsOfAnySize) {
  for (const std::size_t window : {64, 101, 1000}) expect_whole(read(whole(), window));
}

TEST(Rocprof, LooksUpNamesHoweverTheListsAreOrdered) {
  expect_whole(
      read(recording(std::string(kAgents) + "," + kRecords + "," + kSymbols + "," + kStrings)));
}

TEST(Rocprof, ReadsWhatIsInFrontOfACut) {
  const std::string text = whole();
  const Trace trace = read(text.substr(0, text.find("\"memory_copy\"")));
  EXPECT_EQ(trace.devices.size(), 3U);
  EXPECT_EQ(trace.notes.count("the file is cut off or damaged; everything before that was read"),
            1);
  for (std::size_t size = 0; size < text.size(); size += 7) {
    try {
      read(text.substr(0, size));
    } catch (const TraceError&) {
    }
  }
}

TEST(Rocprof, RefusesAFileWithoutRecords) {
  EXPECT_EQ(failure([] { read(recording(kAgents)); }),
            "must contain kernels, copies or calls, but contains none");
}

TEST(Rocprof, AgreesWithTheTotalsOfARealRecording) {
  const char* const corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  const Trace trace = import_trace(corpus + std::string("/rocprof-mi350/908_results.json.gz"));
  EXPECT_EQ(trace.devices.size(), 43915U);
  EXPECT_EQ(trace.properties.size(), 8U);
  std::int64_t total = 0, last = 0;
  for (const DeviceRecord& record : trace.devices) {
    total += record.duration_ns;
    last = std::max(last, record.start_ns + record.duration_ns);
  }
  EXPECT_EQ(total, 4441741378);
  EXPECT_EQ(trace.origin_ns, 63857982592000);
  EXPECT_EQ(last, 15122023494);
  EXPECT_TRUE(trace.notes.empty());
}

}  // namespace
}  // namespace foretrace
