#include "import/inspector/inspector.h"

#include <gtest/gtest.h>

#include <fmt/core.h>
#include <string_view>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "support/folder.h"

namespace foretrace {
namespace {

constexpr const char* kRecord =
    R"({"header":{"id":"0x1","comm_name":"DP","rank":2,"n_ranks":8,"nnodes":2},)"
    R"("metadata":{"inspector_output_format_version":"v4.2"},"coll_perf":{"coll":"AllGather",)"
    R"("coll_sn":7,"coll_msg_size_bytes":512,"coll_exec_time_us":40}})";
constexpr const char* kFigures =
    "# HELP nccl_bus_bandwidth_gbs of collectives\n"
    "nccl_bus_bandwidth_gbs{gpu=\"GPU0\",comm_name=\"DP\",n_nodes=\"1\",nranks=\"4\","
    "collective=\"AllReduce\"} 30\n"
    "nccl_collective_exec_time_microseconds{gpu=\"GPU0\",comm_name=\"DP\",n_nodes=\"1\","
    "nranks=\"4\",collective=\"AllReduce\"} 0.5\n";

struct ReadLog {
  std::vector<InspectedOperation> operations;
  Notes notes;
};

ReadLog read_log(const std::string& path) {
  ReadLog log;
  read_inspector_log(path, log.notes, [&](const auto& found) { log.operations.push_back(found); });
  return log;
}

TEST(Inspector, ReadsARecordALine) {
  const Folder folder;
  const std::string path = folder.write("a.log", std::string(kRecord) + "\r\n\n" + kRecord);
  ASSERT_TRUE(holds_inspector_log(path));
  const ReadLog log = read_log(path);
  ASSERT_EQ(log.operations.size(), 2U);
  EXPECT_TRUE(log.notes.empty());
  const InspectedOperation& found = log.operations[1];
  EXPECT_EQ(found.operation, "AllGather");
  EXPECT_EQ(found.communicator, "0x1");
  EXPECT_EQ(found.name, "DP");
  EXPECT_EQ(std::tuple(found.rank, found.ranks, found.nodes), std::tuple(2U, 8U, 2U));
  EXPECT_EQ(found.number, 7);
  EXPECT_EQ(found.bytes, Bytes{512});
  EXPECT_EQ(found.time, 40us);
}

TEST(Inspector, LinesBeyondAnyRecordTakeNoMemory) {
  const Folder folder;
  const std::string path = folder.write(
      "a.log", std::string(kRecord) + "\n{" + std::string(3 << 20, ' ') + "\n" + kRecord);
  const ReadLog log = read_log(path);
  EXPECT_EQ(log.operations.size(), 2U);
  ASSERT_EQ(log.notes.all().size(), 1U);
  EXPECT_EQ(log.notes.all()[0].example, path + ", line 2");
}

TEST(Inspector, TextForPrometheusJoinsTimeAndBandwidth) {
  const Folder folder;
  const std::string path = folder.write("a.prom", kFigures);
  ASSERT_TRUE(holds_inspector_log(path));
  const ReadLog log = read_log(path);
  ASSERT_EQ(log.operations.size(), 1U);
  EXPECT_EQ(log.operations[0].time, 500ns);
  EXPECT_EQ(log.operations[0].bus_bandwidth, 30e9);
  EXPECT_EQ(log.operations[0].ranks, 4U);
  EXPECT_FALSE(log.operations[0].number);
  EXPECT_FALSE(log.operations[0].bytes);
}

TEST(Inspector, ImpossibleRanksAndBandwidthsAreLeftOut) {
  const Folder folder;
  const auto count_of = [&](std::string_view rank, std::string_view bandwidth) {
    const std::string labels = fmt::format(
        R"({{comm_id="7",rank="{}",nranks="4",n_nodes="1",collective="AllReduce"}})", rank);
    const std::string path =
        folder.write("a.prom", fmt::format("nccl_bus_bandwidth_gbs{0} {1}\n"
                                           "nccl_collective_exec_time_microseconds{0} 5\n",
                                           labels, bandwidth));
    return read_log(path).operations.size();
  };
  EXPECT_EQ(count_of("3", "30"), 1U);
  EXPECT_EQ(count_of("4", "30"), 0U);
  EXPECT_EQ(count_of("3", "1e308"), 0U);
}

TEST(Inspector, IsNoTrace) {
  const Folder folder;
  const std::string path = folder.write("a.json", kRecord);
  try {
    import_trace(path);
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_NE(std::string(error.what()).find("collective auto --against"), std::string::npos);
  }
  EXPECT_FALSE(holds_inspector_log(folder.write("b.json", R"({"traceEvents": []})")));
  EXPECT_FALSE(holds_inspector_log(folder / "none.jsonl"));
  EXPECT_TRUE(holds_inspector_log(folder / ""));
}

}  // namespace
}  // namespace foretrace
