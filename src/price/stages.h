#pragma once

// Layers over the stages of a pipeline.

#include <utility>
#include <vector>

#include "foretrace/price.h"
#include "price/calibration.h"

namespace foretrace {

/// Rows of a layer table, and how many of their equal layers a stage has.
using StageRows = std::vector<std::pair<std::size_t, double>>;

/// Stage i of `pipeline` has the parts i, i + pipeline, ... of the result. Layers that do not
/// divide leave the last parts one short. Throws Error with fewer layers than parts.
std::vector<StageRows> split_stages(const LayerTable& table, const Layout& layout);

/// Parameters on one device.
double parameters_of(const LayerTable& table, const StageRows& stage);
double experts_of(const LayerTable& table, const StageRows& stage);
double layers_of(const StageRows& stage);

/// Bytes of a gradient that ranks sum: 2 in fp16, as Megatron-LM and DeepSpeed do; 4 otherwise, as
/// Megatron's main gradients are.
double gradient_bytes(const Layout& layout);

}  // namespace foretrace
