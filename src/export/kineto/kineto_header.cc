#include "export/kineto/kineto_header.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace foretrace {
namespace {

using Json = nlohmann::ordered_json;

Json describe(const Device& device) {
  Json json;
  json["id"] = device.ordinal;
  if (!device.name.empty()) json["name"] = device.name;
  if (device.memory_bytes != 0) json["totalGlobalMem"] = device.memory_bytes;
  if (device.major != 0) json["computeMajor"] = device.major;
  if (device.major != 0) json["computeMinor"] = device.minor;
  if (device.multiprocessors != 0) json["numSms"] = device.multiprocessors;
  return json;
}

std::string devices_of(const Trace& trace) {
  Json all = Json::array();
  for (const Device& device : trace.properties) all.push_back(describe(device));
  return json_line(all);
}

/// The recorded "distributedInfo" with the trace's own rank and world size.
std::string job_of(const Trace& trace, const std::string& recorded) {
  Json json = try_parse_json<Json>(recorded);
  if (!json.is_object()) json = Json::object();
  const auto differs = [&](const char* key, std::int32_t value, std::int32_t otherwise) {
    const auto found = json.find(key);
    const bool known = found != json.end() && found->is_number_integer();
    return (known ? found->get<std::int64_t>() : otherwise) != value;
  };
  bool as_recorded = !recorded.empty();
  if (differs("rank", trace.rank, 0)) json["rank"] = trace.rank, as_recorded = false;
  if (differs("world_size", trace.world_size, 1))
    json["world_size"] = trace.world_size, as_recorded = false;
  return as_recorded ? recorded : json_line(json);
}

}  // namespace

void write_kineto_header(const Trace& trace, std::int64_t base_ns, KinetoFile& file) {
  const auto& known = trace.metadata;
  if (known.count("schemaVersion") == 0) file.member("schemaVersion", "1");
  if (known.count("displayTimeUnit") == 0) file.member("displayTimeUnit", "\"ms\"");
  if (known.count("deviceProperties") == 0 && !trace.properties.empty())
    file.member("deviceProperties", devices_of(trace));
  const auto job = known.find("distributedInfo");
  if (job != known.end() || trace.rank != 0 || trace.world_size != 1)
    file.member("distributedInfo", job_of(trace, job != known.end() ? job->second : ""));
  for (const auto& [key, json] : known) {
    if (key == "traceEvents" || key == "baseTimeNanoseconds" || key == "distributedInfo") continue;
    file.member(key, is_json(json) ? json : json_string(json));
  }
  file.member("baseTimeNanoseconds", std::to_string(base_ns));
  file.begin_events();
}

}  // namespace foretrace
