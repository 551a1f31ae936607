#include "collect/runtime/settings.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace foretrace::collect {

namespace {

/// Returns the value of the variable, or `fallback` if it is not a whole number of at least
/// `least`.
std::uint64_t number(const char* variable, std::uint64_t fallback, std::uint64_t least = 0) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text < '0' || *text > '9') return fallback;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  return *end == '\0' && value >= least ? value : fallback;
}

const char* text(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::uint32_t bit_of(std::string_view name) {
  constexpr struct {
    std::string_view name;
    Record bit;
  } kRecords[] = {{"kernels", kKernels},   {"api", kApi},
                  {"sync", kSync},         {"graphs", kGraphs},
                  {"nvtx", kNvtx},         {"memory", kMemory},
                  {"overhead", kOverhead}, {"device_memory", kDeviceMemory}};
  for (const auto& known : kRecords) {
    if (known.name == name) return known.bit;
  }
  return 0;
}

std::uint32_t record_bits(std::string_view list) {
  std::uint32_t bits = 0;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    bits |= bit_of(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return bits;
}

void read_steps(Settings& settings) {
  const char* range = text("FORETRACE_STEPS");
  if (range == nullptr) return;
  char* end = nullptr;
  settings.first_step = std::strtoull(range, &end, 10);
  if (end == range || *end != '-') return;
  const char* second = end + 1;
  settings.last_step = std::strtoull(second, &end, 10);
  settings.by_steps = end != second && *end == '\0' && settings.first_step <= settings.last_step;
}

}  // namespace

Settings read_settings() {
  Settings settings;
  settings.spool_folder = text("FORETRACE_SPOOL");
  if (const char* list = text("FORETRACE_RECORD")) settings.record = record_bits(list);
  settings.start_after_ns = number("FORETRACE_START_AFTER", 0);
  settings.duration_ns = number("FORETRACE_DURATION", 0);
  read_steps(settings);
  settings.by_profiler_api = number("FORETRACE_PROFILER_API", 0) == 1;
  settings.flush_ms = static_cast<std::uint32_t>(number("FORETRACE_FLUSH_MS", 1000, 1));
  settings.exit_ms = static_cast<std::uint32_t>(number("FORETRACE_EXIT_MS", settings.exit_ms));
  settings.buffers = static_cast<std::uint32_t>(number("FORETRACE_BUFFERS", 64, 1));
  settings.buffer_bytes =
      static_cast<std::size_t>(number("FORETRACE_BUFFER_BYTES", settings.buffer_bytes, 1024)) / 8 *
      8;
  settings.raw_file = text("FORETRACE_RAW");
  settings.cupti = text("FORETRACE_CUPTI");
  if (const char* folder = text("FORETRACE_DEVICES")) settings.devices = folder;
  return settings;
}

}  // namespace foretrace::collect
