#include "trace/stream_flags.h"

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {

StreamFlag stream_flag_of(std::int64_t number) {
  return number < 1 || number > 3 ? StreamFlag::unknown : static_cast<StreamFlag>(number);
}

std::vector<StreamFlag> stream_flags(const Trace& trace) {
  std::vector<StreamFlag> flags(trace.streams.size(), StreamFlag::unknown);
  const auto kept = trace.metadata.find(std::string(kStreamFlagsKey));
  if (kept == trace.metadata.end()) return flags;
  const nlohmann::json rows = try_parse_json<nlohmann::json>(kept->second);
  if (!rows.is_array()) return flags;
  std::map<std::pair<std::int64_t, std::int64_t>, StreamFlag> known;
  for (const nlohmann::json& row : rows) {
    if (!row.is_array() || row.size() != 3) continue;
    if (!row[0].is_number_integer() || !row[1].is_number_integer() || !row[2].is_number_integer())
      continue;
    known[{row[0].get<std::int64_t>(), row[1].get<std::int64_t>()}] =
        stream_flag_of(row[2].get<std::int64_t>());
  }
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const auto found = known.find({trace.streams[i].device, trace.streams[i].id});
    if (found != known.end()) flags[i] = found->second;
  }
  return flags;
}

void keep_stream_flags(Trace& trace, const std::vector<StreamFlag>& flags) {
  CHECK(flags.size() == trace.streams.size());
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] == StreamFlag::unknown) continue;
    rows.push_back({trace.streams[i].device, trace.streams[i].id, static_cast<int>(flags[i])});
  }
  if (!rows.empty()) trace.metadata[std::string(kStreamFlagsKey)] = json_line(rows);
}

}  // namespace foretrace
