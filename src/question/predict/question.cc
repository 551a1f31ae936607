#include <algorithm>
#include <fmt/core.h>
#include <sstream>
#include <variant>

#include "base/shown.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/predict.h"
#include "question/common/changes.h"
#include "question/common/forms.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

/// One prediction, or one for each value of a setting.
struct PredictedJob {
  std::variant<Prediction, Curve> found;
  std::string page;                        ///< HTML, if it was wanted.
  std::vector<CheckedAssert> failed = {};  ///< Assertions of the scenario that do not hold.
};

/// The assertions that do not hold, for programs.
void write_failed_asserts(const PredictedJob& job, std::ostream& out) {
  nlohmann::json all = nlohmann::json::array();
  for (const CheckedAssert& one : job.failed) {
    all.push_back({{"text", one.text},
                   {"found", one.found},
                   {"verdict", one.verdict == Verdict::fails ? "fails" : "undecided"}});
  }
  print_json(all, out);
}

class PredictAnswer final : public AnswerOf<PredictedJob> {
 public:
  PredictAnswer(PredictedJob found, ExitCode code, std::vector<std::string> preferred)
      : AnswerOf(std::move(found), code), preferred_(std::move(preferred)) {}
  std::vector<std::string> preferred_forms() const override { return preferred_; }

 private:
  std::vector<std::string> preferred_;
};

Document document_of(const PredictedJob& job) {
  return std::visit([](const auto& one) { return foretrace::document_of(one); }, job.found);
}
nlohmann::json to_json(const PredictedJob& job) {
  return std::visit([](const auto& one) { return foretrace::to_json(one); }, job.found);
}
void write_csv(const PredictedJob& job, std::ostream& out) {
  std::visit([&](const auto& one) { foretrace::write_csv(one, out); }, job.found);
}

void write_job_page(const PredictedJob& job, std::ostream& out) {
  if (job.page.empty()) return write_html(document_of(job), out);
  out << job.page;
}

/// Says which assertions of the scenario do not hold. Returns the exit code.
ExitCode check_assertions(const std::vector<CheckedAssert>& failed, Session& session) {
  ExitCode code = kAnswered;
  for (const CheckedAssert& one : failed) {
    const bool fails = one.verdict == Verdict::fails;
    session.remark(fmt::format("assert {}: {}, found {}", fails ? "fails" : "is undecided",
                               shown(one.text), shown(one.found)));
    if (fails) code = kCheckFailed;
    if (!fails && code == kAnswered) code = kUndecided;
  }
  return code;
}

class Predict final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_question(fields);
    describe_details(fields);
    reading_.describe_part(fields);
    reading_.describe_execution_trace(fields);
    reading_.describe(fields);
  }

  std::vector<Form> forms() const override {
    std::vector<Form> all = forms_with_page<PredictedJob>(
        "Also write the answer as one HTML page with timelines, the critical path and memory, "
        "before and after",
        write_job_page);
    all.push_back(form("asserts", write_failed_asserts));
    all.back().is_printed = false;
    return all;
  }

  std::unique_ptr<Answer> ask(Session& session) override {
    const Scenario asked = scenario(session);
    const JobOptions opening{.reading = reading_.options(session),
                             .world_size = static_cast<std::int32_t>(world_size_),
                             .keeps_traces = !options_.perfetto_path.empty()};
    warn_if_large(asked.trace, opening.reading, session);
    if (!vary_.empty()) return ask_for_many(asked, opening, session);
    if (!values_.until.empty()) throw Error("--until: needs --vary, which says what to change");
    PredictedJob job;
    PredictOptions options = options_;
    if (session.wants("html")) {
      options.page_is_whole = true;
      options.take_page = [&job](const PredictionPage& page) {
        std::ostringstream text;
        write_prediction_page(page, text);
        job.page = text.str();
      };
    }
    const auto activity = session.begin("predicting " + asked.trace);
    job.found = predict(*session.open(asked.trace, opening), asked, options);
    job.failed = check_asserts(asked, std::get<Prediction>(job.found));
    const ExitCode code = check_assertions(job.failed, session);
    return std::make_unique<PredictAnswer>(std::move(job), code, asked.reports);
  }

 private:
  void describe_question(Fields& fields) {
    fields.as({.value = "TRACE", .is_positional = true})
        .text("trace", trace_, "A trace, or a folder with the traces of all ranks");
    changes_.describe(fields,
                      "What to change: a transform with its settings, prefetch:buffers=2, or "
                      "several, amp,loader:workers=4; may be repeated. Common names work, too: "
                      "bf16, num_workers=4 (see list synonyms)",
                      "Read the changes from this JSON file");
    changes_.describe_machine(fields);
    allocator_.describe(fields);
    changes_.describe_samples(fields);
    changes_.describe_tokens(fields);
    options_.training.describe(fields);
    fields.as({.value = "SETTING=VALUES"})
        .text("vary", vary_,
              "Predict for several values of a setting: loader.workers=0..16, "
              "recompute.share=0..1/10, memory.limit=8GB,16GB");
    fields.as({.value = "ASSERTION"})
        .text("until", values_.until,
              "With --vary: find the last value of a range for which this holds, such as "
              "\"peak_reserved <= 16GB\"");
  }

  void describe_details(Fields& fields) {
    fields.as({.value = "OUT"})
        .path("perfetto", options_.perfetto_path,
              "Also write the predicted timeline: as .pftrace for ui.perfetto.dev, or as JSON (.gz "
              "compresses either), with all ranks and whom each waits for; FOLDER/ gets a file for "
              "each rank");
    fields.path("ledger", options_.ledger_path,
                "Your own ledger of outcomes (written by validate and verify), which widens or "
                "narrows the interval");
    fields.as({.value = "COUNT"})
        .integer("ranks", world_size_,
                 "Number of ranks of the whole job: the recorded groups are repeated until there "
                 "are this many ranks, and each recorded rank stands for those with its place in a "
                 "group",
                 1, 1 << 20);
    fields.flag("exact", options_.exact,
                "Replay each rank by itself, even those that are provably alike; same answer");
    fields.flag("explain", options_.explain, "Show what the critical path works on and waits for");
    fields.flag("strict", options_.strict, "Refuse a trace that causes warnings");
  }

  Scenario scenario(const Session& session) const {
    Scenario scenario = changes_.scenario();
    if (!trace_.empty()) scenario.trace = trace_;
    if (scenario.trace.empty()) scenario.trace = session.opened();
    allocator_.set(scenario.allocator);
    if (scenario.trace.empty())
      throw Error("predict: which TRACE? Give it on the command line or in the scenario");
    return scenario;
  }

  std::unique_ptr<Answer> ask_for_many(const Scenario& asked, const JobOptions& opening,
                                       Session& session) {
    const std::size_t equals = vary_.find('=');
    if (equals == std::string::npos)
      throw Error(fmt::format(
          "--vary: must be SETTING=VALUES such as loader.workers=0..16, got \"{}\"", vary_));
    if (!options_.perfetto_path.empty() || options_.explain || options_.strict)
      throw Error(
          "--vary: makes many predictions; --perfetto, --explain and --strict work with a single "
          "one");
    values_.setting = vary_.substr(0, equals);
    values_.values = vary_.substr(equals + 1);
    const auto activity = session.begin("predicting " + asked.trace);
    Curve curve = vary(*session.open(asked.trace, opening), asked, values_,
                       {.ledger_path = options_.ledger_path, .training = options_.training});
    ExitCode code = kAnswered;
    if (!values_.until.empty() && !curve.answer)
      code = curve.trust.grade() == Grade::poor ? kUndecided : kCheckFailed;
    return std::make_unique<PredictAnswer>(PredictedJob{std::move(curve), {}, {}}, code,
                                           asked.reports);
  }

  std::string trace_, vary_;
  Changes changes_;
  AllocatorChoice allocator_;
  Vary values_;
  std::int64_t world_size_ = 0;
  PredictOptions options_;
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_predict() { return std::make_unique<Predict>(); }

}  // namespace foretrace
