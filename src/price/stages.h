#pragma once

// Distributes layers over the stages of a pipeline.

#include <string_view>
#include <utility>
#include <vector>

#include "price/calibration.h"
#include "price/price.h"

namespace foretrace {

/// Rows of a layer table, and how many of their equal layers a stage has.
using StageRows = std::vector<std::pair<std::size_t, double>>;

/// Returns the layers of each part; stage i of `pipeline` has the parts i, i + pipeline, ... If the
/// layers do not divide evenly, the last parts get one layer less. Throws Error if there are fewer
/// layers than parts.
std::vector<StageRows> split_stages(const LayerTable& table, const Layout& layout);

/// Number of parameters on one device.
double parameters_of(const LayerTable& table, const StageRows& stage);
double experts_of(const LayerTable& table, const StageRows& stage);
double layers_of(const StageRows& stage);

/// Bytes that a framework keeps and sends: see frameworks.def.
struct Framework {
  std::string_view name;
  double weights, gradients, optimizer, gathered, logits, buffers, lost, bucket, calls;
  bool separate, keeps_separate;
};
const Framework& framework_of(const Layout& layout);
/// Layout::zero while micro-batches pass: torchtitan's pipelines scatter gradients with the last
/// one alone, and keep them whole until then.
std::int64_t sharded_in_passes(const Layout& layout);
/// Norms, rotary embedding and gates are one operator after the other.
bool is_eager(const Layout& layout);
/// Megatron computes with NVIDIA's Transformer Engine.
bool uses_engine(const Layout& layout);

/// Returns the bytes per gradient that ranks sum: 2 in fp16, as in Megatron-LM and DeepSpeed; 4
/// otherwise, as Megatron's main gradients.
double gradient_bytes(const Layout& layout);

}  // namespace foretrace
