#pragma once

// Collects the members of an event's "args" in the JSON of PyTorch's profiler, and converts the
// names of a trace or a graph to JSON.

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/kineto/kineto_file.h"
#include "foretrace/names.h"
#include "foretrace/trace.h"

namespace foretrace {

class KinetoArguments {
 public:
  void clear() { text_.clear(); }
  std::string_view text() const { return text_; }

  /// Adds a member. REQUIRES: `json` is a whole JSON value.
  void add(std::string_view key, std::string_view json) {
    if (!text_.empty()) text_ += ", ";
    text_ += '"';
    text_ += key;
    text_ += "\": ";
    text_ += json;
  }

  template <class Integer>
  void add_number(std::string_view key, Integer value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    add(key, {digits, static_cast<std::size_t>(end - digits)});
  }

  template <class Integer>
  void add_unless(Integer absent, std::string_view key, Integer value) {
    if (value != absent) add_number(key, value);
  }

 private:
  std::string text_;
};

/// Converts each name to JSON on its first use only, because thousands of ops share their shapes.
/// REQUIRES: the names outlive this, and no names are added.
class KinetoNames {
 public:
  explicit KinetoNames(const Names& names)
      : names_(names), strings_(names.size()), values_(names.size()) {}

  /// The name as a JSON string.
  const std::string& string(NameId id) {
    std::string& json = strings_[static_cast<std::size_t>(id)];
    if (json.empty()) json = json_string(names_[id]);
    return json;
  }

  /// The name as kineto_value() returns it.
  const std::string& value(NameId id) {
    std::string& json = values_[static_cast<std::size_t>(id)];
    if (json.empty()) json = kineto_value(names_[id]);
    return json;
  }

 private:
  const Names& names_;
  std::vector<std::string> strings_, values_;
};

/// Adds the details of an op to `arguments`, without empty values. `json` converts a name of the
/// trace to JSON text.
template <class Json>
void add_op_details(const OpDetails& details, Json&& json, KinetoArguments& arguments) {
  const auto add_text = [&](std::string_view key, NameId text) {
    if (text != NameId{}) arguments.add(key, json(text));
  };
  add_text("Input Dims", details.shapes);
  add_text("Input type", details.types);
  add_text("Concrete Inputs", details.values);
  add_text("Call stack", details.stack);
  arguments.add_unless(std::int64_t{-1}, "Sequence number", details.sequence);
  arguments.add_unless(std::uint64_t{0}, "Fwd thread id", details.forward_thread);
  arguments.add_unless(std::int64_t{-1}, "Record function id", details.record_function);
  arguments.add_unless(std::int64_t{-1}, "Python id", details.python_id);
  arguments.add_unless(std::int64_t{-1}, "Python parent id", details.python_parent);
}

}  // namespace foretrace
