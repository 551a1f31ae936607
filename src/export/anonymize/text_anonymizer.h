#pragma once

// Converts the texts of a trace to texts that reveal nothing about the program, with one rule for
// each kind of text.

#include <string>
#include <string_view>

#include "export/anonymize/word_hash.h"
#include "foretrace/export.h"

namespace foretrace {

class TextAnonymizer {
 public:
  TextAnonymizer(const Anonymization& settings, AnonymizedTexts& texts)
      : settings_(settings), texts_(texts), hash_(settings.salt) {}

  std::string op(std::string_view name);
  std::string call(std::string_view name);
  std::string frame(std::string_view text);
  /// Converts frames that are joined by ';'.
  std::string stack(std::string_view text);
  std::string kernel(std::string_view name);
  std::string copy(const DeviceRecord& record, std::string_view name);
  std::string shapes(std::string_view json);
  std::string types(std::string_view json);
  std::string values(std::string_view json);
  std::string collective(std::string_view name);
  std::string type(std::string_view name);
  /// Converts the name of a group or a thread, and any text of an unknown kind.
  std::string word(std::string_view text);
  std::string keep(std::string_view text);

 private:
  std::string path(std::string_view text);
  std::string autograd_node(std::string_view name);
  bool is_kept(std::string_view word) const;
  /// Converts each string of a JSON list by `rule`.
  template <class Rule>
  std::string each_string(std::string_view json, Rule&& rule);

  const Anonymization& settings_;
  AnonymizedTexts& texts_;
  WordHash hash_;
};

}  // namespace foretrace
