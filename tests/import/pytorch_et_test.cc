#include "import/execution_traces/pytorch_et.h"

#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "foretrace/import.h"
#include "import/files.h"
#include "trace/validate.h"

namespace foretrace {
namespace {

/// A node of schema 1.1.0.
std::string node(int id, int parent, const std::string& name, const std::string& rest = {}) {
  return R"json({"id": )json" + std::to_string(id) + R"json(, "name": ")json" + name +
         R"json(", "ctrl_deps": )json" + std::to_string(parent) +
         R"json(, "inputs": {"values": [], "shapes": [], "types": []}, )json" +
         R"json("outputs": {"values": [], "shapes": [], "types": []}, "attrs": [)json" +
         R"json({"name": "rf_id", "type": "uint64", "value": )json" + std::to_string(id + 100) +
         R"json(}, {"name": "tid", "type": "uint64", "value": 1}])json" + rest + "}";
}

std::string document(const std::string& nodes) {
  return R"json({"schema": "1.1.0-chakra.0.0.4", "pid": 7, "nodes": [)json" + nodes + "]}";
}

class PytorchEt : public testing::Test {
 protected:
  Trace read(const std::string& text, const std::string& name = "et.json") {
    Trace trace = import_trace(folder_.write(name, text));
    validate(trace);
    return trace;
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const TraceError& error) {
      return std::string(error.what()).substr(folder_.path().size() + 1);
    }
    return "none";
  }

  Folder folder_;
};

/// "name start-end" of each host record.
std::string order_of(const Trace& trace) {
  std::string text;
  for (const HostRecord& record : trace.hosts) {
    text += (text.empty() ? "" : ", ") + std::string(trace.names[record.name]) + " " +
            std::to_string(record.start_ns) + "-" +
            std::to_string(record.start_ns + record.duration_ns);
  }
  return text;
}

TEST_F(PytorchEt, PutsOpsIntoTheOrderInWhichTheyBegan) {
  const Trace trace = read(document(node(4, 3, "empty") + "," + node(5, 3, "zero_") + "," +
                                    node(3, 2, "zeros") + "," + node(6, 2, "add") + "," +
                                    node(2, 1, "[pytorch|profiler|execution_trace|thread]")));
  EXPECT_EQ(order_of(trace), "zeros 0-5, empty 1-2, zero_ 3-4, add 6-7");
  EXPECT_FALSE(trace.has_times);
  EXPECT_EQ(trace.format, "pytorch_et");
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(trace.threads[0].process, 7);
  EXPECT_EQ(trace.threads[0].id, 1);
  EXPECT_EQ(trace.op_details[trace.hosts[1].details].record_function, 104);
  EXPECT_EQ(trace.metadata.at("schema"), "\"1.1.0-chakra.0.0.4\"");
}

constexpr const char* kArguments =
    R"json("values": [[3, 4, 2, 6, 4, "cuda:1"], [[5, 6, 0, 1, 8, "cpu"], [7, 0, 0, 0, 4, "cpu"]], 2.5,
                  [0, 0, 0, 0, 0, ""]],
       "shapes": [[2, 3], [[1], []], [], []],
       "types": ["Tensor(float)", "GenericList[Tensor(long int),Tensor(float)]", "Double",
                 "Tensor(nullptr (uninitialized))"])json";

void expect_tensors(const Trace& trace) {
  ASSERT_EQ(trace.tensors.size(), 3U);
  const TensorRecord& first = trace.tensors[0];
  EXPECT_EQ(first.tensor, 3);
  EXPECT_EQ(first.storage, 4);
  EXPECT_EQ(first.offset_bytes, 8);
  EXPECT_EQ(first.bytes, 24);
  EXPECT_EQ(first.device, 1);
  EXPECT_EQ(first.argument, 0);
  EXPECT_FALSE(first.is_output);
  EXPECT_EQ(trace.names[first.type], "float");
  EXPECT_EQ(trace.names[first.shape], "[2, 3]");
  EXPECT_EQ(trace.tensors[1].tensor, 5);
  EXPECT_EQ(trace.tensors[1].argument, 1);
  EXPECT_EQ(trace.tensors[1].device, -1);
  EXPECT_EQ(trace.tensors[1].bytes, 8);
  EXPECT_EQ(trace.names[trace.tensors[1].type], "long int");
  EXPECT_EQ(trace.names[trace.tensors[1].shape], "[1]");
  EXPECT_EQ(trace.tensors[2].tensor, 7);
  const OpDetails& details = trace.op_details[trace.hosts[0].details];
  EXPECT_EQ(trace.names[details.values], R"json(["", "", 2.5, ""])json");
  EXPECT_EQ(trace.names[details.shapes], "[[2, 3], [[1], []], [], []]");
  EXPECT_EQ(details.sequence, 9);
  EXPECT_EQ(details.forward_thread, 2U);
  EXPECT_EQ(details.record_function, 11);
  EXPECT_EQ(trace.hosts[0].kind, HostKind::annotation);
}

TEST_F(PytorchEt, ReadsWhatAnOpWasGiven) {
  expect_tensors(read(document(
      std::string(R"json({"id": 3, "name": "f", "ctrl_deps": 1, "inputs": {)json") + kArguments +
      R"json(}, "outputs": {"values": []}, "attrs": [{"name": "rf_id", "type": "uint64", "value": 11},
      {"value": 9, "name": "seq_id"}, {"name": "fw_tid", "value": 2}, {"name": "scope", "value": 7},
      {"name": "op_schema", "value": "f(Tensor a) -> Tensor"}]})json")));
}

TEST_F(PytorchEt, ReadsTheFlatNodesOfTheFirstSchema) {
  std::string arguments = kArguments;
  for (const auto& [from, to] :
       {std::pair{"\"values\"", "\"inputs\""}, std::pair{"\"shapes\"", "\"input_shapes\""},
        std::pair{"\"types\"", "\"input_types\""}}) {
    arguments.replace(arguments.find(from), std::string(from).size(), to);
  }
  expect_tensors(read(R"json({"schema": "1.0.1", "nodes": [{"name": "f", "id": 3, "rf_id": 11,
      "parent": 1, "fw_parent": 0, "seq_id": 9, "scope": 7, "tid": 1, "fw_tid": 2, )json" +
                      arguments +
                      R"json(, "outputs": [], "output_shapes": [], "output_types": []}]})json"));
}

TEST_F(PytorchEt, MarksWhatAnOpWrote) {
  const Trace trace = read(document(
      R"json({"id": 3, "name": "f", "outputs": {"values": [[1, 2, 0, 5, 2, "cuda:0"]],
          "shapes": [[5]], "types": ["Tensor(c10::Half)"]
}
})json"));
  ASSERT_EQ(trace.tensors.size(), 1U);
  EXPECT_TRUE(trace.tensors[0].is_output);
  EXPECT_EQ(trace.tensors[0].bytes, 10);
}

TEST_F(PytorchEt, LeavesOutTensorsOfImpossibleSizes) {
  const Trace trace = read(document(
      R"json({"id": 3, "name": "f", "inputs": {"values": [[1, 2, 0, 4611686018427387904, 8, "cpu"],
          [1, 2, -1, 4, 8, "cpu"], [1, 2], 5], "shapes": [],
          "types": ["Tensor(float)", "Tensor(float)", "Tensor(float)", "Tensor(float)"]
}
})json"));
  EXPECT_EQ(trace.tensors.size(), 0U);
  EXPECT_EQ(trace.notes.count("tensors of an impossible size, left out"), 4);
}

TEST_F(PytorchEt, TakesNoCycleOfParents) {
  EXPECT_EQ(
      order_of(read(document(node(3, 4, "a") + "," + node(4, 3, "b") + "," + node(5, 5, "c")))),
      "a 0-3, b 1-2, c 4-5");
}

TEST_F(PytorchEt, CountsNodesThatAreNone) {
  const Trace trace = read(document(R"json(3, {"id": 1}, {"name": "x"}, {"id" 2}, [], )json" +
                                    node(3, 0, "a") + "," + node(3, 0, "b")));
  EXPECT_EQ(order_of(trace), "a 0-1, b 2-3");
  EXPECT_EQ(trace.notes.count("nodes that are not JSON or have no id or name, left out"), 5);
  EXPECT_EQ(trace.notes.count("nodes with the id of another node"), 1);
}

TEST_F(PytorchEt, KeepsWhatIsInFrontOfACut) {
  const std::string whole = document(node(3, 0, "a") + "," + node(4, 0, "b"));
  int kept = 0;
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    try {
      const Trace trace = read(whole.substr(0, size));
      EXPECT_EQ(trace.notes.all().size(), 1U) << size;
      ++kept;
    } catch (const TraceError&) {
    }
  }
  EXPECT_GT(kept, 20);
}

TEST_F(PytorchEt, SaysWhyAFileCannotBeUsed) {
  EXPECT_EQ(refusal(R"json({"schema": "1.1.0", "nodes": []})json"),
            "et.json: must contain nodes, but its list of nodes is empty");
  EXPECT_EQ(refusal(R"json({"schema": "1.1.0", "nodes": 5})json"),
            "et.json: must have \"nodes\", a list");
  EXPECT_EQ(refusal(R"json({"schema": "1.1.0", "nodes": [{"id": 1}]})json"),
            "et.json: must contain ops, but none of its 1 nodes is one");
  EXPECT_EQ(refusal(R"json({"schema": "1.1.0", "nodes": [)json" + std::string(1000, '[')),
            "et.json: values nest deeper than 64 levels, at byte 30");
}

TEST_F(PytorchEt, ReadsAnyWindow) {
  const std::string text = document(node(4, 3, "empty") + "," + node(3, 2, "zeros"));
  class Bytes : public Source {
   public:
    explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}
    std::size_t read(char* to, std::size_t room) override {
      const std::size_t part = bytes_.copy(to, room, at_);
      at_ += part;
      return part;
    }

   private:
    std::string bytes_;
    std::size_t at_ = 0;
  };
  for (std::size_t window = 64; window < 300; window += 13) {
    Bytes bytes(text);
    EXPECT_EQ(order_of(PytorchDocument(bytes, window).read()), "zeros 0-3, empty 1-2");
  }
}

TEST_F(PytorchEt, TakesTheRankFromTheEndOfTheName) {
  const std::string text = document(node(3, 0, "a"));
  EXPECT_EQ(read(text, "dlrm_eg_3.json").rank, 3);
  EXPECT_EQ(read(text, "et_rank12.json").rank, 12);
  EXPECT_EQ(read(text, "resnet_et_2023.json").rank, 0);
  EXPECT_EQ(read(text, "1.0.2-chakra.0.0.4.json").rank, 0);
  EXPECT_EQ(read(text, "gpt2.json").rank, 0);
}

}  // namespace
}  // namespace foretrace
