#include "import/files/unpack_budget.h"

#include <fmt/core.h>

#include "foretrace/error.h"
#include "foretrace/units.h"

namespace foretrace {

namespace {

constexpr std::int64_t kMaxUnpacked = std::int64_t{16} << 30;
/// The ratio is not limited below this size.
constexpr std::int64_t kHarmlessUnpacked = std::int64_t{256} << 20;
/// The highest ratio of real traces is 34.
constexpr std::int64_t kMaxRatio = 200;

}  // namespace

void UnpackBudget::add_unpacked(UnpackStage stage, std::size_t unpacked) {
  UnpackedBytes& counted = unpacked_[static_cast<std::size_t>(stage)];
  counted.total += static_cast<std::int64_t>(unpacked);
  counted.of_trace += static_cast<std::int64_t>(unpacked);
  const bool of_one_trace =
      stage == UnpackStage::file ? !holds_several_ : stage != UnpackStage::skipped;
  if (of_one_trace) check(counted.of_trace);
  if (most_ > 0 || counted.total <= kHarmlessUnpacked || counted.total / kMaxRatio <= packed_)
    return;
  throw TraceError(
      fmt::format("unpacks to more than {} times its size, as no recording does ({} from {}); if "
                  "it is a recording, allow it with --max-unpacked 16GiB",
                  kMaxRatio, to_text(Bytes{counted.total}), to_text(Bytes{packed_})));
}

void UnpackBudget::begin_trace() {
  holds_several_ = true;
  for (UnpackedBytes& counted : unpacked_) counted.of_trace = 0;
}

void UnpackBudget::check(std::int64_t unpacked) const {
  const std::int64_t most = most_ > 0 ? most_ : kMaxUnpacked;
  if (unpacked <= most) return;
  throw TraceError(fmt::format(
      "unpacks to more than {}, the most that is allowed; --max-unpacked {} allows more",
      to_exact_text(Bytes{most}), to_exact_text(Bytes{2 * most})));
}

}  // namespace foretrace
