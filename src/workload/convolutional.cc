// Convolutional networks: a convolution is a matrix product of b * height * width rows, as many
// columns as it has outputs, and an inner size of inputs times kernel area (implicit GEMM). Batch
// norm and ReLU move bytes. Parameters are those of torchvision's models, exactly.

#include <cmath>
#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"
#include "workload/registered.h"

namespace foretrace {
namespace {

/// Bytes per output element: batch norm reads twice and writes once, ReLU reads and writes; the
/// backward pass moves about as much and reads the saved input again.
constexpr double kPixelBytes = 10, kPixelBackBytes = 14;
constexpr std::int64_t kConvolutionKernels = 3;

/// Blocks of the four stages, and whether they are bottlenecks.
struct ResNetShape {
  std::int64_t blocks[4];
  bool bottleneck;
};
const std::map<std::int64_t, ResNetShape> kResNets = {{18, {{2, 2, 2, 2}, false}},
                                                      {34, {{3, 4, 6, 3}, false}},
                                                      {50, {{3, 4, 6, 3}, true}},
                                                      {101, {{3, 4, 23, 3}, true}},
                                                      {152, {{3, 8, 36, 3}, true}}};
/// Number of convolutions in each of VGG's five stages.
const std::map<std::int64_t, std::vector<std::int64_t>> kVggs = {
    {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
constexpr std::int64_t kStages[] = {64, 128, 256, 512, 512};
constexpr std::int64_t kVggPooled = 7, kVggWide = 4096;

class Convolutional final : public Workload {
 public:
  void describe(Fields& fields) override {
    fields.choice("kind", kind_, {"resnet", "vgg"}, "Family of the network");
    fields.integer("depth", depth_, "18, 34, 50, 101, 152 for resnet; 11, 13, 16, 19 for vgg", 1);
    fields.integer("image", image_, "Height and width of an image", 32);
    fields.integer("classes", classes_, "Number of classes", 1);
  }

  void check() const override {
    if (kind_ == "resnet" ? !kResNets.contains(depth_) : !kVggs.contains(depth_))
      throw Error(fmt::format("depth: {} must have one of the depths {}, got {}", kind_,
                              kind_ == "resnet" ? "18, 34, 50, 101, 152" : "11, 13, 16, 19",
                              depth_));
  }

  std::int64_t layer_count() const override {
    return static_cast<std::int64_t>(layers(LayerSlice{}).size()) - 2;
  }
  std::int64_t tokens() const override { return 1; }
  std::vector<double> traits() const override {
    return {kind_ == "resnet" ? 0. : 4., std::log2(static_cast<double>(depth_)),
            std::log2(static_cast<double>(image_)), 0.};
  }

  LayerTable layers(const LayerSlice& slice) const override {
    check();
    if (slice.tensor > 1 || slice.context > 1 || slice.expert > 1)
      throw Error("convolutional networks must have 1 tensor, context and expert parallel rank");
    return kind_ == "resnet" ? resnet(slice) : vgg(slice);
  }

 private:
  struct Convolution {
    std::int64_t inputs, outputs, kernel, size;  ///< Height and width of the output.
    bool has_bias = false;
  };

  static void add(LayerRow& row, const LayerSlice& slice, const Convolution& convolution) {
    const auto pixels =
        static_cast<double>(slice.micro_batch * convolution.size * convolution.size);
    const auto outputs = static_cast<double>(convolution.outputs);
    const auto inner =
        static_cast<double>(convolution.inputs * convolution.kernel * convolution.kernel);
    row.gemms.push_back({pixels, outputs, inner});
    row.operations += 2 * pixels * outputs * inner;
    row.parameters += outputs * inner + outputs * (convolution.has_bias ? 1 : 2);
    row.moved_bytes += pixels * outputs * kPixelBytes;
    row.moved_back_bytes += pixels * outputs * kPixelBackBytes;
    row.kernels += kConvolutionKernels;
    const Bytes output{std::llround(pixels * outputs) * slice.element_bytes};
    row.kept += output + output;
    row.output = output;
  }

  static LayerRow with_memory(LayerRow row, const LayerSlice& slice, std::int64_t inputs,
                              std::int64_t size) {
    row.all_parameters = row.parameters;
    row.kept_selective = row.kept;
    row.kept_full = {slice.micro_batch * inputs * size * size * slice.element_bytes};
    row.working = row.output;
    return row;
  }

  LayerRow classifier(const LayerSlice& slice,
                      std::vector<std::pair<std::int64_t, std::int64_t>> sizes,
                      double pixels) const {
    LayerRow row{.name = "head", .kernels = 4};
    const auto images = static_cast<double>(slice.micro_batch);
    row.moved_bytes = row.moved_back_bytes = images * pixels * 2;
    for (const auto& [inner, columns] : sizes) {
      const auto k = static_cast<double>(inner), n = static_cast<double>(columns);
      row.gemms.push_back({images, n, k});
      row.operations += 2 * images * n * k;
      row.parameters += n * k + n;
      row.kept += {slice.micro_batch * (inner + columns) * slice.element_bytes};
    }
    row.all_parameters = row.parameters;
    row.kept_selective = row.kept_full = row.kept;
    return row;
  }

  LayerTable resnet(const LayerSlice& slice) const {
    const ResNetShape& shape = kResNets.at(depth_);
    LayerRow stem{.name = "stem"};
    add(stem, slice, {3, 64, 7, image_ / 2});
    LayerTable table{with_memory(stem, slice, 3, image_)};
    std::int64_t inputs = 64;
    for (std::int64_t stage = 0; stage < 4; ++stage) {
      const std::int64_t width = 64 << stage, size = image_ / (4 << stage);
      const std::int64_t outputs = shape.bottleneck ? 4 * width : width;
      for (std::int64_t i = 0; i < shape.blocks[stage]; ++i) {
        LayerRow row{.name = "block"};
        const std::int64_t before = i == 0 && stage > 0 ? 2 * size : size;
        if (i == 0 && inputs != outputs) add(row, slice, {inputs, outputs, 1, size});
        if (shape.bottleneck) {
          add(row, slice, {inputs, width, 1, before});
          add(row, slice, {width, width, 3, size});
          add(row, slice, {width, outputs, 1, size});
        } else {
          add(row, slice, {inputs, width, 3, size});
          add(row, slice, {width, width, 3, size});
        }
        table.push_back(with_memory(row, slice, inputs, before));
        inputs = outputs;
      }
    }
    const std::int64_t last = image_ / 32;
    table.push_back(
        classifier(slice, {{inputs, classes_}}, static_cast<double>(inputs * last * last)));
    return table;
  }

  LayerTable vgg(const LayerSlice& slice) const {
    LayerTable table;
    std::int64_t inputs = 3, size = image_;
    const std::vector<std::int64_t>& stages = kVggs.at(depth_);
    for (std::size_t stage = 0; stage < stages.size(); ++stage, size /= 2) {
      for (std::int64_t i = 0; i < stages[stage]; ++i) {
        LayerRow row{.name = "convolution"};
        add(row, slice, {inputs, kStages[stage], 3, size, true});
        table.push_back(with_memory(row, slice, inputs, size));
        inputs = kStages[stage];
      }
    }
    const std::int64_t flat = inputs * kVggPooled * kVggPooled;
    table.push_back(classifier(slice,
                               {{flat, kVggWide}, {kVggWide, kVggWide}, {kVggWide, classes_}},
                               static_cast<double>(flat)));
    return table;
  }

  std::string kind_ = "resnet";
  std::int64_t depth_ = 50, image_ = 224, classes_ = 1000;
};

}  // namespace

std::unique_ptr<Workload> make_convolutional() { return std::make_unique<Convolutional>(); }

}  // namespace foretrace
