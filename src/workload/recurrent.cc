// Stacked LSTM layers. The product with the input of all s steps is one matrix product of s b rows;
// the product with the state is one product of b rows per step, which overlaps nothing:
//
//     parameters of a layer   4 h (h_in + h) + 8 h        (two biases, as cuDNN has)

#include <cmath>

#include "foretrace/error.h"
#include "workload/registered.h"

namespace foretrace {
namespace {

constexpr double kGates = 4;
/// Bytes per element of the state and step: four gates read, cell read and written, state written;
/// about twice as many in the backward pass.
constexpr double kCellBytes = 14, kCellBackBytes = 28;
constexpr double kLogitBytes = 18, kLogitBackBytes = 10;  ///< Per logit, as in transformer.cc.

class Recurrent final : public Workload {
 public:
  void describe(Fields& fields) override {
    fields.integer("layers", layers_, "LSTM layers", 1);
    fields.integer("hidden", hidden_, "Width of the state, and of the embedding", 1);
    fields.integer("vocabulary", vocabulary_, "Number of distinct tokens", 1);
    fields.integer("sequence", sequence_, "Tokens of a sample", 1);
    fields.flag("tied", tied_, "Embedding and head share their table");
  }

  std::int64_t layer_count() const override { return layers_; }
  std::int64_t tokens() const override { return sequence_; }
  std::vector<double> traits() const override {
    return {std::log2(static_cast<double>(hidden_)), -4., std::log2(static_cast<double>(layers_)),
            0.};
  }

  LayerTable layers(const LayerSlice& slice) const override {
    if (slice.tensor > 1 || slice.context > 1 || slice.expert > 1)
      throw Error("recurrent networks must have 1 tensor, context and expert parallel rank");
    const auto h = static_cast<double>(hidden_), v = static_cast<double>(vocabulary_);
    const auto b = static_cast<double>(slice.micro_batch), s = static_cast<double>(sequence_);
    const auto bytes = [](double count) { return Bytes{std::llround(count)}; };
    const Bytes state = bytes(b * s * h * static_cast<double>(slice.element_bytes));
    LayerRow embedding{.name = "embedding", .kernels = 2, .parameters = v * h};
    embedding.all_parameters = v * h;
    embedding.moved_bytes = embedding.moved_back_bytes = b * s * h * 4;
    embedding.kept = embedding.kept_selective = embedding.kept_full = state;
    embedding.output = state;
    LayerRow layer{.name = "lstm", .count = layers_};
    layer.gemms = {{b * s, kGates * h, h}};
    for (std::int64_t i = 0; i < sequence_; ++i) layer.gemms.push_back({b, kGates * h, h});
    layer.kernels = 2 * sequence_ + 1;
    layer.operations = 2 * b * s * kGates * h * 2 * h;
    layer.parameters = layer.all_parameters = kGates * h * 2 * h + 2 * kGates * h;
    layer.moved_bytes = b * s * h * kCellBytes, layer.moved_back_bytes = b * s * h * kCellBackBytes;
    layer.kept = layer.kept_selective =
        bytes(b * s * h * (kGates + 2) * static_cast<double>(slice.element_bytes));
    layer.kept_full = layer.output = layer.working = state;
    LayerRow head{.name = "head", .gemms = {{b * s, v, h}}, .kernels = 6};
    head.operations = 2 * b * s * v * h;
    head.moved_bytes = b * s * v * kLogitBytes, head.moved_back_bytes = b * s * v * kLogitBackBytes;
    head.parameters = v * h + v;
    head.all_parameters = (tied_ ? 0 : v * h) + v;
    head.kept = head.kept_selective = head.kept_full = bytes(b * s * (h * 2 + v * 4));
    head.working = bytes(b * s * v * 6);
    return {embedding, layer, head};
  }

 private:
  std::int64_t layers_ = 2, hidden_ = 1024, vocabulary_ = 32000, sequence_ = 128;
  bool tied_ = false;
};

}  // namespace

std::unique_ptr<Workload> make_recurrent() { return std::make_unique<Recurrent>(); }

}  // namespace foretrace
