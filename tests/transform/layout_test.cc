// channels_last and batchnorm_restructure: kernels around convolutions that become unnecessary.

#include <gtest/gtest.h>

#include "support/simulated.h"

namespace foretrace {
namespace {

constexpr auto kNorm = R"(
    cpu:    L:launch 1, M:launch 1, N:launch 1, O:launch 1
    stream: "c conv" 3, "b cudnn::bn_fw_tr" 4, "r relu" 2, "d conv" 3, "t relu" 2
    L -> "c conv"
    M -> "b cudnn::bn_fw_tr"
    N -> "r relu"
    O -> "d conv"
)";

TEST(BatchnormRestructure, HalfOfTheBytesAndNoActivationBeside) {
  EXPECT_EQ(simulated(kNorm), R"(
cpu    |LMNO...........|
stream |.cccbbbbrrdddtt|
)");
  EXPECT_EQ(simulated(kNorm, R"({"use": "batchnorm_restructure"})"), R"(
cpu    |LMO........|
stream |.cccbbdddtt|
)");
}

TEST(BatchnormRestructure, ActivationsMayStay) {
  EXPECT_EQ(simulated(kNorm, R"({"use": "batchnorm_restructure", "keep_activations": true})"), R"(
cpu    |LMNO.........|
stream |.cccbbrrdddtt|
)");
}

TEST(BatchnormRestructure, AConvolutionIsNoActivationWhateverItsName) {
  EXPECT_EQ(simulated("stream: \"c volta_scudnn_relu_interior\" 3, \"b cudnn::bn_fw_tr\" 4",
                      R"({"use": "batchnorm_restructure"})"),
            R"(
stream |cccbb|
)");
}

TEST(BatchnormRestructure, NamesThePublishedBound) {
  Graph graph = parse_graph(kNorm);
  const Effect effect = read_transform_text("batchnorm_restructure")->apply(graph, {});
  EXPECT_EQ(effect.summary,
            "1 batch normalization at 0.500 of their time, 1 activation beside them (2 us) gone");
  EXPECT_NE(effect.assumptions.at(0).find("12.7 %"), std::string::npos);
}

TEST(BatchnormRestructure, SaysWhatIsWrong) {
  EXPECT_EQ(simulated("stream: a 1", R"({"use": "batchnorm_restructure"})"),
            "norms: no kernel of \"where\" (kind kernel) has a name like "
            "\"/bn_[fb]w|[Bb]atch_?[Nn]orm|MIOpenBatchNorm/\"");
  EXPECT_EQ(simulated(kNorm, R"({"use": "batchnorm_restructure", "activations": ""})"),
            "activations: must be a part of a kernel's name");
}

constexpr auto kLayouts = R"(
    cpu:    K:launch 1, L:launch 1, M:launch 1, N:launch 1, O:launch 1
    stream: "n nchwToNhwcKernel" 2, "c h884cudnn" 4, "m nhwcToNchwKernel" 2, "o nchwToNhwcKernel" 2, "d h884cudnn" 4
    K -> "n nchwToNhwcKernel"
    L -> "c h884cudnn"
    M -> "m nhwcToNchwKernel"
    N -> "o nchwToNhwcKernel"
    O -> "d h884cudnn"
)";

TEST(ChannelsLast, OnlyTheInputIsStillConverted) {
  EXPECT_EQ(simulated(kLayouts), R"(
cpu    |KLMNO..........|
stream |.nnccccmmoodddd|
)");
  EXPECT_EQ(simulated(kLayouts, R"({"use": "channels_last"})"), R"(
cpu    |KLO........|
stream |.nnccccdddd|
)");
  EXPECT_EQ(simulated(kLayouts, R"({"use": "channels_last", "convert_input": false})"), R"(
cpu    |LO.......|
stream |.ccccdddd|
)");
}

TEST(ChannelsLast, AFactorIsForTensorCoresOnly) {
  constexpr auto kFactor = R"({"use": "channels_last", "factor": 0.5, "device": "v100-sxm2-32gb"})";
  EXPECT_EQ(simulated(kLayouts, kFactor), R"(
cpu    |KLO....|
stream |.nnccdd|
)");
  // Without TF32, and with tensors already in NHWC.
  EXPECT_EQ(simulated("stream: \"a tf32 xmma fprop\" 4, \"b h884cudnn nhwc\" 4", kFactor),
            "factor: no kernel of \"where\" (kind kernel) converts layouts or is a convolution "
            "that could gain");
}

TEST(ChannelsLast, SaysWhatIsWrong) {
  EXPECT_EQ(simulated(kNorm, R"({"use": "channels_last"})"),
            "conversions: no kernel of \"where\" (kind kernel) has a name like "
            "\"/nchwTo[Nn]hwc|nhwcTo[Nn]chw|NCHWToNHWC|NHWCToNCHW/\"; without conversions only "
            "\"factor\" gains anything");
}

}  // namespace
}  // namespace foretrace
