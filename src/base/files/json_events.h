#pragma once

// The base of readers of JSON that keep a part of it: they say which events they need, and others
// are ignored. Json::parse() with a callback is no substitute: behind each object it walks through
// everything that the list around it has so far.

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace foretrace {

/// A member that returns false ends the reading. Text that is not JSON ends it, too.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }
};

}  // namespace foretrace
