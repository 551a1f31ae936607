// Reads facts about the machine that a trace was recorded on.

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "import/kineto/kineto_document.h"

namespace foretrace {

namespace {

std::int64_t integer(const nlohmann::json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  return otherwise;
}

bool read(const std::string& text, nlohmann::json& json, Trace& trace, const char* entry) {
  json = try_parse_json<nlohmann::json>(text);
  if (!json.is_discarded()) return true;
  trace.notes.add(Severity::warning, std::string(entry) + " is not JSON and was not read");
  return false;
}

}  // namespace

void read_device_properties(const std::string& text, Trace& trace) {
  nlohmann::json json;
  if (!read(text, json, trace, "deviceProperties") || !json.is_array()) return;
  trace.properties.clear();
  for (const nlohmann::json& entry : json) {
    if (!entry.is_object()) continue;
    Device device;
    device.ordinal = static_cast<std::int32_t>(integer(entry, "id", 0));
    const auto name = entry.find("name");
    if (name != entry.end() && name->is_string()) device.name = name->get<std::string>();
    device.memory_bytes = integer(entry, "totalGlobalMem", 0);
    device.multiprocessors = static_cast<std::int32_t>(integer(entry, "numSms", 0));
    device.major = static_cast<std::int32_t>(integer(entry, "computeMajor", 0));
    device.minor = static_cast<std::int32_t>(integer(entry, "computeMinor", 0));
    trace.properties.push_back(std::move(device));
  }
}

void read_distributed_info(const std::string& text, Trace& trace) {
  trace.rank_is_known = true;
  nlohmann::json json;
  if (!read(text, json, trace, "distributedInfo") || !json.is_object()) return;
  constexpr std::int64_t kMax = 1 << 24;
  const std::int64_t rank = integer(json, "rank", 0);
  const std::int64_t size = integer(json, "world_size", 1);
  if (rank >= 0 && rank < kMax) trace.rank = static_cast<std::int32_t>(rank);
  if (size >= 1 && size < kMax) trace.world_size = static_cast<std::int32_t>(size);
}

}  // namespace foretrace
