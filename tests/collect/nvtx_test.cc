// Ranges of programs that are compiled with NVTX's own headers. They need no CUDA.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collect/recording.h"

namespace foretrace {
namespace {

const HostRecord* range(const Trace& trace, const std::string& name) {
  const auto found =
      std::find_if(trace.hosts.begin(), trace.hosts.end(),
                   [&](const HostRecord& record) { return trace.names[record.name] == name; });
  if (found == trace.hosts.end()) ADD_FAILURE() << "there is no range \"" << name << '"';
  return found == trace.hosts.end() ? nullptr : &*found;
}

bool is_inside(const HostRecord& inner, const HostRecord& outer) {
  return inner.thread == outer.thread && inner.start_ns >= outer.start_ns &&
         inner.start_ns + inner.duration_ns <= outer.start_ns + outer.duration_ns;
}

TEST(Nvtx, EveryWayToMarkARangeIsRecorded) {
  Recording recording({.program = {"nvtx"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  // The program gets the levels that NVTX promises.
  EXPECT_NE(recording.ended.out.find("levels 0 1 1 0\n"), std::string::npos) << recording.ended.out;
  EXPECT_NE(recording.ended.out.find("different ids 1\n"), std::string::npos)
      << recording.ended.out;
  const auto ranges = host_names_of(recording.trace(), HostKind::annotation);
  const std::map<std::string, int> wanted = {{"outer", 1},
                                             {"inner", 1},
                                             {"b\u00e4r \u2192 \U0001F680", 1},
                                             {"across threads", 1},
                                             {"overlapping", 1},
                                             {"a mark", 1},
                                             {"a mark with a number", 1},
                                             {"in the default domain", 1},
                                             {"data loading:registered name", 3},
                                             {"NCCL:ncclAllReduce", 1},
                                             {"on another thread", 1},
                                             {"never popped", 1}};
  EXPECT_EQ(ranges, wanted);
}

TEST(Nvtx, RangesNestAndThreadsHaveNames) {
  Recording recording({.program = {"nvtx"}});
  const Trace& trace = recording.trace();
  const HostRecord* outer = range(trace, "outer");
  const HostRecord* inner = range(trace, "inner");
  const HostRecord* across = range(trace, "across threads");
  const HostRecord* other = range(trace, "on another thread");
  ASSERT_TRUE(outer != nullptr && inner != nullptr && across != nullptr && other != nullptr);
  EXPECT_TRUE(is_inside(*inner, *outer));
  // Another thread ends this range, long before the program ends.
  EXPECT_GT(across->duration_ns, 0);
  EXPECT_LT(across->start_ns + across->duration_ns, range(trace, "a mark")->start_ns);
  EXPECT_TRUE(outer->nests && !across->nests);
  EXPECT_NE(other->thread, outer->thread);
  EXPECT_EQ(trace.threads[outer->thread].name, "the main thread");
}

TEST(Nvtx, PayloadsSayHowMuchACollectiveMoves) {
  Recording recording({.program = {"nvtx"}});
  const Trace& trace = recording.trace();
  const HostRecord* reduce = range(trace, "NCCL:ncclAllReduce");
  ASSERT_NE(reduce, nullptr);
  ASSERT_NE(reduce->details, kNone);
  const std::string text(trace.names[trace.op_details[reduce->details].values]);
  const nlohmann::json payload = nlohmann::json::parse(text, nullptr, false);
  ASSERT_TRUE(payload.is_object()) << text;
  EXPECT_EQ(payload.value("Message size [bytes]", 0), 25'000'000) << text;
  EXPECT_EQ(payload.value("NCCL communicator ID", std::uint64_t{0}), 0x123456789abcdef0U) << text;
  EXPECT_TRUE(payload.contains("Reduction operation")) << text;
}

TEST(Nvtx, MisuseIsForgiven) {
  Recording recording({.program = {"nvtx", "misuse"}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  const auto ranges = host_names_of(recording.trace(), HostKind::annotation);
  EXPECT_EQ(ranges.at("outer"), 1);
  EXPECT_EQ(ranges.at("on another thread"), 1);
  const auto notes = notes_of(recording.trace());
  EXPECT_EQ(notes.at("ranges without an end, ended with the recording"), 1);
}

// By then the log of the thread has been written and freed.
TEST(Nvtx, ARangeOfALateDestructorIsKept) {
  Recording recording({.program = {"late_range"}, .environment = {{"FORETRACE_FLUSH_MS", "20"}}});
  EXPECT_EQ(recording.ended.status, 0) << recording.ended.err;
  const auto ranges = host_names_of(recording.trace(), HostKind::annotation);
  EXPECT_EQ(ranges,
            (std::map<std::string, int>{
                {"in the program", 1}, {"in the thread", 1}, {"behind the end of the thread", 1}}));
}

TEST(Nvtx, StepsAndKernelsShareAClock) {
  Recording recording({.program = {"steps", "3"}});
  const Trace& trace = recording.trace();
  for (int step = 0; step < 3; ++step) {
    const HostRecord* around = range(trace, "ProfilerStep#" + std::to_string(step));
    ASSERT_NE(around, nullptr);
    const std::string name = "only_in_step_" + std::to_string(step);
    for (const DeviceRecord& kernel : trace.devices) {
      if (trace.names[kernel.name] != name) continue;
      EXPECT_GE(kernel.start_ns, around->start_ns);
      EXPECT_LE(kernel.start_ns + kernel.duration_ns, around->start_ns + around->duration_ns);
    }
  }
}

}  // namespace
}  // namespace foretrace
