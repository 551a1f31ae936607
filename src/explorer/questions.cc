#include "explorer/questions.h"

#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/fields/settings.h"
#include "base/json_text.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/machine.h"
#include "foretrace/question.h"
#include "foretrace/scenario.h"
#include "foretrace/transform.h"
#include "foretrace/version.h"
#include "job/job.h"
#include "question/files.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Returns the text that commands print for this answer.
std::string printed(const Json& answer) { return indented_json(answer) + '\n'; }

/// Quotes the text where needed, so that a shell reads it as one word.
std::string quoted(const std::string& text) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return all + "'";
}

/// Returns the command line that asks the same. It leaves out memory limits and the like, which
/// only the scenario's JSON can express.
std::string command_for(const Scenario& scenario) {
  std::string command = "foretrace predict " + quoted(scenario.trace);
  for (const std::string& use : scenario.uses) command += " --with " + quoted(use);
  if (!scenario.machine.empty()) command += " --machine " + quoted(scenario.machine);
  return command;
}

Scenario scenario_of(const Json& question, const std::string& path) {
  Scenario scenario = parse_scenario(question.at("scenario"));
  scenario.trace = path;
  return scenario;
}

Json predicted(const Job& job, const Json& question) {
  const Scenario scenario = scenario_of(question, job.path());
  Json answer;
  PredictOptions options;
  const auto tasks = question.value("tasks", std::size_t{0});
  if (tasks > 0) {
    options.take_page = [&](const PredictionPage& page) {
      answer["parts"] = prediction_parts(page, tasks);
    };
  }
  answer["json"] = printed(to_json(predict(job, scenario, options)));
  answer["command"] = command_for(scenario);
  return answer;
}

/// The parts of a page that shows a document.
Json parts_of(const Document& document) {
  std::ostringstream out;
  write_parts(document, out);
  return Json::parse(out.str());
}

/// The names of settings that say a file to read.
class FileSettings final : public Fields {
 public:
  void visit(const Setting& setting) override {
    const std::string value = value_name(setting);
    if (value == "TRACE" || value == "B" || value.ends_with("FILE")) names.push_back(setting.name);
  }
  Json names = Json::array();
};

/// All questions, each with what a form needs.
Json described_questions() {
  Json all = Json::array();
  for (const QuestionEntry& entry : questions()) {
    const auto question = entry.make();
    Json schema = json_schema(*question);
    FileSettings files;
    question->describe(files);
    all.push_back({{"name", entry.name},
                   {"summary", entry.summary},
                   {"defaults", write_json(*question)},
                   {"required", schema.value("required", Json::array())},
                   {"order", setting_order(*question)},
                   {"files", std::move(files.names)},
                   {"settings", std::move(schema.at("properties"))}});
  }
  return all;
}

/// The answer to any question, as text and as JSON.
Json answered(const Json& question, const std::shared_ptr<const Job>& job) {
  const Asked asked = ask(question.at("name").get<std::string>(), question.at("settings"),
                          {.forms = {"text", "json", "parts"}, .job = job});
  Json answer = {{"remarks", asked.remarks}};
  for (const char* form : {"text", "json", "parts"}) {
    std::ostringstream out;
    write_answer(*asked.question, *asked.answer, form, out);
    answer[form] = out.str();
  }
  answer["parts"] = Json::parse(answer["parts"].get<std::string>());
  return answer;
}

/// Calls `draw` with the recorded run of a job, while its graphs exist.
void with_recorded_run(const Job& job, const std::function<void(const DrawnRun&)>& draw) {
  predict(job, {}, {.take_page = [&](const PredictionPage& page) { draw(page.now); }});
}

/// The differences of two recordings, with their timelines on one axis in front.
Json compared(const Json& question) {
  const auto before = question.at("before").get<std::string>();
  const auto after = question.at("after").get<std::string>();
  Json answer =
      answered({{"name", "diff"}, {"settings", {{"before", before}, {"after", after}}}}, {});
  const Job a(before), b(after);
  if (a.ranks().has_snapshots() || b.ranks().has_snapshots()) return answer;
  with_recorded_run(a, [&](const DrawnRun& one) {
    with_recorded_run(b, [&](const DrawnRun& other) {
      Json drawn = recordings_parts(one, other, question.at("tasks").get<std::size_t>());
      Json& sections = answer["parts"]["sections"];
      sections.insert(sections.begin(), drawn["sections"].begin(), drawn["sections"].end());
      answer["parts"]["timelines"] = std::move(drawn["timelines"]);
    });
  });
  return answer;
}

Json varied(const Job& job, const Json& question) {
  const auto text = [&](const char* name) { return question.at(name).get<std::string>(); };
  const Curve curve = vary(job, scenario_of(question, job.path()),
                           {.setting = text("setting"), .values = text("values"), .until = {}});
  return {{"json", printed(to_json(curve))}, {"parts", parts_of(document_of(curve))}};
}

}  // namespace

std::string Explorer::answer(std::string_view question) {
  Json answer;
  try {
    answer = answer_to(parse_json<Json>(question));
  } catch (const std::bad_alloc&) {
    answer = {
        {"error",
         "the browser has no memory left for this; use the command line instead, where --steps "
         "also reads only a part of a trace"}};
  } catch (const std::exception& error) {
    answer = {{"error", error.what()}};
  }
  return json_line(answer);
}

nlohmann::json Explorer::answer_to(const nlohmann::json& question) {
  const auto asked = question.at("ask").get<std::string>();
  const auto text = [&](const char* name) { return question.at(name).get<std::string>(); };
  if (asked == "transforms") return {{"transforms", describe_transforms()}, {"version", kVersion}};
  if (asked == "machines") return {{"machines", device_names()}};
  if (asked == "read") {
    Scenario scenario;
    add_steps(text("steps"), scenario);
    return {{"transforms", write_scenario(scenario).at("transforms")}};
  }
  if (asked == "open") {
    open_job_.reset();  // Two jobs might not fit.
    open_job_ = std::make_shared<const Job>(text("path"), JobOptions{.keeps_traces = true});
    return Json::object();
  }
  if (asked == "quick" || asked == "predict" || asked == "vary") {
    if (!open_job_) throw Error("no job is open");
    if (asked == "predict") return predicted(*open_job_, question);
    if (asked == "vary") return varied(*open_job_, question);
    return {
        {"json", to_json(quick_prediction(*open_job_, scenario_of(question, open_job_->path())))}};
  }
  if (asked == "questions") return {{"questions", described_questions()}};
  if (asked == "question") return answered(question, open_job_);
  if (asked == "compare") return compared(question);
  throw Error(
      "ask: must be transforms, machines, questions, read, open, quick, predict, vary, compare or "
      "question, got " +
      asked);
}

}  // namespace foretrace
