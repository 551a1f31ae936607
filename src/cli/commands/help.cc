#include <fmt/core.h>
#include <memory>
#include <sstream>

#include "cli/manual/manual.h"
#include "cli/options/options.h"
#include "foretrace/allocator.h"
#include "foretrace/ask/pipeline.h"
#include "foretrace/error.h"
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

void write_transform_help(const TransformEntry& entry, std::ostream& out) {
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

/// Finds the transform by its name or by a common other name such as "bf16". Returns false if there
/// is none.
bool write_help_of(const std::string& name, std::ostream& out) {
  const std::string meant = transform_called(name);
  for (const TransformEntry& entry : transforms()) {
    if (entry.name != meant) continue;
    write_transform_help(entry, out);
    return true;
  }
  return false;
}

void write_transform_topic(const std::string& name, Session& session) {
  if (!write_help_of(name, session.out)) throw Error(no_such_transform(name));
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

/// Writes the help of a command, of a transform or of a schedule. Throws Error if there is none of
/// this name.
void write_topic_help(const std::string& name, Session& session) {
  if (name == "allocator") return write_allocator_help(session.out);
  std::vector<std::string_view> names;
  for (const CommandEntry& entry : commands()) {
    if (entry.name == name) {
      session.out << session.app.get_subcommand(name)->help("foretrace");
      return;
    }
    names.push_back(entry.name);
  }
  if (write_help_of(name, session.out) || write_schedule_help(name, session.out)) return;
  for (const TransformEntry& entry : transforms()) names.push_back(entry.name);
  throw Error(
      fmt::format("there is no command or transform '{}'{}", name, did_you_mean(name, names)));
}

/// Finds a nested command such as "memory replay". Returns nullptr if there is none.
const CLI::App* nested_command(const std::vector<std::string>& topic, const Session& session) {
  if (topic.size() != 2) return nullptr;
  const CLI::App* outer = inner_command(session.app, topic[0]);
  return outer ? inner_command(*outer, topic[1]) : nullptr;
}

void run_help(const std::vector<std::string>& topic, Session& session) {
  if (topic.empty()) {
    session.out << session.app.help();
  } else if (topic.size() == 1 && topic[0] != "transform") {
    write_topic_help(topic[0], session);
  } else if (topic.size() == 2 && topic[0] == "transform") {
    write_transform_topic(topic[1], session);
  } else if (const CLI::App* inner = nested_command(topic, session)) {
    session.out << inner->help("foretrace " + topic[0]);
  } else {
    throw Error("help: must be `help`, `help COMMAND` or `help transform NAME`");
  }
}

}  // namespace

void add_help(CLI::App& command, Session& session) {
  struct Question {
    std::vector<std::string> topic;
    bool manual = false;
  };
  const auto asked = std::make_shared<Question>();
  command.add_option("TOPIC", asked->topic, "A command, or: transform NAME");
  command.add_flag("--man", asked->manual,
                   "Print a man page: of the program, of the command TOPIC, or of all transforms "
                   "(TOPIC \"transforms\")");
  command.callback([asked, &session] {
    if (!asked->manual) return run_help(asked->topic, session);
    if (asked->topic.size() > 1) throw Error("help --man: takes at most one command");
    write_manual(session.app, asked->topic.empty() ? "" : asked->topic.front(), session.out);
  });
}

}  // namespace foretrace
