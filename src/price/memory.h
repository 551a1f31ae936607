#pragma once

#include "price/pipeline.h"
#include "price/price.h"
#include "price/stages.h"

namespace foretrace {

/// Returns the memory of the device that needs the most.
StepMemory memory_need(const LayerTable& table, const std::vector<StageRows>& stages,
                       const Layout& layout, const PipelineShape& shape);

}  // namespace foretrace
