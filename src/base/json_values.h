#pragma once

// How quantities become JSON: a time is its nanoseconds, a size its bytes, and a value that is not
// known is null.

#include <nlohmann/json.hpp>
#include <optional>

#include "foretrace/units.h"

NLOHMANN_JSON_NAMESPACE_BEGIN

template <>
struct adl_serializer<foretrace::Nanoseconds> {
  template <class Json>
  static void to_json(Json& to, foretrace::Nanoseconds time) {
    to = time.count();
  }
};

template <>
struct adl_serializer<foretrace::Bytes> {
  template <class Json>
  static void to_json(Json& to, foretrace::Bytes size) {
    to = size.count;
  }
};

template <class Value>
struct adl_serializer<std::optional<Value>> {
  template <class Json>
  static void to_json(Json& to, const std::optional<Value>& value) {
    to = value ? Json(*value) : Json();
  }
};

NLOHMANN_JSON_NAMESPACE_END

namespace foretrace {

/// Null for the default value: 0, or an empty text, where these mean that it is not known.
template <class Value>
nlohmann::json unless_default(const Value& value) {
  return value == Value{} ? nlohmann::json() : nlohmann::json(value);
}

}  // namespace foretrace
