#pragma once

// The settings of a pipeline beside its schedule: the cost of its passes.

#include <optional>
#include <string>
#include <vector>

#include "foretrace/fields.h"
#include "generate/generate.h"

namespace foretrace {

/// Times and bytes are those of a rank with an equal share of the model, for one micro-batch. They
/// are divided among its chunks equally, or by their layers.
class PipelineTimes : public Described {
 public:
  void describe(Fields& fields) override;
  /// Throws Error, beginning with the setting. Adds the assumptions it made to `assumptions`.
  PipelineCosts costs_for(const Schedule& schedule, std::vector<std::string>& assumptions) const;

 private:
  /// Share of the model in each stage, 1 on average.
  std::vector<double> shares(const Schedule& schedule) const;
  void set_backward(StageCosts& rank, const Schedule& schedule,
                    std::vector<std::string>& assumptions) const;

  Nanoseconds forward_ = 1ms;
  std::optional<Nanoseconds> backward_, weight_;
  Nanoseconds recompute_{0}, communication_{0}, all_reduce_{0}, update_{0};
  double overlap_ = 0;
  Bytes activations_{}, activations_for_weight_{}, parameters_{};
  std::optional<std::int64_t> layers_;
  std::string layers_of_stages_;
};

}  // namespace foretrace
