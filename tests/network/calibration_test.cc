// Measured times are read in both forms, and a calibration finds the numbers that made them again.
// On data measured by others, calibrations predict node counts that they did not see.

#include "network/nccl/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/statistics.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr const char* kPerf = R"(# Collective test starting: all_gather_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 2048 step: 2(factor) warmup iters: 5
#
# Using devices
#  Rank  0 Group  0 Pid   1001 on      node0 device  0 [0x1b] NVIDIA H100
#  Rank  1 Group  0 Pid   1002 on      node0 device  1 [0x43] NVIDIA H100
#  Rank  2 Group  0 Pid   1003 on      node1 device  0 [0x1b] NVIDIA H100
#  Rank  3 Group  0 Pid   1004 on      node1 device  1 [0x43] NVIDIA H100
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float    none      -1     0.11    0.00    0.00      0     0.11    0.00    0.00      0
        1024            64     float    none      -1    21.50    0.05    0.04      0    21.10    0.05    0.04      0
        2048           128     float    none      -1    22.75    0.09    0.07      0    22.40    0.09    0.07      0
# Out of bounds values : 0 OK
)";

std::vector<MeasuredCollective> read(const std::string& text, const RowFilter& only = {}) {
  std::istringstream in(text);
  return read_measured(in, Operation::all_reduce, only);
}

std::string reading_refused(const std::string& text, const RowFilter& only = {}) {
  try {
    read(text, only);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Measured, OutputOfNcclTests) {
  const auto rows = read(kPerf);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].operation, Operation::all_gather);
  EXPECT_EQ(rows[1].ranks, 4U);
  EXPECT_EQ(rows[1].nodes, 2U);
  EXPECT_EQ(rows[1].bytes.count, 2048);
  EXPECT_DOUBLE_EQ(rows[1].us, 22.75);
}

TEST(Measured, CsvWithOtherColumnsAndQuotes) {
  const std::string csv =
      "machine,gpus,nodes,collective,bytes,time_us\n"
      "\"A, with comma\",8,2,alltoall,1024,20.5\n"
      "B,8,,all_reduce,1024,10\n";
  const auto rows = read(csv);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].operation, Operation::all_to_all);
  EXPECT_EQ(rows[1].nodes, 1U);
  EXPECT_EQ(read(csv, {"machine=B"}).size(), 1U);
}

TEST(Measured, SaysWhatItCannotRead) {
  EXPECT_EQ(reading_refused("nothing here\n"), "has no measured collective");
  EXPECT_EQ(reading_refused("gpus,nodes,collective,bytes,time\n").substr(0, 44),
            "line 1: there is no column 'time_us' (did yo");
  EXPECT_EQ(reading_refused("gpus,nodes,collective,bytes,time_us\n8,1,all_reduce,x,1\n"),
            "line 2: bytes, time_us and gpus must be numbers");
  EXPECT_EQ(reading_refused("gpus,nodes,collective,bytes,time_us\n8,1\n"),
            "line 2: must have 5 cells, as the heading has, got 2");
  EXPECT_EQ(reading_refused("        1024   64  float  sum  -1  21.50  0.05  0.04  0\n"),
            "line 1: must list the ranks before the first size, as nccl-tests does");
}

/// Rows computed by a model, for some numbers of nodes.
std::vector<MeasuredCollective> made_by(const CollectiveModel& model,
                                        std::initializer_list<std::uint32_t> nodes) {
  std::vector<MeasuredCollective> rows;
  for (const std::uint32_t count : nodes) {
    for (std::int64_t bytes = 8; bytes <= 1'000'000'000; bytes *= 4)
      rows.push_back({Operation::all_reduce,
                      4 * count,
                      count,
                      {bytes},
                      model.us(Operation::all_reduce, {count, 4}, {bytes})});
  }
  return rows;
}

TEST(Calibration, FindsTheModelThatMadeTheRowsAgain) {
  const CollectiveModel truth{12, 1.5, 9, 230, 22, .5};
  const Calibration found(made_by(truth, {1, 8, 64}), RankPlaces{});
  for (const std::uint32_t nodes : {2U, 4U, 16U, 32U}) {
    for (const std::int64_t bytes : {64, 65'536, 67'108'864}) {
      const double expected = truth.us(Operation::all_reduce, {nodes, 4}, {bytes});
      const CalibratedTime time = found.time(Operation::all_reduce, {nodes, 4}, {bytes});
      EXPECT_NEAR(time.us / expected, 1, .05) << nodes << " nodes, " << bytes;
    }
  }
}

TEST(Calibration, GivesBackWhatItSawAndSaysWhereItEnds) {
  const Calibration found(made_by({}, {1, 8, 64}), RankPlaces{});
  const auto time = [&](std::uint32_t nodes, std::uint32_t per_node, std::int64_t bytes) {
    return found.time(Operation::all_reduce, {nodes, per_node}, {bytes});
  };
  EXPECT_NEAR(time(8, 4, 8).us, CollectiveModel{}.us(Operation::all_reduce, {8, 4}, {8}), 1e-6);
  EXPECT_TRUE(time(16, 4, 1 << 20).is_covered);
  EXPECT_LE(time(16, 4, 1 << 20).lower_us, time(16, 4, 1 << 20).us);
  EXPECT_GE(time(16, 4, 1 << 20).upper_us, time(16, 4, 1 << 20).us);
  EXPECT_FALSE(time(128, 4, 1 << 20).is_covered);
  EXPECT_FALSE(time(16, 8, 1 << 20).is_covered);
  EXPECT_FALSE(time(16, 4, 4).is_covered);
}

TEST(Calibration, RepeatsThatDifferWidenIntervals) {
  auto rows = made_by({}, {1, 8, 64});
  const auto width = [&] {
    const CalibratedTime time =
        Calibration(rows, RankPlaces{}).time(Operation::all_reduce, {8, 4}, {1 << 20});
    return time.upper_us / time.us;
  };
  const double alike = width();
  const std::size_t once = rows.size();
  for (std::size_t i = 0; i < once; ++i) rows.push_back(rows[i]), rows.back().us *= 3;
  EXPECT_GT(width(), 1.5 * alike);
}

TEST(Calibration, ReadsBackWhatItWrites) {
  const Calibration found(made_by({}, {1, 8}), RankPlaces{});
  const Calibration again(nlohmann::json::parse(found.json().dump()));
  EXPECT_EQ(again.json(), found.json());
  EXPECT_THROW(Calibration(nlohmann::json::array()), Error);
  nlohmann::json broken = found.json();
  broken["operations"]["all_reduce"]["base_us"] = 0;
  EXPECT_THROW(Calibration{broken}, Error);
}

TEST(Calibration, RefusesCountsThatDoNotFit) {
  const nlohmann::json written = Calibration(made_by({}, {1, 8}), RankPlaces{}).json();
  for (const nlohmann::json count : {8e33, 1.5, -1.0, 5e9}) {
    nlohmann::json broken = written;
    broken["rows"] = count;
    EXPECT_THROW(Calibration{broken}, Error) << count;
    broken = written;
    broken["operations"]["all_reduce"]["shapes"][0]["nodes"] = count;
    EXPECT_THROW(Calibration{broken}, Error) << count;
  }
  for (const nlohmann::json& wrong :
       {nlohmann::json(5), nlohmann::json("x"), nlohmann::json(), nlohmann::json::array(),
        nlohmann::json::object(), nlohmann::json(true)}) {
    for (const char* place :
         {"/schema", "/rows", "/operations/all_reduce", "/operations/all_reduce/shapes",
          "/operations/all_reduce/shapes/0", "/operations/all_reduce/shapes/0/residuals",
          "/operations/all_reduce/shapes/0/residuals/0"}) {
      if (wrong == 5 && std::string_view(place) == "/rows") continue;
      nlohmann::json broken = written;
      broken[nlohmann::json::json_pointer(place)] = wrong;
      EXPECT_THROW(Calibration{broken}, Error) << place << ": " << wrong;
    }
  }
  nlohmann::json as_double = written;
  as_double["rows"] = written["rows"].get<double>();
  EXPECT_EQ(Calibration(as_double).json(), written);
}

/// How well the times of node counts that were not used for calibration are predicted.
struct HeldOutNodes {
  double error = 0;   ///< Median.
  double inside = 0;  ///< Share of times within their interval.
};

HeldOutNodes held_out(const std::string& machine, const std::vector<std::uint32_t>& calibrated,
                      const std::vector<Operation>& operations, std::int64_t least_bytes) {
  const std::string path =
      std::string(std::getenv("FORETRACE_CORPUS")) + "/../data/measured/nccl.csv";
  std::vector<MeasuredCollective> seen, asked;
  for (const MeasuredCollective& row :
       read_measured_file(path, Operation::all_reduce, {"machine=" + machine})) {
    const bool is_seen =
        std::find(calibrated.begin(), calibrated.end(), row.nodes) != calibrated.end();
    const bool is_asked =
        std::find(operations.begin(), operations.end(), row.operation) != operations.end();
    if (is_seen)
      seen.push_back(row);
    else if (is_asked && row.bytes.count >= least_bytes)
      asked.push_back(row);
  }
  const Calibration calibration(seen, RankPlaces{});
  std::vector<double> errors;
  double inside = 0;
  for (const MeasuredCollective& row : asked) {
    const CalibratedTime time =
        calibration.time(row.operation, {row.nodes, row.ranks / row.nodes}, row.bytes);
    errors.push_back(std::abs(time.us / row.us - 1));
    inside += time.lower_us <= row.us && row.us <= time.upper_us ? 1 : 0;
  }
  const auto count = static_cast<double>(errors.size());
  return {median(errors), inside / count};
}

TEST(Calibration, PredictsNodeCountsOfMeasuredClusters) {
  if (std::getenv("FORETRACE_CORPUS") == nullptr) GTEST_SKIP() << "needs FORETRACE_CORPUS";
  EXPECT_LE(held_out("Alps", {1, 8, 128}, {Operation::all_reduce}, 0).error, .15);
  for (const Operation operation :
       {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter,
        Operation::all_to_all, Operation::send_receive}) {
    SCOPED_TRACE(to_string(operation));
    EXPECT_LE(held_out("cluster01", {1, 2}, {operation}, 1 << 20).error, .08);
  }
}

TEST(Calibration, IntervalsHoldMostOfWhatWasNotSeen) {
  if (std::getenv("FORETRACE_CORPUS") == nullptr) GTEST_SKIP() << "needs FORETRACE_CORPUS";
  const std::vector<Operation> rings = {Operation::all_reduce, Operation::all_gather,
                                        Operation::reduce_scatter};
  EXPECT_NEAR(held_out("Alps", {1, 8, 128}, rings, 0).inside, .8, .1);
  EXPECT_NEAR(held_out("cluster01", {1, 2}, rings, 1 << 20).inside, .8, .1);
  EXPECT_GE(held_out("cluster01", {1, 2}, {Operation::all_to_all}, 1 << 20).inside, .75);
}

}  // namespace
}  // namespace foretrace
