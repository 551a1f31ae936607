#pragma once

// A question is a noun. It lists its settings once, in describe(), and everyone who asks goes by
// that list: the command line, agents, Python and the explorer make their options, schemas, forms
// and help of it, so that each of them has all questions.
//
//     words, JSON --describe()--> QUESTION --ask(session)--> ANSWER --form--> text, JSON, a page
//
// One folder in src/question and one line in questions.def make a question.

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foretrace/fields.h"

namespace foretrace {

/// Exit codes of the process; the numbers are part of the contract.
enum ExitCode : int {
  kAnswered = 0,
  kCheckFailed = 1,
  kWrongUse = 2,
  kUnusableTrace = 3,
  kUndecided = 4,
  kBug = 70,
};

class Job;
struct JobOptions;

class Answer {
 public:
  virtual ~Answer() = default;
  virtual ExitCode exit_code() const { return kAnswered; }
  /// The forms to write if none is named; empty: "text".
  virtual std::vector<std::string> preferred_forms() const { return {}; }
  /// Called once the answer is written. `out` takes what is said beside it; `form` is the form on
  /// `out`, or empty if the answer went to a file.
  virtual void finish(std::string_view form, std::ostream& out) const;
};

/// One way to write the answers of a question.
struct Form {
  std::string_view name;  ///< "text", "json", "html"
  std::function<void(const Answer& answer, std::ostream& out)> write;
  /// Returns the JSON Schema of what is written; only of "json".
  std::function<nlohmann::json()> schema = {};
  /// Says what a file of this form is for. Empty: it is not written beside the answer.
  std::string file_help = {};
  bool is_printed = true;  ///< Otherwise it is only for files.
};

/// Shows that something takes long, while it lives.
class Activity {
 public:
  virtual ~Activity() = default;
  /// One more of the things that were announced is done. Safe to call from several threads.
  virtual void add() {}
};

/// Who asks. The base class asks from within a program: it shows nothing, and stops at nothing.
class Session {
 public:
  virtual ~Session() = default;
  virtual std::unique_ptr<Activity> begin(const std::string& activity);
  /// `total` things will be done, named by a plural: "points".
  virtual std::unique_ptr<Activity> begin_counting(const std::string& nouns, std::uint64_t total);
  /// Says something that is not part of the answer, in one line.
  virtual void remark(const std::string& text);
  /// The same, unless whoever asks wants no more than the answer.
  virtual void mention(const std::string& text) { remark(text); }
  /// Whether the answer will be written in this form. Drawings are only made then.
  virtual bool wants(std::string_view form) const;
  /// Announces files whose names no setting says. Throws Error if one is an input or another
  /// output, or if no file may be written. REQUIRES: none of them has been written yet.
  virtual void will_write(const std::string& setting, const std::vector<std::string>& paths);
  /// Where rows of an answer go as soon as they are found; nullptr: nowhere.
  virtual std::ostream* rows() { return nullptr; }
  /// Becomes true if the answer is to be ended early, with what has been found.
  virtual const std::atomic<bool>& stop();
  /// Opens the job at a path, unless it is open already; then it stays as it was opened. Throws
  /// TraceError.
  virtual std::shared_ptr<const Job> open(const std::string& path, const JobOptions& options);
  /// The path of the job that is open; empty: none.
  virtual std::string opened() const { return {}; }
  /// The folder outside which no file is read; then none is written. Empty: any.
  virtual std::string root() const { return {}; }
  /// Whether reading a file may run another program.
  virtual bool may_run() const { return true; }
};

class Question : public Described {
 public:
  /// Each question has at least "text", which is the usual form, and "json".
  virtual std::vector<Form> forms() const = 0;
  /// Throws Error or TraceError.
  virtual std::unique_ptr<Answer> ask(Session& session) = 0;
  /// Text that help shows below the settings.
  virtual std::string remarks() const { return {}; }
  /// The setting that names the form of the answer. A question that has a setting "output" writes
  /// its rows there, and its answer is always printed.
  virtual std::string_view form_setting() const { return "format"; }
};

/// An answer that is a value.
template <class Value>
class AnswerOf : public Answer {
 public:
  explicit AnswerOf(Value value, ExitCode code = kAnswered)
      : value_(std::move(value)), code_(code) {}
  const Value& value() const { return value_; }
  ExitCode exit_code() const override { return code_; }

 private:
  Value value_;
  ExitCode code_;
};

template <class Value>
std::unique_ptr<Answer> answer_of(Value value, ExitCode code = kAnswered) {
  return std::make_unique<AnswerOf<Value>>(std::move(value), code);
}

/// A form of AnswerOf<Value>.
template <class Value>
Form form(std::string_view name, void (*write)(const Value& value, std::ostream& out)) {
  return {name, [write](const Answer& answer, std::ostream& out) {
            write(dynamic_cast<const AnswerOf<Value>&>(answer).value(), out);
          }};
}
/// A page, which is only written to a file.
template <class Value>
Form page_form(std::string file_help, void (*write)(const Value& value, std::ostream& out)) {
  Form page = form<Value>("html", write);
  page.file_help = std::move(file_help), page.is_printed = false;
  return page;
}

struct QuestionEntry {
  /// "scale", or "plan_show" for `plan show`.
  std::string_view name, summary;
  std::unique_ptr<Question> (*make)();
};
/// Sorted by name.
const std::vector<QuestionEntry>& questions();
/// Returns nullptr if there is no question of this name.
const QuestionEntry* find_question(std::string_view name);

/// Returns the JSON Schema of the question's answers as JSON.
nlohmann::json answer_schema(const Question& question);

/// Writes an answer in one of the question's forms. Throws Error if there is no such form.
void write_answer(const Question& question, const Answer& answer, std::string_view form,
                  std::ostream& out);

/// How a program asks.
struct AskOptions {
  /// Only files in this folder are read, and none is written; empty: any.
  std::string root = {};
  std::vector<std::string> forms = {};  ///< In which the answer will be written.
  const std::atomic<bool>* stop = nullptr;
  std::shared_ptr<const Job> job = nullptr;  ///< A job that is open.
};
struct Asked {
  std::unique_ptr<Question> question;
  std::unique_ptr<Answer> answer;
  std::vector<std::string> remarks;  ///< What was said beside the answer.
};
/// Asks the question of this name. Throws Error or TraceError, also for unknown settings.
Asked ask(std::string_view name, const nlohmann::json& settings, const AskOptions& options = {});

}  // namespace foretrace
