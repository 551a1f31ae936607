#include "import/execution_traces/link_execution_trace.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "foretrace/error.h"
#include "import/files.h"
#include "import/protobuf_bytes.h"
#include "support/corpus.h"
#include "trace/validate.h"

namespace foretrace {
namespace {

/// A Kineto trace of ops one after another; if `first_id` is 0, they have no ids.
std::string kineto(const std::vector<std::string>& names, int first_id = 0, int rank = 0) {
  std::string events;
  for (std::size_t i = 0; i < names.size(); ++i) {
    events += std::string(i == 0 ? "" : ",") + R"json({"ph": "X", "cat": "cpu_op", "name": ")json" +
              names[i] + R"json(", "pid": 1, "tid": 2, "ts": )json" + std::to_string(10 * i) +
              R"json(, "dur": 5, "args": {"Record function id": )json" +
              std::to_string(first_id == 0 ? 0 : first_id + static_cast<int>(i)) + "}}";
  }
  return R"json({"distributedInfo": {"rank": )json" + std::to_string(rank) +
         R"json(, "world_size": 2}, "traceEvents": [)json" + events + "]}";
}

/// An execution trace in which each op reads a tensor with the op's number.
std::string execution(const std::vector<std::string>& names, int first_id = 1) {
  std::string nodes;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    nodes += std::string(i == 0 ? "" : ",") + R"json({"id": )json" + number +
             R"json(, "name": ")json" + names[i] + R"json(", "rf_id": )json" +
             std::to_string(first_id + static_cast<int>(i)) +
             R"json(, "parent": 0, "tid": 1, "inputs": [[)json" + number +
             R"json(, 1, 0, 1, 4, "cuda:0"]], "input_shapes": [[]], "input_types": ["Tensor(float)"]
  })json";
  }
  return R"json({"schema": "1.0.1", "nodes": [)json" + nodes + "]}";
}

const std::vector<std::string> kOps = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

class LinkExecutionTrace : public testing::Test {
 protected:
  Trace linked(const std::string& profile, const std::string& nodes) {
    Trace trace =
        import_trace(folder_.write("kineto.json", profile),
                     {.cache_folder = {}, .execution_trace = folder_.write("et.json", nodes)});
    validate(trace);
    return trace;
  }

  Folder folder_;
};

/// "op:tensor" for each tensor.
std::string tensors_of(const Trace& trace) {
  std::string text;
  for (const TensorRecord& tensor : trace.tensors) {
    text += (text.empty() ? "" : " ") + std::string(trace.names[trace.hosts[tensor.host].name]) +
            ":" + std::to_string(tensor.tensor);
  }
  return text;
}

constexpr const char* kByIds =
    "ops found in the execution trace of the same run, by the ids of their record functions";
constexpr const char* kByNames =
    "ops found in the execution trace of the same run, by the order of their names on each thread";
constexpr const char* kMissing = "ops of the execution trace that are missing in this trace";

TEST_F(LinkExecutionTrace, MatchesByRecordFunction) {
  const Trace trace = linked(kineto({"x", "a", "b", "a"}, 9), execution({"a", "b", "a"}, 10));
  EXPECT_EQ(tensors_of(trace), "a:1 b:2 a:3");
  EXPECT_EQ(trace.tensors[2].host, 3U);
  EXPECT_EQ(trace.notes.count(kByIds), 3);
  EXPECT_EQ(trace.names[trace.tensors[0].type], "float");
}

TEST_F(LinkExecutionTrace, MatchesByNamesWhereIdsDiffer) {
  std::vector<std::string> longer = {"x", "y"};
  longer.insert(longer.end(), kOps.begin(), kOps.end());
  longer.push_back("z");
  const Trace trace = linked(kineto(longer, 1), execution(kOps, 1));
  EXPECT_EQ(tensors_of(trace), "a:1 b:2 c:3 d:4 e:5 f:6 g:7 h:8 i:9 j:10");
  EXPECT_EQ(trace.notes.count(kByNames), 10);
  EXPECT_EQ(trace.notes.count(kMissing), 0);
}

TEST_F(LinkExecutionTrace, CountsWhatIsMissing) {
  std::vector<std::string> fewer = kOps;
  fewer.erase(fewer.begin() + 2);
  const Trace trace = linked(kineto(fewer), execution(kOps));
  EXPECT_EQ(tensors_of(trace), "a:1 b:2 d:4 e:5 f:6 g:7 h:8 i:9 j:10");
  EXPECT_EQ(trace.notes.count(kMissing), 1);
}

TEST_F(LinkExecutionTrace, LeavesAloneWhatIsOfAnotherRun) {
  const Trace trace = linked(kineto({"p", "q", "a", "r"}, 1), execution(kOps, 1));
  EXPECT_EQ(tensors_of(trace), "");
  ASSERT_EQ(trace.notes.all().size(), 1U);
  EXPECT_EQ(trace.notes.all()[0].severity, Severity::warning);
  EXPECT_EQ(trace.notes.all()[0].text,
            "execution traces that do not belong to this trace, not linked");
  EXPECT_EQ(trace.notes.all()[0].example, "only 0 % of its 10 ops are in this trace");
}

TEST_F(LinkExecutionTrace, PairsTheRanksOfAFolder) {
  folder_.write("run/kineto_0.json", kineto(kOps, 0, 0));
  folder_.write("run/kineto_1.json", kineto(kOps, 0, 1));
  folder_.write("run/et_1.json", execution(kOps));
  const std::vector<Trace> traces = import_all(folder_ / "run");
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[0].tensors.size(), 0U);
  EXPECT_EQ(traces[1].tensors.size(), 10U);
  ASSERT_EQ(traces[0].files.size(), 1U);
  EXPECT_EQ(traces[0].files[0].path, folder_ / "run/kineto_0.json");
  ASSERT_EQ(traces[1].files.size(), 2U);
  EXPECT_EQ(traces[1].files[0].path, folder_ / "run/kineto_1.json");
  EXPECT_EQ(traces[1].files[1].path, folder_ / "run/et_1.json");
  EXPECT_EQ(traces[1].files[1].format, "pytorch_et");
}

TEST_F(LinkExecutionTrace, PicksTheOneThatFitsAmongSeveral) {
  folder_.write("run/kineto.json", kineto(kOps));
  folder_.write("run/a.json", execution({"p", "q", "r"}));
  folder_.write("run/b.json", execution(kOps));
  const std::vector<Trace> traces = import_all(folder_ / "run");
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(tensors_of(traces[0]).substr(0, 7), "a:1 b:2");
  EXPECT_EQ(
      traces[0].notes.count("execution traces that were not linked with a trace next to them"), 1);
}

TEST_F(LinkExecutionTrace, AFolderOfExecutionTracesIsThoseTraces) {
  folder_.write("run/et_0.json", execution(kOps));
  folder_.write("run/et_1.json", execution(kOps));
  const std::vector<Trace> traces = import_all(folder_ / "run");
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_EQ(traces[1].rank, 1);
}

TEST_F(LinkExecutionTrace, ATraceOfChakraNeedsNoneOfPyTorch) {
  const std::string node =
      proto_number(1, 1) + proto_text(2, "add") + proto_number(3, 4) + proto_number(7, 10);
  folder_.write("run/job.0.et", proto_delimited(proto_text(1, "0.0.4")) + proto_delimited(node));
  folder_.write("run/et_0.json", execution(kOps));
  const std::vector<Trace> traces = import_all(folder_ / "run");
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0].format, "chakra");
}

TEST_F(LinkExecutionTrace, RefusesWhatIsNoExecutionTrace) {
  const std::string profile = folder_.write("kineto.json", kineto(kOps));
  EXPECT_THROW(import_trace(profile, {.cache_folder = {}, .execution_trace = profile}), TraceError);
  EXPECT_THROW(import_trace(profile, {.cache_folder = {}, .execution_trace = folder_ / "none"}),
               TraceError);
  const std::string et = folder_.write("et.json", execution(kOps));
  EXPECT_THROW(import_trace(et, {.cache_folder = {}, .execution_trace = et}), TraceError);
}

/// Real pairs: {profile, execution trace, note, ops found, ops in all}. Ops that start within the
/// same microsecond may change places, which loses a few of the ops that are matched by name.
TEST_F(LinkExecutionTrace, FindsTheOpsOfRealPairs) {
  const char* corpus = std::getenv("FORETRACE_CORPUS");
  if (corpus == nullptr) GTEST_SKIP() << kNoCorpus;
  struct Pair {
    std::string profile, execution;
    const char* note;
    std::int64_t least, all;
  };
  const Pair pairs[] = {
      {"megatron-tp2/kineto_0.pt.trace.json.gz", "megatron-tp2/pytorch_et_0.json.gz", kByIds, 1880,
       1881},
      {"megatron-tp2/kineto_1.pt.trace.json.gz", "megatron-tp2/pytorch_et_1.json.gz", kByIds, 1880,
       1881},
      {"hta-small/benchmark_simple_add_trace.json.gz", "hta-small/benchmark_simple_add_et.json.gz",
       kByNames, 36, 36},
      {"param-resnet/resnet_kineto.json.gz", "param-resnet/resnet_et_2023.json.gz", kByNames, 1310,
       1310},
      {"dlrm-8rank/dlrm_kineto.tar.gz:dlrm_kineto/worker5_step_12.1694128201549.pt.trace.json",
       "dlrm-8rank/dlrm_pytorch_et.tar.gz:dlrm_pytorch_et/dlrm_eg_5.json", kByNames, 1665, 1672},
  };
  for (const Pair& pair : pairs) {
    SCOPED_TRACE(pair.profile);
    const std::string root = std::string(corpus) + "/";
    if (!std::filesystem::exists(root + pair.profile.substr(0, pair.profile.find(".gz") + 3)))
      continue;
    const Trace trace = import_trace(
        root + pair.profile, {.cache_folder = {}, .execution_trace = root + pair.execution});
    EXPECT_GE(trace.notes.count(pair.note), pair.least);
    EXPECT_EQ(trace.notes.count(pair.note) + trace.notes.count(kMissing), pair.all);
    EXPECT_FALSE(trace.tensors.empty());
  }
}

}  // namespace
}  // namespace foretrace
