#pragma once

// Figures of a replayed load.

#include <vector>

#include "foretrace/answer/serving.h"
#include "foretrace/fields.h"
#include "serve/loop.h"

namespace foretrace::serve {

/// Has no intervals. Token times of requests with one token count nowhere but in TTFT. REQUIRES: at
/// least one request.
ServingPoint figures_of(const ServedLoad& load, std::int64_t gpus);

/// Demanded times; 0: none.
struct Demands final : Described {
  void describe(Fields& fields) override;
  bool any() const {
    return ttft > Nanoseconds{0} || tpot > Nanoseconds{0} || whole > Nanoseconds{0};
  }

  Nanoseconds ttft{0}, tpot{0}, whole{0};
};

/// Requests a second that meet all demands; a request of one token has TPOT 0.
double goodput_of(const ServedLoad& load, const Demands& demands);

/// The value below which `share` of all weight lies, interpolated as numpy does if each pair stands
/// for so many equal values. Reorders.
double weighted_quantile(std::vector<Gap>& gaps, double share);

}  // namespace foretrace::serve
