#include "import/perfetto/perfetto_event.h"

namespace foretrace {
namespace {

void intern(std::unordered_map<std::uint64_t, std::string>& table, std::string_view message) {
  std::uint64_t id = 0;
  std::string_view text;
  ProtoReader fields(message);
  while (fields.next()) {
    if (fields.number() == 1) id = fields.unsigned_value();
    if (fields.number() == 2) text = fields.bytes();
  }
  table[id] = text;
}

std::string_view find(const std::unordered_map<std::uint64_t, std::string>& table,
                      std::uint64_t id) {
  const auto found = table.find(id);
  return found == table.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

void PerfettoTexts::add(std::string_view message) {
  ProtoReader fields(message);
  while (fields.next()) {
    if (fields.number() == 1) intern(categories, fields.bytes());
    if (fields.number() == 2) intern(names, fields.bytes());
    if (fields.number() == 3) intern(keys, fields.bytes());
    if (fields.number() == 29) intern(texts, fields.bytes());
  }
}

void PerfettoEvent::read(std::string_view message, const PerfettoTexts& texts) {
  type = Type::unknown;
  track = 0;
  has_track = is_legacy = false;
  name = category = {};
  arguments.clear();
  ProtoReader fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case 3:
        if (category.empty()) category = find(texts.categories, fields.unsigned_value());
        break;
      case 4:
        read_argument(fields.bytes(), texts);
        break;
      case 6:
        is_legacy = true;
        break;
      case 9:
        type = fields.unsigned_value() <= 4 ? static_cast<Type>(fields.unsigned_value())
                                            : Type::unknown;
        break;
      case 10:
        name = find(texts.names, fields.unsigned_value());
        break;
      case 11:
        track = fields.unsigned_value();
        has_track = true;
        break;
      case 22:
        if (category.empty()) category = fields.bytes();
        break;
      case 23:
        name = fields.bytes();
        break;
      default:
        break;
    }
  }
}

void PerfettoEvent::read_argument(std::string_view message, const PerfettoTexts& texts) {
  PerfettoArgument argument;
  ProtoReader fields(message);
  while (fields.next()) {
    const std::uint32_t field = fields.number();
    if (field == 1) argument.key = find(texts.keys, fields.unsigned_value());
    if (field == 10) argument.key = fields.bytes();
    if (field == 2 || field == 3 || field == 4 || field == 7)
      argument.number = fields.signed_value();
    if (field == 6) argument.text = fields.bytes();
    if (field == 17) argument.text = find(texts.texts, fields.unsigned_value());
  }
  arguments.push_back(argument);
}

std::int64_t PerfettoEvent::number(std::string_view key, std::int64_t otherwise) const {
  for (const PerfettoArgument& argument : arguments) {
    if (argument.key == key) return argument.number;
  }
  return otherwise;
}

std::string_view PerfettoEvent::text(std::string_view key) const {
  for (const PerfettoArgument& argument : arguments) {
    if (argument.key == key) return argument.text;
  }
  return {};
}

}  // namespace foretrace
