#include <fmt/core.h>
#include <sstream>

#include "cli/manual/manual.h"
#include "foretrace/allocator.h"
#include "foretrace/transform.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

constexpr std::size_t kTextWidth = 96;

/// Writes `text` in lines of at most kTextWidth characters, each indented by two spaces.
void write_wrapped(std::string_view text, std::ostream& out) {
  std::istringstream words{std::string(text)};
  std::string word, line;
  while (words >> word) {
    if (!line.empty() && line.size() + 1 + word.size() > kTextWidth) {
      out << "  " << line << '\n';
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) out << "  " << line << '\n';
}

void write_entry_help(const TransformEntry& entry, std::ostream& out) {
  out << entry.name << '\n';
  write_wrapped(std::string(entry.summary) + ".", out);
  std::string names;
  for (const std::string_view name : synonyms_of(entry.name))
    names += (names.empty() ? "Also called: " : ", ") + std::string(name);
  if (!names.empty()) write_wrapped(names + ".", out);
  out << '\n';
  if (!entry.assumes.empty()) {
    write_wrapped(entry.assumes, out);
    out << '\n';
  }
  std::ostringstream settings;
  write_help(*entry.make(), settings);
  std::istringstream lines(settings.str());
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with("  ") || line.empty();
    out << (indented ? "" : "  ") << line << '\n';
  }
}

}  // namespace

bool write_transform_help(const std::string& name, std::ostream& out) {
  const std::string meant = transform_called(name);
  for (const TransformEntry& entry : transforms()) {
    if (entry.name != meant) continue;
    write_entry_help(entry, out);
    return true;
  }
  return false;
}

void write_allocator_help(std::ostream& out) {
  out << "allocator\n";
  write_wrapped(
      "Settings of PyTorch's caching allocator (native back end) and of the device's memory, for "
      "--allocator and for \"memory\" in a scenario.",
      out);
  out << '\n';
  AllocatorSettings settings;
  write_help(settings, out);
}

}  // namespace foretrace
