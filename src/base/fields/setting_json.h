#pragma once

// Converts settings to JSON values, in the form that read_json() accepts.

#include <nlohmann/json.hpp>

#include "base/fields/settings.h"

namespace foretrace {

inline nlohmann::json as_json(bool value) { return value; }
inline nlohmann::json as_json(std::int64_t value) { return value; }
inline nlohmann::json as_json(double value) { return value; }
inline nlohmann::json as_json(const std::string& value) { return value; }
inline nlohmann::json as_json(const std::vector<std::string>& value) { return value; }
inline nlohmann::json as_json(Nanoseconds value) { return to_exact_text(value); }
inline nlohmann::json as_json(Bytes value) { return to_exact_text(value); }
inline nlohmann::json as_json(Bandwidth value) { return to_exact_text(value); }
inline nlohmann::json as_json(Throughput value) { return to_exact_text(value); }
inline nlohmann::json as_json(Described& value) { return write_json(value); }
template <class Value>
nlohmann::json as_json(const std::optional<Value>& value) {
  return value ? as_json(*value) : nlohmann::json();
}

}  // namespace foretrace
