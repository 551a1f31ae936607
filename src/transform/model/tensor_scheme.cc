#include "transform/model/tensor_scheme.h"

#include <cmath>
#include <fmt/core.h>

#include "foretrace/error.h"

namespace foretrace {
namespace {

/// Returns the root of this degree if it is a whole number, otherwise 0.
std::int64_t root(std::int64_t value, int degree) {
  const auto near = std::llround(std::pow(static_cast<double>(value), 1. / degree));
  std::int64_t power = 1;
  for (int i = 0; i < degree; ++i) power *= near;
  return power == value ? near : 0;
}

Bytes part(Bytes bytes, std::int64_t parts) { return {(bytes.count + parts - 1) / parts}; }

}  // namespace

TensorScheme::TensorScheme(const std::string& name, std::int64_t devices, std::int64_t depth)
    : dimensions_(name), devices_(devices) {
  const auto refuse = [&](const std::string& what) {
    throw Error(fmt::format("gpus: {} needs {}, got {}", name, what, devices));
  };
  if (name == "2d" && (side_ = root(devices, 2)) == 0) refuse("a square (4, 9, 16, 36, 64 ...)");
  if (name == "3d" && (side_ = root(devices, 3)) == 0) refuse("a cube (8, 27, 64, 125 ...)");
  if (name != "2.5d") return;
  depth_ = depth;
  side_ = devices % depth == 0 ? root(devices / depth, 2) : 0;
  if (side_ == 0)
    refuse(fmt::format("depth times a square ({}, {} ... for depth {})", 4 * depth, 16 * depth,
                       depth));
}

/// SUMMA in 2-D and 2.5-D, repeated `times` times: q steps, each of which broadcasts a tile of the
/// inputs along the rows of the square and a tile of the weights along its columns.
std::vector<SchemeTransfer> TensorScheme::broadcasts(const BlockTensors& block,
                                                     std::int64_t times) const {
  const std::int64_t tiles = side_ * side_;
  return {{Operation::broadcast, side_, part(block.inputs, depth_ * tiles), times * side_},
          {Operation::broadcast, side_, part(block.weights, tiles), times * side_, side_}};
}

std::vector<SchemeTransfer> TensorScheme::forward(const BlockTensors& block) const {
  if (dimensions_ == "1d") return {{Operation::all_reduce, devices_, block.reduced}};
  if (dimensions_ != "3d") return broadcasts(block, 1);
  const std::int64_t face = side_ * side_;
  return {{Operation::all_gather, side_, part(block.inputs, face)},
          {Operation::all_gather, side_, part(block.weights, face), 1, side_},
          {Operation::reduce_scatter, side_, part(block.outputs, face), 1, face}};
}

std::vector<SchemeTransfer> TensorScheme::backward(const BlockTensors& block) const {
  if (dimensions_ == "1d") return forward(block);
  if (dimensions_ == "3d") {
    const std::int64_t face = side_ * side_;
    return {{Operation::all_gather, side_, part(block.outputs, face), 1, face},
            {Operation::reduce_scatter, side_, part(block.inputs, face)},
            {Operation::reduce_scatter, side_, part(block.weights, face), 1, side_}};
  }
  std::vector<SchemeTransfer> transfers = broadcasts(block, 2);
  if (depth_ > 1)
    transfers.push_back(
        {Operation::all_reduce, depth_, part(block.weights, side_ * side_), 1, side_ * side_});
  return transfers;
}

std::int64_t TensorScheme::parameter_parts() const {
  return dimensions_ == "2.5d" ? side_ * side_ : devices_;
}

std::int64_t TensorScheme::activation_parts() const { return is_one_dimensional() ? 1 : devices_; }

}  // namespace foretrace
