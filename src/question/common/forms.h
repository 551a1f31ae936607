#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_text.h"
#include "foretrace/question.h"
#include "foretrace/report.h"

namespace foretrace {

/// Indented JSON with a line break at the end.
inline void print_json(const nlohmann::json& value, std::ostream& out) {
  out << indented_json(value) << '\n';
}

/// The form "json" of answers that report.h can turn into JSON.
template <class Value>
Form json_form() {
  return form<Value>(
      "json", [](const Value& value, std::ostream& out) { print_json(to_json(value), out); });
}

}  // namespace foretrace
