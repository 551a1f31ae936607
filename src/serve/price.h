#pragma once

// The time of an engine's step, from a model on a device or from a table of measured steps.
//
//     step = host + sum over operations (start + max(arithmetic, memory))
//                 + sums over tensor parallel ranks (start + bytes / bandwidth)
//
// Shares of peak and bandwidth are those of single operations (machine/operation_rates.h). What an
// engine adds - starts inside a graph, kernels between the products, its host - is fitted to
// measured deployments with all devices but one, in turn (constants.def).

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "price/price.h"
#include "serve/loop.h"
#include "serve/model.h"

namespace foretrace::serve {

struct ServeConstants {
#define CONSTANT(name, value, spread, unit, help) double name = value;
#include "serve/constants.def"
#undef CONSTANT
};

struct ServeConstantEntry {
  std::string_view name, unit, help;
  double start, spread;  ///< `spread`: expected deviation of the logarithm.
  double ServeConstants::*value;
};
const std::vector<ServeConstantEntry>& serve_constants();

/// The constants that differ between engines.
struct EngineCosts {
  double step_us, sequence_us, layer_us, prompt_share, each_us, entry_us;
};
/// `version` may be empty.
EngineCosts costs_of(const ServeConstants& constants, std::string_view scheduler,
                     std::string_view version = "");

class DevicePrice final : public StepPrice {
 public:
  DevicePrice(Model model, Precision precision, Placement placement, const Platform& platform,
              const std::string& scheduler, const ServeConstants& constants = {});

  StepTime of(const StepWork& work) const override;

 private:
  void add(const Operation& operation, bool is_prompt, StepTime& time) const;
  double exchange_ns(double bytes) const;

  Model model_;
  Precision precision_;
  Placement placement_;
  double memory_;  ///< Bytes a nanosecond of the device.
  /// By kind of operation, for dense weights and for the rest of each kind.
  std::array<OperationRate, 5> rates_, half_rates_;
  double link_;  ///< Bytes a nanosecond between devices of a group.
  EngineCosts costs_;
  ServeConstants constants_;
};

/// Decoding steps over batch and context, prompts over their length: a CSV with kind (decode or
/// prefill), batch, context, time_us, in the form of traces/operations/h100_steps.csv. Equal rows
/// are averaged. Between rows it interpolates; outside of them, steps are to the nearest one in the
/// table as another price has them.
class TablePrice final : public StepPrice {
 public:
  TablePrice(const std::string& path, std::unique_ptr<StepPrice> outside);
  StepTime of(const StepWork& work) const override;

 private:
  using Points = std::vector<std::pair<double, double>>;  ///< Size and nanoseconds, ascending.
  struct Column {
    double key;
    Points points;
  };
  double decode_ns(const Column& column, double context, bool& is_outside) const;
  double decode_ns(double batch, double context, bool& is_outside) const;
  double prompt_ns(const StepWork& work, bool& is_outside) const;

  std::vector<Column> decode_;  ///< By batch; points over the context of a sequence.
  Points prompts_;
  std::unique_ptr<StepPrice> outside_;
};

}  // namespace foretrace::serve
