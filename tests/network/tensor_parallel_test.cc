// Tensor parallelism in one, two, two and a half and three dimensions: the traffic of one linear
// layer, forward and backward, as rings. The published terms are in sizes of a whole tensor, with
// inputs, weights and outputs of the same size.

#include <gtest/gtest.h>

#include <cmath>

#include "network/collective.h"
#include "support/expand.h"

namespace foretrace {
namespace {

constexpr LinkCost kPort{5us, Bandwidth{12.5e9}, 0};
constexpr std::int64_t kTensor = 1 << 30;

/// Equal collectives, one after the other.
struct Part {
  Operation operation;
  std::uint32_t ranks;
  double share;  ///< Share of a whole tensor in the buffer.
  int times;
};

struct Layer {
  const char* name;
  std::vector<Part> parts;
  double bandwidth;  ///< Published: tensors over a port.
  double steps;      ///< Published.
};

/// 1-D: all devices reduce the output, or the gradient of the input.
Layer one_dimension(std::uint32_t p, double bandwidth) {
  return {"1-D", {{Operation::all_reduce, p, 1, 1}}, bandwidth, 2.0 * (p - 1)};
}

/// Rows and columns of q devices gather both operands, once forward and twice backward; with depth
/// d the input is divided into d times as many parts.
Layer two_dimensions(std::uint32_t q, std::uint32_t d, double bandwidth) {
  return {d == 1 ? "2-D" : "2.5-D",
          {{Operation::all_gather, q, 1.0 / d, 3}, {Operation::all_gather, q, 1, 3}},
          bandwidth,
          6.0 * (q - 1)};
}

/// Forward: gather input and weights, scatter the output; backward: the reverse.
Layer three_dimensions(std::uint32_t q, double bandwidth) {
  const double tile = 1.0 / (q * q);
  return {"3-D",
          {{Operation::all_gather, q, tile, 3}, {Operation::reduce_scatter, q, tile, 3}},
          bandwidth,
          6.0 * (q - 1)};
}

const std::vector<Layer>& layers() {
  static const std::vector<Layer> all = {one_dimension(8, 1.75),      one_dimension(64, 1.96875),
                                         two_dimensions(2, 1, 3),     two_dimensions(4, 1, 4.5),
                                         two_dimensions(8, 1, 5.25),  two_dimensions(2, 2, 2.25),
                                         two_dimensions(4, 2, 3.375), two_dimensions(4, 4, 2.8125),
                                         three_dimensions(2, .75),    three_dimensions(4, .28125)};
  return all;
}

Call call_of(const Part& part) {
  const double bytes = part.share * static_cast<double>(kTensor);
  return {.operation = part.operation, .ranks = part.ranks, .bytes = {std::llround(bytes)}};
}

double published_ns(const Layer& layer) {
  return layer.steps * 5e3 + layer.bandwidth * static_cast<double>(kTensor) / 12.5;
}

double closed_ns(const Layer& layer) {
  const auto ring = find_algorithm("ring");
  double time = 0;
  for (const Part& part : layer.parts)
    time += part.times * static_cast<double>(ring->closed_form(call_of(part), {&kPort, 1}).count());
  return time;
}

TEST(TensorParallel, LayersTakeWhatIsPublishedInClosedForm) {
  for (const Layer& layer : layers()) {
    SCOPED_TRACE(std::string(layer.name) + " " + std::to_string(layer.bandwidth));
    EXPECT_NEAR(closed_ns(layer), published_ns(layer), 4);
  }
}

TEST(TensorParallel, LayersTakeWhatIsPublishedMessageByMessage) {
  const auto ring = find_algorithm("ring");
  for (const Layer& layer : layers()) {
    SCOPED_TRACE(std::string(layer.name) + " " + std::to_string(layer.bandwidth));
    double time = 0, tensors = 0;
    for (const Part& part : layer.parts) {
      const Expansion expansion = expand(*ring, call_of(part), {&kPort, 1});
      time += part.times * static_cast<double>(expansion.time.count());
      tensors += part.times * static_cast<double>(expansion.moved.count) / part.ranks / kTensor;
    }
    EXPECT_NEAR(time, published_ns(layer), layer.steps);
    EXPECT_NEAR(tensors, layer.bandwidth, 1e-6);
  }
}

TEST(TensorParallel, MoreDimensionsSendLessOnSixtyFourDevices) {
  const double two = closed_ns(two_dimensions(8, 1, 5.25));
  const double between = closed_ns(two_dimensions(4, 4, 2.8125));
  const double three = closed_ns(three_dimensions(4, .28125));
  EXPECT_LT(between, two);
  EXPECT_LT(3 * three, between);
}

}  // namespace
}  // namespace foretrace
