#include "cli/options/described_options.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/fields/settings.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

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

}  // namespace

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

}  // namespace foretrace
