#include "trace/source_frame.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

std::string read(std::string_view text) {
  const auto frame = source_frame(text);
  if (!frame) return "none";
  return std::string(frame->file) + "|" + std::to_string(frame->line) + "|" +
         std::string(frame->function);
}

TEST(SourceFrame, AProfilersFrameHasItsLineInParentheses) {
  EXPECT_EQ(read("train.py(88): main"), "train.py|88|main");
  EXPECT_EQ(read("/a b/x.py(7): <module>"), "/a b/x.py|7|<module>");
}

TEST(SourceFrame, AFrameOfASnapshotHasItsLineBehindAColon) {
  EXPECT_EQ(read("/home/me/x.py:12 forward"), "/home/me/x.py|12|forward");
}

TEST(SourceFrame, WhatIsNotOfAPythonFileIsNoFrame) {
  EXPECT_EQ(read("<built-in method to of Tensor>"), "none");
  EXPECT_EQ(read("nn.Module: Linear_0"), "none");
  EXPECT_EQ(read("??:0 at::native::empty"), "none");
  EXPECT_EQ(read("x.py(many): f"), "none");
  EXPECT_EQ(read("x.py(99999999999999): f"), "none");
  EXPECT_EQ(read(""), "none");
}

TEST(SourceFrame, CellsOfNotebooksAreFramesOfOneFile) {
  EXPECT_EQ(read("<ipython-input-5-abc>(3): step"), "<ipython-input-5-abc>|3|step");
  EXPECT_EQ(portable_file("<ipython-input-5-abc>"), portable_file("/tmp/ipykernel_77/1.py"));
}

TEST(SourceFrame, CodeIsOwnUnlessItsPathOrPackageSaysOtherwise) {
  EXPECT_EQ(code_origin("train.py"), CodeOrigin::user);
  EXPECT_EQ(code_origin("models/gpt.py"), CodeOrigin::user);
  EXPECT_EQ(code_origin("/home/me/train.py"), CodeOrigin::user);
  EXPECT_EQ(code_origin("torch/nn/modules/linear.py"), CodeOrigin::framework);
  EXPECT_EQ(code_origin("/env/lib/python3.9/site-packages/torch/_ops.py"), CodeOrigin::framework);
  EXPECT_EQ(code_origin("transformers/utils/generic.py"), CodeOrigin::package);
  EXPECT_EQ(code_origin("/env/lib/python3.9/site-packages/mine/x.py"), CodeOrigin::package);
  EXPECT_EQ(code_origin("typing.py"), CodeOrigin::standard);
  EXPECT_EQ(code_origin("/usr/lib/python3.11/threading.py"), CodeOrigin::standard);
  EXPECT_EQ(code_origin("<frozen importlib._bootstrap>"), CodeOrigin::standard);
}

TEST(SourceFrame, InstalledFilesAreNamedFromTheirPackageOn) {
  EXPECT_EQ(portable_file("/env/lib/python3.9/site-packages/einops/e.py"), "einops/e.py");
  EXPECT_EQ(portable_file("/usr/lib/python3.11/json/encoder.py"), "json/encoder.py");
  EXPECT_EQ(portable_file("train.py"), "train.py");
}

}  // namespace
}  // namespace foretrace
