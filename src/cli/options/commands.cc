// Makes the commands of the program: one for each question, and those of commands.def.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/core.h>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields/settings.h"
#include "base/files/new_file.h"
#include "base/shown.h"
#include "base/wording.h"
#include "cli/options/command.h"
#include "cli/options/progress.h"
#include "cli/options/stop_signals.h"
#include "foretrace/error.h"
#include "foretrace/fields.h"
#include "foretrace/names.h"
#include "question/files.h"

namespace foretrace {
namespace {

// The options of a command, made from settings: "memory_limit" is --memory-limit, and a setting
// that is given by its place has the name of its value, TRACE.

class DescribedOptions {
 public:
  /// Adds an option to the command for each setting. Settings of nested objects are not options.
  /// With `has_nested`, a nested command may be given in place of what is required.
  void add(Described& settings, CLI::App& command, bool has_nested = false);

  /// Writes what the command line gives into the settings, and lists the files that it names.
  /// Throws Error, naming the option, on a bad value or a required setting that is missing.
  void read(Described& settings, QuestionFiles& files) const;

 private:
  struct Option {
    CLI::Option* option = nullptr;
    std::string shown;               ///< "--memory-limit", "TRACE".
    std::string word;                ///< What is given, unless it is a list.
    std::vector<std::string> words;  ///< A list that is given.
    bool is_on = false;              ///< A flag that is given.
  };

  std::string command_;                                 ///< "plan show"
  std::map<std::string, Option, std::less<>> options_;  ///< By the name of the setting.
};

/// Calls a function for each setting that is no object.
template <class Function>
class EachSetting final : public Fields {
 public:
  explicit EachSetting(Function function) : function_(std::move(function)) {}
  void visit(const Setting& setting) override {
    if (!std::holds_alternative<Described*>(setting.value)) function_(setting);
  }

 private:
  Function function_;
};

/// "--memory-limit" for "memory_limit". A name in capitals is not that of a setting, and stays.
std::string option_name(std::string_view setting) {
  std::string text(setting);
  if (text.find_first_of("abcdefghijklmnopqrstuvwxyz") == text.npos) return text;
  std::ranges::replace(text, '_', '-');
  return "--" + text;
}

void DescribedOptions::add(Described& settings, CLI::App& command, bool has_nested) {
  const CLI::App* const outer = command.get_parent();
  const bool is_nested = outer != nullptr && outer->get_parent() != nullptr;
  command_ = (is_nested ? outer->get_name() + " " : "") + command.get_name();
  EachSetting each([&](const Setting& setting) {
    const bool is_flag = std::holds_alternative<bool*>(setting.value);
    const bool is_list = std::holds_alternative<std::vector<std::string>*>(setting.value);
    const std::string value = value_name(setting);
    Option& added = options_[std::string(setting.name)];
    added.shown =
        setting.form.is_positional ? std::string(setting.form.value) : option_name(setting.name);
    std::string names = added.shown;
    if (!setting.form.letter.empty()) names += fmt::format(",-{}", setting.form.letter);
    const std::string help(setting.help);
    if (is_flag) {
      added.option = command.add_flag(names, added.is_on, help);
      return;
    }
    const bool is_named_twice = setting.form.is_positional && value == setting.form.value;
    added.option = is_list ? command.add_option(names, added.words, help)
                           : command.add_option(names, added.word, help);
    added.option->type_name(is_named_twice ? "" : value);
    added.option->required(setting.form.is_required && !has_nested);
    if (!setting.form.is_positional) added.option->allow_extra_args(false);
  });
  settings.describe(each);
}

void DescribedOptions::read(Described& settings, QuestionFiles& files) const {
  EachSetting each([&](const Setting& setting) {
    const Option& given = options_.find(setting.name)->second;
    if (given.option->count() == 0) {
      if (setting.form.is_required)
        throw Error(
            fmt::format("{0}: {1} is required; see `foretrace help {0}`", command_, given.shown));
      return;
    }
    if (auto* const* flag = std::get_if<bool*>(&setting.value)) {
      **flag = given.is_on;
      return;
    }
    const bool is_list = std::holds_alternative<std::vector<std::string>*>(setting.value);
    const std::vector<std::string> words = is_list ? given.words : std::vector{given.word};
    const std::string place =
        setting.form.is_positional ? command_ + ": " + given.shown : given.shown;
    within(place, [&] { read_words(words, setting); });
    files.add(value_name(setting), given.shown, words);
  });
  settings.describe(each);
  settings.check();
}

struct MadeCommand {
  std::string_view name, summary;
  std::unique_ptr<Command> (*make)();
};

constexpr MadeCommand kCommands[] = {
#define COMMAND(name, summary) {#name, summary, &make_##name##_command},
#include "cli/commands.def"
#undef COMMAND
};

/// How the answer of a question is written.
class Writing final : public Described {
 public:
  explicit Writing(const Question& question) : setting_(question.form_setting()) {
    for (const Form& one : question.forms()) {
      if (one.is_printed) names_.push_back(one.name);
      if (!one.file_help.empty()) files.push_back({one.name, one.file_help, ""});
    }
  }

  void describe(Fields& fields) override {
    const std::string value = joined(names_, "|");
    fields.as({.value = value})
        .text(setting_, form,
              setting_ == "format" ? "Format of the result"
                                   : "Format of the " + std::string(setting_));
    for (File& file : files) fields.as({.value = "OUT"}).path(file.form, file.path, file.help);
    if (setting_ == "format")
      fields.as({.value = "OUT", .letter = "o"})
          .path("output", output, "Write the result to this file instead of standard output");
    fields.flag("brief", is_brief, "Print the head of the answer, at most five lines");
    fields.flag("quiet", is_quiet, "Show no progress");
  }

  void check() const override {
    if (is_brief && !form.empty() && form != "text" && form != "brief")
      throw Error(fmt::format("--brief: goes with --{} text, got {}", setting_, form));
    if (form.empty() || std::ranges::find(names_, form) != names_.end()) return;
    for (const File& file : files) {
      if (file.form == form)
        throw Error(fmt::format("--{}: use --{} FILE to write a page", setting_, form));
    }
    throw Error(fmt::format("--{}: must be one of {}, got '{}'{}", setting_, joined(names_), form,
                            did_you_mean(form, names_)));
  }

  std::vector<std::string> chosen(const Answer& answer) const {
    if (is_brief) return {"brief"};
    if (!form.empty()) return {form};
    std::vector<std::string> preferred = answer.preferred_forms();
    if (preferred.empty()) preferred.emplace_back("text");
    return preferred;
  }

  struct File {
    std::string_view form;
    std::string help, path;
  };
  std::string form, output;
  std::vector<File> files;
  bool is_brief = false, is_quiet = false;

 private:
  std::string_view setting_;
  std::vector<std::string_view> names_;
};

class ShownActivity final : public Activity {
 public:
  ShownActivity(const std::string& activity, bool is_quiet) { plain_.emplace(activity, is_quiet); }
  ShownActivity(const std::string& nouns, std::uint64_t total, bool is_quiet) {
    counted_.emplace(nouns, total, is_quiet);
  }
  void add() override {
    if (counted_) counted_->add();
  }

 private:
  std::optional<Progress> plain_;
  std::optional<CountedProgress> counted_;
};

/// Someone at a shell asks.
class ShellSession final : public Session {
 public:
  ShellSession(Invocation& invocation, const Writing& writing)
      : invocation_(invocation), writing_(writing) {}

  std::unique_ptr<Activity> begin(const std::string& activity) override {
    return std::make_unique<ShownActivity>(activity, writing_.is_quiet);
  }
  std::unique_ptr<Activity> begin_counting(const std::string& nouns, std::uint64_t total) override {
    return std::make_unique<ShownActivity>(nouns, total, writing_.is_quiet);
  }
  void remark(const std::string& text) override { std::cerr << "foretrace: " << text << '\n'; }
  void mention(const std::string& text) override {
    if (!writing_.is_quiet) remark(text);
  }
  bool wants(std::string_view form) const override {
    if (form == "file") return !writing_.output.empty();
    if (form == writing_.form) return true;
    return std::ranges::any_of(writing_.files, [&](const Writing::File& file) {
      return file.form == form && !file.path.empty();
    });
  }
  void will_write(const std::string& setting, const std::vector<std::string>& paths) override {
    std::vector<NamedFile> outputs;
    for (const std::string& path : paths)
      outputs.push_back({.setting = option_name(setting), .path = path});
    invocation_.files.add_outputs(outputs);
  }
  std::ostream* rows() override { return &invocation_.out; }
  const std::atomic<bool>& stop() override {
    if (!signals_) signals_.emplace();
    return stop_requested();
  }

  /// Signals end the program from now on, as they do without a session. Returns whether one asked
  /// to stop before.
  bool end_stops() {
    const bool was_stopped = signals_ && stop_requested();
    signals_.reset();
    return was_stopped;
  }

 private:
  Invocation& invocation_;
  const Writing& writing_;
  std::optional<StopSignals> signals_;
};

/// Asks a question, writes its answer, and remembers the exit code.
void ask_and_write(Question& question, const Writing& writing, Invocation& invocation) {
  ShellSession session(invocation, writing);
  const std::unique_ptr<Answer> answer = question.ask(session);
  const bool was_stopped = session.end_stops();
  const auto write_file = [&](const std::string& path, const std::string& form) {
    write_new_file(path, [&](std::ostream& file) {
      const EscapedOutput wall(file);
      write_answer(question, *answer, form, file);
    });
  };
  for (const Writing::File& file : writing.files) {
    if (!file.path.empty()) write_file(file.path, std::string(file.form));
  }
  const std::vector<std::string> forms = writing.chosen(*answer);
  for (const std::string& form : forms) {
    if (writing.output.empty()) {
      write_answer(question, *answer, form, invocation.out);
    } else {
      write_file(writing.output, form);
    }
  }
  answer->finish(writing.output.empty() ? forms.front() : "", invocation.out);
  // As a shell reports a program that a signal ended.
  invocation.exit_code = was_stopped ? exit_code_of_stop() : answer->exit_code();
}

/// Adds a command that asks a question.
void add_question(CLI::App& command, const QuestionEntry& entry, Invocation& invocation) {
  const std::string inner = std::string(entry.name) + '_';
  const bool has_nested =
      std::ranges::any_of(questions(), [&](auto& one) { return one.name.starts_with(inner); }) ||
      std::ranges::any_of(kCommands, [&](auto& one) { return one.name.starts_with(inner); });
  struct Asking {
    explicit Asking(std::unique_ptr<Question> asked)
        : question(std::move(asked)), writing(*question) {}
    std::unique_ptr<Question> question;
    Writing writing;
    DescribedOptions options;
  };
  const auto asking = std::make_shared<Asking>(entry.make());
  asking->options.add(*asking->question, command, has_nested);
  asking->options.add(asking->writing, command);
  command.footer(asking->question->remarks());
  command.callback([asking, &command, &invocation] {
    if (!command.get_subcommands().empty()) return;  // The nested command has answered.
    asking->options.read(*asking->question, invocation.files);
    asking->options.read(asking->writing, invocation.files);
    invocation.files.check();
    ask_and_write(*asking->question, asking->writing, invocation);
  });
}

void add_command(CLI::App& command, const MadeCommand& entry, Invocation& invocation) {
  const std::shared_ptr<Command> made = entry.make();
  const auto options = std::make_shared<DescribedOptions>();
  options->add(*made, command);
  command.footer(made->remarks());
  if (made->runs_a_program()) command.positionals_at_end();
  command.callback([made, options, &invocation] {
    options->read(*made, invocation.files);
    invocation.files.check();
    made->run(invocation);
  });
}

/// "plan show" for "plan_show", if there is a command "plan".
std::string spoken_name(std::string_view name) {
  const std::size_t end = name.find('_');
  if (end == name.npos) return std::string(name);
  return fmt::format("{} {}", name.substr(0, end), name.substr(end + 1));
}

struct AnyCommand {
  std::string name;  ///< "plan show"
  std::string_view summary;
  std::function<void(CLI::App&, Invocation&)> add;
};

/// Sorted by name, so that a command comes before those nested in it.
std::vector<AnyCommand> every_command() {
  std::vector<AnyCommand> all;
  for (const QuestionEntry& entry : questions()) {
    all.push_back({spoken_name(entry.name), entry.summary,
                   [&entry](CLI::App& command, Invocation& invocation) {
                     add_question(command, entry, invocation);
                   }});
  }
  for (const MadeCommand& entry : kCommands) {
    all.push_back({spoken_name(entry.name), entry.summary,
                   [&entry](CLI::App& command, Invocation& invocation) {
                     add_command(command, entry, invocation);
                   }});
  }
  std::ranges::sort(all, {}, &AnyCommand::name);
  return all;
}

}  // namespace

std::vector<CommandEntry> outer_commands() {
  std::vector<CommandEntry> outer;
  for (AnyCommand& one : every_command()) {
    if (one.name.find(' ') == std::string::npos)
      outer.push_back({std::move(one.name), one.summary});
  }
  return outer;
}

void add_commands(CLI::App& app, Invocation& invocation) {
  for (const AnyCommand& one : every_command()) {
    const std::size_t space = one.name.find(' ');
    CLI::App& outer =
        space == std::string::npos ? app : *app.get_subcommand(one.name.substr(0, space));
    const std::string name = space == std::string::npos ? one.name : one.name.substr(space + 1);
    CLI::App* const command = outer.add_subcommand(name, std::string(one.summary));
    one.add(*command, invocation);
  }
}

}  // namespace foretrace
