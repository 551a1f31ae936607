#include <optional>

#include "base/numbers/range.h"
#include "base/parse_number.h"
#include "foretrace/error.h"
#include "foretrace/question/collective.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxSizes = 1000;
constexpr std::int64_t kMaxFactor = 1'000'000;

/// Reads the first size of a range, which may lack a unit, because nccl-tests begin at 8 bytes.
Bytes first_size(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  return parse_bytes(plain ? text + "B" : text);
}

}  // namespace

std::vector<Bytes> read_sizes(const std::string& text) {
  const std::optional<RangeText> range = split_range(text);
  if (!range) return {parse_bytes(text)};
  const Bytes first = first_size(std::string(range->first)), last = parse_bytes(range->last);
  if (range->step == RangeStep::parts)
    throw Error("must end in a factor such as /x2, or in a size to add such as /+1MB, got " + text);
  if (first.count < 1 || last < first)
    throw Error("must go from a size of at least 1 B to one that is not less, got " + text);
  const bool adds = range->step == RangeStep::add;
  std::int64_t amount = 2;
  if (adds) amount = parse_bytes(range->amount).count;
  if (range->step == RangeStep::times) {
    const auto factor = parse_number<std::int64_t>(range->amount);
    amount = factor && *factor < kMaxFactor ? *factor : 0;
    if (amount < 2) throw Error("must end in a factor of at least 2, such as /x2, got " + text);
  }
  if (amount < 1) throw Error("must add at least 1 B, got " + text);
  std::vector<Bytes> sizes;
  for (std::int64_t bytes = first.count; bytes <= last.count && sizes.size() < kMaxSizes;
       bytes = adds ? bytes + amount : bytes * amount)
    sizes.push_back({bytes});
  return sizes;
}

}  // namespace foretrace
