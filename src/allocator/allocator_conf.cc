// PYTORCH_CUDA_ALLOC_CONF: "name:value,name:value", where blanks are ignored and a value may be a
// list in brackets. The names and their values are those of PyTorch 2.x.

#include <algorithm>
#include <fmt/core.h>
#include <string>

#include "allocator/allocator_rules.h"
#include "base/parse_number.h"
#include "foretrace/allocator.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr double kMax = 8e12;  // Limit in MiB, so that the bytes fit 64 bits.

double number_in(std::string_view text, std::string_view expected) {
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= 0 && *value < kMax))
    throw Error(fmt::format("must be {}, got \"{}\"", expected, text));
  return *value;
}

Bytes mebibytes(std::string_view text, std::int64_t more_than) {
  const std::string expected = "a whole number of MiB above " + std::to_string(more_than);
  const double value = number_in(text, expected);
  const auto whole = static_cast<std::int64_t>(value);
  if (static_cast<double>(whole) != value || whole <= more_than) {
    throw Error(fmt::format("must be {}, got \"{}\"", expected, text));
  }
  return Bytes{whole << 20};
}

double share(std::string_view text, bool may_be_one) {
  const std::string_view expected =
      may_be_one ? "a number above 0, at most 1" : "a number above 0 and below 1";
  const double value = number_in(text, expected);
  if (value > 0 && (value < 1 || (may_be_one && value == 1))) return value;
  throw Error(fmt::format("must be {}, got \"{}\"", expected, text));
}

bool truth(std::string_view text) {
  if (text == "True") return true;
  if (text == "False") return false;
  throw Error(fmt::format("must be True or False, got \"{}\"", text));
}

struct ConfEntry {
  std::string_view name;
  void (*set)(std::string_view value, AllocatorSettings& settings);
};

void skip(std::string_view /*value*/, AllocatorSettings& /*settings*/) {}

constexpr ConfEntry kEntries[] = {
    {"backend",
     [](std::string_view value, AllocatorSettings&) {
       if (value != "native")
         throw Error(fmt::format("must be native, as no other is modelled, got \"{}\"", value));
     }},
    {"expandable_segments",
     [](std::string_view value, AllocatorSettings& settings) {
       settings.expandable_segments = truth(value);
     }},
    {"garbage_collection_threshold",
     [](std::string_view value, AllocatorSettings& settings) {
       settings.garbage_collection_threshold = share(value, false);
     }},
    {"graph_capture_record_stream_reuse", skip},
    {"max_non_split_rounding_mb",
     [](std::string_view value, AllocatorSettings& settings) {
       settings.max_non_split_rounding = mebibytes(value, 19);
     }},
    {"max_split_size_mb",
     [](std::string_view value, AllocatorSettings& settings) {
       settings.max_split_size = mebibytes(value, 20);
     }},
    {"per_process_memory_fraction",
     [](std::string_view value, AllocatorSettings& settings) {
       settings.memory_fraction = share(value, true);
     }},
    {"pinned_num_register_threads", skip},
    {"pinned_reserve_segment_size_mb", skip},
    {"pinned_use_background_threads", skip},
    {"pinned_use_cuda_host_register", skip},
    {"pinned_use_hip_host_register", skip},
    {"release_lock_on_cudamalloc", skip},
    {"release_lock_on_hipmalloc", skip},
    {"roundup_power2_divisions",
     [](std::string_view value, AllocatorSettings& settings) {
       settings.roundup_power2_divisions = value;
       const CachingRules checked(settings);
     }},
    {"throw_on_cudamalloc_oom", skip},
};

void set(std::string_view name, std::string_view value, AllocatorSettings& settings) {
  std::vector<std::string_view> names;
  for (const ConfEntry& entry : kEntries) {
    if (entry.name == name) return within(name, [&] { entry.set(value, settings); });
    names.push_back(entry.name);
  }
  throw Error(fmt::format("there is no setting \"{}\" in PYTORCH_CUDA_ALLOC_CONF{}", name,
                          did_you_mean(name, names)));
}

}  // namespace

void read_alloc_conf(std::string_view text, AllocatorSettings& settings) {
  std::string rest(text);
  std::erase(rest, ' ');
  for (std::size_t at = 0; at < rest.size();) {
    const std::size_t colon = rest.find(':', at);
    if (colon == std::string::npos) {
      throw Error(fmt::format("there must be NAME:VALUE, got \"{}\"", rest.substr(at)));
    }
    const bool is_list = colon + 1 < rest.size() && rest[colon + 1] == '[';
    const std::size_t last = is_list ? rest.find(']', colon) : colon;
    const std::size_t end =
        std::min(rest.find(',', last == std::string::npos ? colon : last), rest.size());
    set(std::string_view(rest).substr(at, colon - at),
        std::string_view(rest).substr(colon + 1, end - colon - 1), settings);
    at = end + 1;
  }
}

}  // namespace foretrace
