#include "import/common/nvtx_op.h"

#include <gtest/gtest.h>

#include <string>

namespace foretrace {
namespace {

std::string parsed(std::string_view text) {
  const auto op = parse_nvtx_op(text);
  if (!op) return "none";
  return std::string(op->name) + "|" + std::to_string(op->sequence) + "|" +
         std::to_string(op->record_function) + "|" + std::string(op->sizes);
}

TEST(NvtxOp, ReadsWhatPyTorchWrites) {
  EXPECT_EQ(
      parsed("aten::add, seq = 12, op_id = 7, sizes = [[2, 3], [2, 3]], input_op_ids = [[6, 0]]"),
      "aten::add|12|7|[[2, 3], [2, 3]]");
  // As PyTorch 2.11 writes it.
  EXPECT_EQ(parsed("aten::t, seq = 8281, op_id = 107779, sizes = [[3072, 768]], "
                   "input_op_ids = [(107769,0), (0,-1)]"),
            "aten::t|8281|107779|[[3072, 768]]");
  EXPECT_EQ(parsed("aten::add, op_id = 7"), "aten::add|-1|7|");
  EXPECT_EQ(parsed("aten::add"), "aten::add|-1|-1|");
  EXPECT_EQ(parsed("AddBackward0, seq = 3"), "AddBackward0|3|-1|");
  EXPECT_EQ(parsed("AddBackward0, stashed seq=12, seq=40"), "AddBackward0|12|-1|");
  EXPECT_EQ(parsed("AddBackward0, seq=40, stashed seq=12"), "AddBackward0|12|-1|");
  EXPECT_EQ(parsed("autograd::engine::evaluate_function: AddBackward0, op_id = 9"),
            "autograd::engine::evaluate_function: AddBackward0|-1|9|");
  EXPECT_EQ(parsed("f(a, b), sizes = [[], [-1]]"), "f(a, b)|-1|-1|[[], [-1]]");
}

TEST(NvtxOp, LeavesRangesOfTheProgramAlone) {
  for (const std::string_view text :
       {"", "forward", "step 3, loss = 2", "ProfilerStep#3", "a, seq = ", "a, seq = 3 of 4",
        "a, sizes = [[1]", "a, sizes = [\"x\"]", ", seq = 3", "layer, sequence = 4",
        "a, op_id = 99999999999999999999"}) {
    EXPECT_EQ(parsed(text), "none") << text;
  }
}

}  // namespace
}  // namespace foretrace
