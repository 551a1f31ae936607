#include "import/execution_traces/chakra.h"

#include <gtest/gtest.h>

#include <functional>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files.h"
#include "import/protobuf_bytes.h"
#include "trace/validate.h"

namespace foretrace {
namespace {

std::string attribute(std::string_view name, const std::string& value) {
  return proto_text(10, proto_text(1, name) + value);
}
std::string int64(std::string_view name, std::int64_t value) {
  return attribute(name, proto_number(9, static_cast<std::uint64_t>(value)));
}
std::string is_cpu(bool value) { return attribute("is_cpu_op", proto_number(27, value ? 1 : 0)); }

struct NodeText {
  std::uint64_t id = 0;
  std::string name;
  std::string rest;
  int type = 4;
  std::vector<std::uint64_t> control = {}, data = {};
};
std::string node(const NodeText& node) {
  std::string text = proto_number(1, node.id) + proto_text(2, node.name) +
                     proto_number(3, static_cast<std::uint64_t>(node.type));
  for (const std::uint64_t id : node.control) text += proto_number(4, id);
  std::string packed;
  for (const std::uint64_t id : node.data) packed += proto_varint(id);
  return text + proto_text(5, packed) + node.rest;
}
std::string took(std::uint64_t micros) { return proto_number(7, micros); }
std::string at(std::uint64_t start, std::uint64_t micros) {
  return proto_number(6, start) + took(micros);
}

std::string chakra_file(const std::vector<std::string>& nodes,
                        const std::string& metadata = proto_text(1, "0.0.4")) {
  std::string bytes = proto_delimited(metadata);
  for (const std::string& one : nodes) bytes += proto_delimited(one);
  return bytes;
}

class Chakra : public testing::Test {
 protected:
  Trace read(const std::string& bytes, const std::string& name = "job.0.et") {
    Trace trace = import_trace(folder_.write(name, bytes));
    validate(trace);
    return trace;
  }
  std::string refusal(const std::string& bytes) {
    try {
      read(bytes);
    } catch (const TraceError& error) {
      return std::string(error.what()).substr(folder_.path().size() + 1);
    }
    return "none";
  }

  Folder folder_;
};

/// "name start-end" in whole microseconds, hosts first.
std::string times_of(const Trace& trace) {
  std::string text;
  const auto add = [&](const auto& record) {
    text += (text.empty() ? "" : ", ") + std::string(trace.names[record.name]) + " " +
            std::to_string(record.start_ns / 1000) + "-" +
            std::to_string((record.start_ns + record.duration_ns) / 1000);
  };
  for (const HostRecord& record : trace.hosts) add(record);
  text += " |";
  for (const DeviceRecord& record : trace.devices) add(record);
  return text;
}

TEST_F(Chakra, ReadsNodesWithTimes) {
  const Trace trace = read(chakra_file({
      node({.id = 1,
            .name = "add",
            .rest = at(100, 10) + is_cpu(true) + int64("tid", 5) + int64("rf_id", 77) +
                    int64("seq_id", -1)}),
      node({.id = 2,
            .name = "add_kernel",
            .rest = at(120, 30) + is_cpu(false) + int64("stream", 7),
            .control = {1},
            .data = {1}}),
  }));
  EXPECT_EQ(trace.format, "chakra");
  EXPECT_TRUE(trace.has_times);
  EXPECT_EQ(trace.tick_ns, 1000);
  EXPECT_EQ(trace.origin_ns, 100'000);
  EXPECT_EQ(times_of(trace), "add 0-10, launch 10-10 |, add_kernel 20-50");
  EXPECT_EQ(trace.hosts[1].kind, HostKind::runtime);
  EXPECT_EQ(trace.hosts[1].correlation, trace.devices[0].correlation);
  EXPECT_EQ(trace.streams[0].id, 7);
  EXPECT_EQ(trace.threads[0].id, 5);
  EXPECT_EQ(trace.op_details[trace.hosts[0].details].record_function, 77);
  EXPECT_EQ(trace.op_details[trace.hosts[0].details].sequence, -1);
  EXPECT_EQ(trace.metadata.at("version"), "\"0.0.4\"");
}

TEST_F(Chakra, PrefersNanoseconds) {
  const Trace trace = read(chakra_file({
      node({.id = 1,
            .name = "a",
            .rest = at(100, 10) + is_cpu(true) + int64("start_time_ns", 100'500) +
                    int64("duration_ns", 9'999)}),
      node({.id = 2, .name = "b", .rest = at(200, 1) + is_cpu(true)}),
  }));
  EXPECT_EQ(trace.tick_ns, 1);
  EXPECT_EQ(trace.origin_ns, 100'500);
  EXPECT_EQ(trace.hosts[0].duration_ns, 9'999);
}

/// A caller with two callees; the second launches a kernel, which the next op waits for.
std::vector<std::string> untimed_starts() {
  return {
      node({.id = 1, .name = "linear", .rest = took(5) + is_cpu(true)}),
      node({.id = 2, .name = "t", .rest = took(2) + is_cpu(true), .control = {1}, .data = {1}}),
      node({.id = 3, .name = "mm", .rest = took(3) + is_cpu(true), .control = {1}, .data = {2}}),
      node(
          {.id = 4, .name = "gemm", .rest = took(40) + is_cpu(false), .control = {3}, .data = {3}}),
      node({.id = 5, .name = "item", .rest = took(1) + is_cpu(true), .data = {3, 4}}),
  };
}

TEST_F(Chakra, StartsNodesAsEarlyAsTheirDependenciesAllow) {
  const Trace trace = read(chakra_file(untimed_starts()));
  EXPECT_EQ(times_of(trace),
            "linear 0-10, t 5-7, mm 7-10, item 50-51, launch 10-10, wait for the device 10-50 |"
            ", gemm 10-50");
  ASSERT_EQ(trace.syncs.size(), 1U);
  EXPECT_EQ(trace.syncs[0].kind, SyncKind::stream);
  EXPECT_EQ(trace.syncs[0].stream, trace.devices[0].stream);
  EXPECT_EQ(trace.syncs[0].correlation, trace.hosts[5].correlation);
  EXPECT_EQ(trace.notes.count("the file has durations but no start times: nodes start as early as "
                              "their dependencies allow"),
            1);
}

TEST_F(Chakra, RunsOneNodeAtATimeOnAStreamAndAThread) {
  std::vector<std::string> nodes;
  for (std::uint64_t i = 1; i <= 3; ++i)
    nodes.push_back(
        node({.id = i, .name = "k" + std::to_string(i), .rest = took(10) + is_cpu(false)}));
  EXPECT_EQ(times_of(read(chakra_file(nodes))), " |, k1 0-10, k2 10-20, k3 20-30");
}

TEST_F(Chakra, ReadsTheSizesOfCommunication) {
  const Trace trace = read(chakra_file({
      node({.id = 1,
            .name = "nccl",
            .rest = took(9) + is_cpu(false) + int64("comm_type", 7) + int64("comm_size", 4096) +
                    attribute("pg_name", proto_text(29, "tp")),
            .type = 7}),
      node({.id = 2,
            .name = "send",
            .rest = took(9) + is_cpu(false) + int64("comm_size", 10) + int64("comm_src", 0) +
                    int64("comm_dst", 3),
            .type = 5}),
      node({.id = 3, .name = "gemm", .rest = took(9) + is_cpu(false)}),
  }));
  ASSERT_EQ(trace.collectives.size(), 2U);
  const CollectiveDetails& first = trace.collectives[trace.devices[0].details];
  EXPECT_EQ(trace.names[first.collective], "reduce_scatter");
  EXPECT_EQ(first.in_elements, 4096);
  EXPECT_EQ(trace.names[first.group], "tp");
  const CollectiveDetails& second = trace.collectives[trace.devices[1].details];
  EXPECT_EQ(trace.names[second.collective], "send");
  EXPECT_EQ(trace.names[second.ranks], "[0, 3]");
  EXPECT_NE(trace.devices[0].stream, trace.devices[2].stream);
}

TEST_F(Chakra, ReadsEveryKindOfNumber) {
  const auto size_read = [&](const std::string& value) {
    return read(chakra_file({node({.id = 1,
                                   .name = "nccl",
                                   .rest = took(9) + attribute("comm_size", value),
                                   .type = 7})}))
        .collectives[0]
        .in_elements;
  };
  for (const int varint : {7, 9, 11, 13}) EXPECT_EQ(size_read(proto_number(varint, 42)), 42);
  for (const int zigzag : {15, 17}) EXPECT_EQ(size_read(proto_number(zigzag, 84)), 42);
  EXPECT_EQ(size_read(proto_key(19, 5) + std::string("\x2a\0\0\0", 4)), 42);
  EXPECT_EQ(size_read(proto_key(21, 1) + std::string("\x2a\0\0\0\0\0\0\0", 8)), 42);
  EXPECT_EQ(size_read(proto_key(5, 5) + std::string("\0\0\x28\x42", 4)), 42);
  EXPECT_EQ(size_read(proto_key(3, 1) + std::string("\0\0\0\0\0\0\x45\x40", 8)), 42);
}

TEST_F(Chakra, HasNoTimesWhereNoneAreTold) {
  const Trace trace = read(chakra_file({
      node({.id = 0,
            .name = "ALL_REDUCE",
            .rest = attribute("comm_size", proto_number(13, 65536)),
            .type = 7}),
      node({.id = 1, .name = "COMP", .rest = int64("num_ops", 100)}),
  }));
  EXPECT_FALSE(trace.has_times);
  EXPECT_EQ(trace.devices.size(), 2U);
  EXPECT_EQ(trace.collectives[0].in_elements, 65536);
}

TEST_F(Chakra, ReadsArgumentsAsPythonPrintsThem) {
  const std::string inputs =
      proto_text(1, R"([[3, 4, 2, 6, 4, 'cuda:1'], 'it\'s "x"', True, None])") +
      proto_text(2, "[[2, 3], [], [], []]") +
      proto_text(3, "['Tensor(float)', 'String', 'Bool', 'None']");
  const Trace trace = read(chakra_file({
      node({.id = 1, .name = "f", .rest = took(1) + is_cpu(true) + proto_text(8, inputs)}),
      node({.id = 2,
            .name = "Memcpy DtoD (Device -> Device)",
            .rest = took(1) + is_cpu(false) + proto_text(9, inputs),
            .data = {1}}),
  }));
  ASSERT_EQ(trace.tensors.size(), 1U);
  EXPECT_EQ(trace.tensors[0].bytes, 24);
  EXPECT_EQ(trace.tensors[0].device, 1);
  EXPECT_EQ(trace.names[trace.op_details[trace.hosts[0].details].values],
            R"(["", "it's \"x\"", True, None])");
  EXPECT_EQ(trace.devices[0].kind, DeviceKind::copy);
  EXPECT_EQ(trace.devices[0].direction, CopyDirection::on_device);
  EXPECT_EQ(trace.devices[0].bytes, 24);
  EXPECT_EQ(trace.streams[trace.devices[0].stream].device, 1);
}

TEST_F(Chakra, StartsCyclesAnyway) {
  const Trace trace = read(chakra_file({
      node({.id = 1, .name = "a", .rest = took(1) + is_cpu(true), .data = {2}}),
      node({.id = 2, .name = "b", .rest = took(1) + is_cpu(true), .data = {1, 2, 99}}),
  }));
  EXPECT_EQ(times_of(trace), "a 0-1, b 1-2 |");
  EXPECT_EQ(trace.notes.count("nodes that depend on themselves in a cycle, started anyway"), 1);
  EXPECT_EQ(trace.notes.count("dependencies on nodes that the file does not contain"), 1);
}

TEST_F(Chakra, MovesDeviceNodesThatOverlapOnTheirStream) {
  const Trace trace = read(chakra_file({
      node({.id = 1, .name = "a", .rest = at(10, 10) + is_cpu(false) + int64("stream", 7)}),
      node({.id = 2, .name = "b", .rest = at(15, 10) + is_cpu(false) + int64("stream", 7)}),
      node({.id = 3, .name = "c", .rest = at(15, 10) + is_cpu(false) + int64("stream", 8)}),
  }));
  EXPECT_EQ(times_of(trace), " |, a 0-10, b 10-20, c 5-15");
  EXPECT_EQ(
      trace.notes.count(
          "device nodes that start while another runs on their stream, delayed until it ends"),
      1);
}

TEST_F(Chakra, ReadsTheMetadataOfTheOldestFiles) {
  const std::string attribute = proto_text(1, "schema") + proto_text(29, "1.0.1");
  for (const int field : {1, 2}) {
    const Trace trace = read(chakra_file(untimed_starts(), proto_text(field, attribute)));
    EXPECT_EQ(trace.metadata.at("schema"), "\"1.0.1\"");
  }
}

TEST_F(Chakra, SurvivesEveryCut) {
  const std::string whole = chakra_file(untimed_starts());
  int kept = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      kept += read(whole.substr(0, size)).hosts.empty() ? 0 : 1;
    } catch (const TraceError&) {
    }
  }
  EXPECT_GT(kept, 100);
}

TEST_F(Chakra, SurvivesEveryFlippedByte) {
  const std::string whole = chakra_file(untimed_starts());
  // Everything that is read: records and notes, or the reason why there are none.
  const auto result_of = [&](const std::string& bytes) {
    try {
      const Trace trace = read(bytes);
      std::string result = describe(trace);
      for (const Note& note : trace.notes.all()) result += note.text + note.example;
      for (const auto& [key, value] : trace.metadata) result += key + value;
      return result;
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
  };
  const std::string sound = result_of(whole);
  std::size_t noticed = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned mask : {1U, 0x80U, 0xffU}) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(static_cast<unsigned char>(flipped[i]) ^ mask);
      noticed += result_of(flipped) != sound ? 1U : 0U;
    }
  }
  // Two of three flips are noticed; the others are in fields that a trace cannot store.
  EXPECT_GT(noticed, 3 * whole.size() * 6 / 10) << 3 * whole.size();
}

TEST_F(Chakra, SaysWhyAFileCannotBeUsed) {
  EXPECT_EQ(refusal(chakra_file({})).substr(0, 24), "job.0.et: must be a trac");
  EXPECT_EQ(refusal(chakra_file({std::string("\x08\x01\x12\x50", 4)})),
            "job.0.et: must contain nodes, but has none");
  EXPECT_EQ(refusal(chakra_file({}) + proto_varint(1000) + "\x08\x01"),
            "job.0.et: must contain nodes, but ends or is damaged before the first one");
}

TEST_F(Chakra, RanksComeFromTheNames) {
  EXPECT_EQ(read(chakra_file(untimed_starts()), "job.12.et").rank, 12);
  EXPECT_EQ(read(gzip(chakra_file(untimed_starts())), "job.3.et.gz").rank, 3);
}

}  // namespace
}  // namespace foretrace
