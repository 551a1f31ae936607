#pragma once

#include <cstdint>
#include <vector>

#include "infer/stages.h"

namespace foretrace::infer_detail {

/// The outermost ops, ranges and module calls of each thread.
class Enclosing {
 public:
  struct Range {
    std::uint16_t thread = 0;
    std::int64_t start = 0, finish = 0;
    std::uint32_t record = kNone;
  };

  explicit Enclosing(const Records& records);

  /// Sorted by thread, then by time; the ranges of a thread do not overlap.
  const std::vector<Range>& ranges() const { return ranges_; }
  /// The host record around the start of a call, or kNone.
  std::uint32_t record(const Call& call) const;

 private:
  std::vector<Range> ranges_;
};

}  // namespace foretrace::infer_detail
