#include "foretrace/question.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/names.h"
#include "question/common/forms.h"
#include "question/files.h"

namespace foretrace {
namespace {

/// A program that asks.
class ProgramSession final : public Session {
 public:
  explicit ProgramSession(const AskOptions& options) : options_(options) {
    files_.confine_to(options.root);
  }

  void check_files(Question& question) {
    files_.add(question);
    files_.check();
  }

  void remark(const std::string& text) override { remarks.push_back(text); }
  void mention(const std::string&) override {}
  bool wants(std::string_view form) const override {
    return std::ranges::find(options_.forms, form) != options_.forms.end();
  }
  void will_write(const std::string& setting, const std::vector<std::string>& paths) override {
    std::vector<NamedFile> outputs;
    for (const std::string& path : paths) outputs.push_back({.setting = setting, .path = path});
    files_.add_outputs(outputs);
  }
  const std::atomic<bool>& stop() override {
    return options_.stop ? *options_.stop : Session::stop();
  }
  std::shared_ptr<const Job> open(const std::string& path, const JobOptions& options) override {
    return options_.job && path == opened() ? options_.job : Session::open(path, options);
  }
  std::string opened() const override { return options_.job ? options_.job->path() : ""; }
  std::string root() const override { return options_.root; }
  bool may_run() const override { return options_.root.empty(); }

  std::vector<std::string> remarks;

 private:
  const AskOptions& options_;
  QuestionFiles files_;
};

}  // namespace

void Answer::finish(std::string_view, std::ostream&) const {}

std::unique_ptr<Activity> Session::begin(const std::string&) {
  return std::make_unique<Activity>();
}

std::unique_ptr<Activity> Session::begin_counting(const std::string&, std::uint64_t) {
  return std::make_unique<Activity>();
}

void Session::remark(const std::string&) {}

bool Session::wants(std::string_view) const { return false; }

void Session::will_write(const std::string&, const std::vector<std::string>&) {}

const std::atomic<bool>& Session::stop() {
  static const std::atomic<bool> never = false;
  return never;
}

std::shared_ptr<const Job> Session::open(const std::string& path, const JobOptions& options) {
  return std::make_shared<const Job>(path, options);
}

const std::vector<QuestionEntry>& questions() {
  static const std::vector<QuestionEntry> all = {
#define QUESTION(name, summary) {#name, summary, &make_##name},
#include "question/questions.def"
#include "studies/questions.def"
#undef QUESTION
  };
  return all;
}

const QuestionEntry* find_question(std::string_view name) {
  const auto found = std::ranges::find(questions(), name, &QuestionEntry::name);
  return found == questions().end() ? nullptr : &*found;
}

Asked ask(std::string_view name, const nlohmann::json& settings, const AskOptions& options) {
  const QuestionEntry* const entry = find_question(name);
  if (!entry) {
    std::vector<std::string_view> names;
    for (const QuestionEntry& one : questions()) names.push_back(one.name);
    throw Error(fmt::format("there is no question '{}'{}", name, did_you_mean(name, names)));
  }
  Asked asked{.question = entry->make(), .answer = nullptr, .remarks = {}};
  read_json(settings, *asked.question);
  ProgramSession session(options);
  session.check_files(*asked.question);
  asked.answer = asked.question->ask(session);
  asked.remarks = std::move(session.remarks);
  return asked;
}

nlohmann::json answer_schema(const Question& question) {
  const std::vector<Form> forms = question.forms();
  return std::ranges::find(forms, "json", &Form::name)->schema();
}

void write_answer(const Question& question, const Answer& answer, std::string_view form,
                  std::ostream& out) {
  std::vector<std::string_view> names;
  for (const Form& one : question.forms()) {
    if (one.name == form) return one.write(answer, out);
    names.push_back(one.name);
  }
  throw Error(fmt::format("{}: must be one of {}, got \"{}\"{}", question.form_setting(),
                          joined(names), form, did_you_mean(form, names)));
}

}  // namespace foretrace
