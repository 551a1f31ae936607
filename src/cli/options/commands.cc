// Makes the commands of the program: one for each question, and those of commands.def.

#include <algorithm>
#include <fmt/core.h>
#include <iostream>
#include <optional>

#include "base/files/new_file.h"
#include "base/shown.h"
#include "base/wording.h"
#include "cli/options/command.h"
#include "cli/options/described_options.h"
#include "cli/options/progress.h"
#include "cli/options/stop_signals.h"
#include "foretrace/error.h"
#include "foretrace/names.h"

namespace foretrace {

#define COMMAND(name, summary) std::unique_ptr<Command> make_##name##_command();
#include "cli/commands.def"
#undef COMMAND

namespace {

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
    for (const Form& form : question.forms()) {
      if (form.is_printed) names_.push_back(form.name);
      if (!form.file_help.empty()) files.push_back({form.name, form.file_help, ""});
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
