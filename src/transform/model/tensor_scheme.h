#pragma once

// How many devices share the products of a layer, and what they send for it, in four schemes:
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

#include "foretrace/collective.h"
#include "foretrace/units.h"

namespace foretrace {

/// One collective among `ranks` devices, each `stride` devices behind the one before, so many
/// times; bytes as nccl-tests counts them.
struct SchemeTransfer {
  Operation operation = Operation::all_reduce;
  std::int64_t ranks = 1;
  Bytes bytes{};
  std::int64_t times = 1, stride = 1;
};

/// Sums over the linear layers that a block of the model has.
struct BlockTensors {
  Bytes inputs{}, weights{}, outputs{};
  /// Outputs that 1-D sums over all devices in each pass: one for each pair of linear layers.
  Bytes reduced{};
};

class TensorScheme {
 public:
  /// `name` is 1d, 2d, 2.5d or 3d; `depth` counts for 2.5d alone. Throws Error where so many
  /// devices do not fit the scheme.
  TensorScheme(const std::string& name, std::int64_t devices, std::int64_t depth);

  std::vector<SchemeTransfer> forward(const BlockTensors& block) const;
  std::vector<SchemeTransfer> backward(const BlockTensors& block) const;
  /// Parts that parameters are cut into, and activations.
  std::int64_t parameter_parts() const;
  std::int64_t activation_parts() const;
  bool is_one_dimensional() const { return dimensions_ == "1d"; }

 private:
  std::vector<SchemeTransfer> broadcasts(const BlockTensors& block, std::int64_t times) const;

  std::string dimensions_;
  std::int64_t devices_, depth_ = 1;
  std::int64_t side_ = 1;  ///< q
};

/// The volume of the cost tables: (n-1)/n of a buffer, twice for an all-reduce; of a broadcast n-1
/// times the tile, though a pipeline passes it on in little more time than once.
double bandwidth_term(const std::vector<SchemeTransfer>& transfers);

}  // namespace foretrace
