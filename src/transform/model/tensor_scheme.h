#pragma once

// How devices share the matrix products of a layer, and the collectives that this takes, in four
// schemes:
//
//     1-D    Megatron-LM (Shoeybi et al., 2019): columns, then rows of the weights
//     2-D    Optimus (Xu et al., 2021): tiles on q x q devices, SUMMA
//     2.5-D  Tesseract (Wang et al., 2021): d layers of q x q devices
//     3-D    Bian et al., 2021: a cube of q x q x q devices
//
// Volumes and steps are those of the cost tables of Colossal-AI, whose authors built all four.

#include <cstdint>
#include <string>
#include <vector>

#include "foretrace/units.h"
#include "network/collective.h"

namespace foretrace {

/// One collective among `ranks` devices, each `stride` devices behind the one before, repeated
/// `times` times; bytes as nccl-tests counts them.
struct SchemeTransfer {
  Operation operation = Operation::all_reduce;
  std::int64_t ranks = 1;
  Bytes bytes{};
  std::int64_t times = 1, stride = 1;
};

/// Sizes summed over the linear layers of a block of the model.
struct BlockTensors {
  Bytes inputs{}, weights{}, outputs{};
  /// Outputs that 1-D sums over all devices in each pass: one for each pair of linear layers.
  Bytes reduced{};
};

class TensorScheme {
 public:
  /// `name` is 1d, 2d, 2.5d or 3d; `depth` matters only for 2.5d. Throws Error if this number of
  /// devices does not fit the scheme.
  TensorScheme(const std::string& name, std::int64_t devices, std::int64_t depth);

  std::vector<SchemeTransfer> forward(const BlockTensors& block) const;
  std::vector<SchemeTransfer> backward(const BlockTensors& block) const;
  /// The number of parts that parameters, and activations, are divided into.
  std::int64_t parameter_parts() const;
  std::int64_t activation_parts() const;
  bool is_one_dimensional() const { return dimensions_ == "1d"; }

 private:
  std::vector<SchemeTransfer> broadcasts(const BlockTensors& block, std::int64_t times) const;

  std::string dimensions_;
  std::int64_t devices_, depth_ = 1;
  std::int64_t side_ = 1;  ///< q
};

}  // namespace foretrace
