#include <fmt/core.h>

#include "cli/manual/manual.h"
#include "cli/options/command.h"
#include "foretrace/error.h"
#include "foretrace/question/pipeline.h"
#include "foretrace/transform.h"
#include "transform/synonyms.h"

namespace foretrace {
namespace {

void write_transform_topic(const std::string& name, Invocation& invocation) {
  if (!write_transform_help(name, invocation.out)) throw Error(no_such_transform(name));
}

/// Writes the help of a command, of a transform or of a schedule. Throws Error if there is none of
/// this name.
void write_topic_help(const std::string& name, Invocation& invocation) {
  if (name == "allocator") return write_allocator_help(invocation.out);
  std::vector<std::string> names;
  for (const CommandEntry& entry : outer_commands()) {
    if (entry.name == name) {
      invocation.out << invocation.app.get_subcommand(name)->help("foretrace");
      return;
    }
    names.emplace_back(entry.name);
  }
  if (write_transform_help(name, invocation.out) || write_schedule_help(name, invocation.out))
    return;
  for (const TransformEntry& entry : transforms()) names.emplace_back(entry.name);
  throw Error(
      fmt::format("there is no command or transform '{}'{}", name, did_you_mean(name, names)));
}

/// Finds a nested command such as "memory replay". Returns nullptr if there is none.
const CLI::App* nested_command(const std::vector<std::string>& topic,
                               const Invocation& invocation) {
  if (topic.size() != 2) return nullptr;
  const CLI::App* outer = inner_command(invocation.app, topic[0]);
  return outer ? inner_command(*outer, topic[1]) : nullptr;
}

void run_help(const std::vector<std::string>& topic, Invocation& invocation) {
  if (topic.empty()) {
    invocation.out << invocation.app.help();
  } else if (topic.size() == 1 && topic[0] != "transform") {
    write_topic_help(topic[0], invocation);
  } else if (topic.size() == 2 && topic[0] == "transform") {
    write_transform_topic(topic[1], invocation);
  } else if (const CLI::App* inner = nested_command(topic, invocation)) {
    invocation.out << inner->help("foretrace " + topic[0]);
  } else {
    throw Error("help: must be `help`, `help COMMAND` or `help transform NAME`");
  }
}

class HelpCommand final : public Command {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "TOPIC", .is_positional = true})
        .texts("topic", topic_, "A command, or: transform NAME");
    fields.flag("man", wants_manual_,
                "Print a man page: of the program, of the command TOPIC, or of all transforms "
                "(TOPIC \"transforms\")");
  }

  void run(Invocation& invocation) override {
    if (!wants_manual_) return run_help(topic_, invocation);
    if (topic_.size() > 1) throw Error("help --man: takes at most one command");
    write_manual(invocation.app, topic_.empty() ? "" : topic_.front(), invocation.out);
  }

 private:
  std::vector<std::string> topic_;
  bool wants_manual_ = false;
};

}  // namespace

std::unique_ptr<Command> make_help_command() { return std::make_unique<HelpCommand>(); }

}  // namespace foretrace
