// Rounding, pools, splitting; and the settings of PYTORCH_CUDA_ALLOC_CONF that change them.

#include "allocator/allocator_rules.h"

#include <algorithm>
#include <bit>
#include <fmt/core.h>
#include <string>

#include "base/parse_number.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr std::string_view kDivisions = "roundup_power2_divisions";

std::int64_t power_of_two(std::string_view text, std::string_view what, std::int64_t least) {
  const std::int64_t value = parse_number<std::int64_t>(text).value_or(-1);
  const bool is_power = value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
  if (!is_power && !(value == 0 && least == 0)) {
    throw Error(fmt::format("{}: {} must be a power of two{}, got \"{}\"", kDivisions, what,
                            least == 0 ? ", or 0 for none" : "", text));
  }
  return value;
}

std::string_view without_spaces_around(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::int64_t ceil_to(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

CachingRules::CachingRules(const AllocatorSettings& settings)
    : max_non_split_rounding_(std::min(settings.max_non_split_rounding.count, kOneExabyte)),
      expandable_(settings.expandable_segments) {
  if (settings.limit.count > 0) {
    limit_ = std::min(settings.limit.count, kOneExabyte);
    const double part = static_cast<double>(limit_) * settings.memory_fraction;
    allowed_ = settings.memory_fraction < 1 ? static_cast<std::int64_t>(part) : limit_;
    if (settings.garbage_collection_threshold > 0) {
      collects_above_ = static_cast<std::int64_t>(static_cast<double>(allowed_) *
                                                  settings.garbage_collection_threshold);
    }
  }
  if (settings.max_split_size.count > 0) max_split_size_ = settings.max_split_size.count;
  read_divisions(settings.roundup_power2_divisions);
}

void CachingRules::read_divisions(std::string_view text) {
  text = without_spaces_around(text);
  if (text.empty()) return;
  if (!text.starts_with('[')) return divisions_.fill(power_of_two(text, "divisions", 0));
  if (!text.ends_with(']') || text.size() < 2) {
    throw Error(fmt::format("{}: there is no \"]\" at the end of \"{}\"", kDivisions, text));
  }
  read_intervals(text.substr(1, text.size() - 2));
}

/// Reads "256:1,512:2,>:8": the number of divisions from that many MiB up to twice as many. Sizes
/// below the first entry use it; sizes between two entries that have none of their own are not
/// divided; ">" applies to sizes above the entry before it.
void CachingRules::read_intervals(std::string_view text) {
  std::size_t last = 0;
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const std::size_t colon = entry.find(':');
    if (colon == std::string_view::npos) {
      throw Error(
          fmt::format("{}: there must be MEBIBYTES:DIVISIONS, got \"{}\"", kDivisions, entry));
    }
    const std::string_view from = without_spaces_around(entry.substr(0, colon));
    const std::int64_t parts =
        power_of_two(without_spaces_around(entry.substr(colon + 1)), "divisions", 0);
    if (from == ">") {
      std::fill(divisions_.begin() + static_cast<std::ptrdiff_t>(last) + 1, divisions_.end(),
                parts);
      continue;
    }
    const auto size = static_cast<std::uint64_t>(power_of_two(from, "the size", 1));
    last =
        std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(size)) - 1, kIntervals - 1);
    if (is_first) std::fill_n(divisions_.begin(), last, parts);
    is_first = false;
    divisions_[last] = parts;
  }
}

std::int64_t CachingRules::divisions_of(std::int64_t bytes) const {
  constexpr std::size_t kFirst = 20;  // Exponent of 1 MiB.
  const auto power =
      static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(bytes))) - 1;
  return divisions_[power <= kFirst ? 0 : std::min(power - kFirst, kIntervals - 1)];
}

std::int64_t CachingRules::rounded(std::int64_t bytes) const {
  if (bytes < kMinBlockSize) return kMinBlockSize;
  const std::int64_t parts = divisions_of(bytes);
  if (parts <= 1 || bytes / kMinBlockSize < parts || bytes == kMinBlockSize * parts) {
    return ceil_to(bytes, kMinBlockSize);
  }
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  return ceil_to(bytes, std::max<std::int64_t>(below / parts, 1));
}

std::int64_t CachingRules::segment_size(std::int64_t rounded) {
  if (rounded <= kSmallSize) return kSmallBuffer;
  if (rounded < kMinLargeAlloc) return kLargeBuffer;
  return ceil_to(rounded, kRoundLarge);
}

bool CachingRules::splits(std::int64_t rounded, std::int64_t rest, bool small) const {
  if (small || expandable_) return rest >= kMinBlockSize;
  return rounded < max_split_size_ && rest > kSmallSize;
}

bool CachingRules::may_serve(std::int64_t rounded, std::int64_t block) const {
  if (rounded < max_split_size_) return block < max_split_size_;
  return block < rounded + max_non_split_rounding_;
}

Bytes block_size(Bytes requested, const AllocatorSettings& settings) {
  if (requested.count >= kOneExabyte) return requested;
  return Bytes{CachingRules(settings).rounded(requested.count)};
}

void AllocatorSettings::describe(Fields& fields) {
  fields.bytes("limit", limit, "Memory that the allocator can get from the device; 0: unlimited");
  fields.number("memory_fraction", memory_fraction,
                "Share of the limit that the process may use, as set by "
                "torch.cuda.set_per_process_memory_fraction()",
                0, 1);
  fields.bytes("max_split_size", max_split_size,
               "Blocks of at least this size are not split, and serve only requests of such sizes; "
               "0: all are split. PyTorch accepts only more than 20 MiB");
  fields.text("roundup_power2_divisions", roundup_power2_divisions,
              "Number of divisions between powers of two that sizes are rounded up to: \"4\", or "
              "by MiB \"[256:1,512:2,>:4]\"; empty: to 512 bytes");
  fields.bytes("max_non_split_rounding", max_non_split_rounding,
               "A block that is not split may exceed the request by less than this");
  fields.number("garbage_collection_threshold", garbage_collection_threshold,
                "Share of the allowed memory above which unused segments are freed before new ones "
                "are requested; 0: never. Needs a limit",
                0, 1);
  fields.flag("expandable_segments", expandable_segments,
              "Use segments that grow page by page instead of segments of fixed size");
}

}  // namespace foretrace
