#include <yaml.h>

#include <fmt/core.h>
#include <set>

#include "base/config/config.h"
#include "base/json_text.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

class YamlReader {
 public:
  explicit YamlReader(std::string_view text) : text_(text) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";  // Of the byte order, which is not counted.
    if (text.starts_with(kMark)) bytes_ = kMark.size();
    if (!yaml_parser_initialize(&parser_)) throw Error("there is not enough memory to read it");
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;
  ~YamlReader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  std::vector<ConfigValue> values() {
    next();  // The stream begins.
    if (next() != YAML_DOCUMENT_START_EVENT) return {};
    if (next() != YAML_MAPPING_START_EVENT) refuse("must be a mapping of names to values");
    read_mapping("", 0);
    next();  // The document ends.
    if (next() != YAML_STREAM_END_EVENT) refuse("must be one document, got another behind it");
    return std::move(values_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(fmt::format("line {}: {}", event_.start_mark.line + 1, why));
  }

  yaml_event_type_t next() {
    yaml_event_delete(&event_);
    if (!yaml_parser_parse(&parser_, &event_)) {
      throw Error(fmt::format("line {}: must be YAML, got {}", parser_.problem_mark.line + 1,
                              parser_.problem ? parser_.problem : "something else"));
    }
    check_plain();
    return event_.type;
  }

  /// Refuses what makes a value of other values, or of programs.
  void check_plain() const {
    if (event_.type == YAML_ALIAS_EVENT) refuse("must have no alias (*name); write the value out");
    const unsigned char* anchor = nullptr;
    const unsigned char* tag = nullptr;
    if (event_.type == YAML_SCALAR_EVENT)
      anchor = event_.data.scalar.anchor, tag = event_.data.scalar.tag;
    if (event_.type == YAML_MAPPING_START_EVENT)
      anchor = event_.data.mapping_start.anchor, tag = event_.data.mapping_start.tag;
    if (event_.type == YAML_SEQUENCE_START_EVENT)
      anchor = event_.data.sequence_start.anchor, tag = event_.data.sequence_start.tag;
    if (anchor != nullptr) refuse("must have no anchor (&name); write the values out");
    if (tag != nullptr)
      refuse(fmt::format("must have no tag, got {}", reinterpret_cast<const char*>(tag)));
  }

  std::string scalar() const {
    if (event_.type != YAML_SCALAR_EVENT) refuse("must be a plain name");
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }

  void read_mapping(const std::string& key, int depth) {
    std::set<std::string> names;
    while (next() != YAML_MAPPING_END_EVENT) {
      const std::string name = scalar();
      if (!names.insert(name).second) refuse(fmt::format("\"{}\" is given twice", name));
      next();
      read(key.empty() ? name : key + '.' + name, depth + 1);
    }
  }

  void read(const std::string& key, int depth) {
    if (depth > kMaxNesting) refuse(fmt::format("must nest at most {} deep", kMaxNesting));
    if (event_.type == YAML_MAPPING_START_EVENT) return read_mapping(key, depth);
    if (event_.type == YAML_SEQUENCE_START_EVENT) {
      for (std::size_t i = 0; next() != YAML_SEQUENCE_END_EVENT; ++i)
        read(key + '.' + std::to_string(i), depth + 1);
      return;
    }
    ConfigValue value{.key = key, .text = scalar()};
    value.is_word = event_.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (!value.is_word && (value.text.empty() || value.text == "~" || value.text == "None"))
      value.text = "null";
    value.begin = byte_of(event_.start_mark), value.end = byte_of(event_.end_mark);
    values_.push_back(std::move(value));
  }

  /// libyaml counts characters. REQUIRES: a mark behind those before.
  std::size_t byte_of(const yaml_mark_t& mark) {
    bytes_ = behind_characters(text_, bytes_, mark.index - characters_);
    characters_ = mark.index;
    return bytes_;
  }

  std::string_view text_;
  std::size_t bytes_ = 0, characters_ = 0;  ///< Of the text before the last mark.
  yaml_parser_t parser_ = {};
  yaml_event_t event_ = {};
  std::vector<ConfigValue> values_;
};

}  // namespace

std::vector<ConfigValue> yaml_values(std::string_view text) { return YamlReader(text).values(); }

}  // namespace foretrace
