// Foretrace in Python: settings of questions go in as JSON texts, and answers come out as the texts
// that the command line prints. Users import foretrace/__init__.py, which turns both into
// dictionaries.

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "base/files/new_file.h"
#include "base/json_text.h"
#include "base/shown.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question.h"
#include "foretrace/transform.h"
#include "foretrace/version.h"
#include "python/interruptible.h"
#include "question/common/reading.h"

namespace foretrace {
namespace {

namespace py = pybind11;
using Json = nlohmann::json;

using JobPtr = std::shared_ptr<const Job>;
/// The answer in each form, the exit code of a program that had asked, and remarks.
using AnswerTexts = std::tuple<std::vector<std::string>, int, std::vector<std::string>>;

/// A call from Python. `files` has the paths of files to write, by form.
struct PythonCall {
  std::string question, settings;
  std::vector<std::string> forms;
  std::map<std::string, std::string> files;
  JobPtr job;
};

AnswerTexts answer_texts(const PythonCall& call, const std::atomic<bool>& stop) {
  AskOptions options{.root = {}, .forms = call.forms, .stop = &stop, .job = call.job};
  for (const auto& [form, path] : call.files) options.forms.push_back(form);
  Asked asked = ask(call.question, parse_json<Json>(call.settings), options);
  for (const auto& [form, path] : call.files) {
    write_new_file(path, [&asked, &written = form](std::ostream& file) {
      const EscapedOutput wall(file);
      write_answer(*asked.question, *asked.answer, written, file);
    });
  }
  std::vector<std::string> texts;
  for (const std::string& form : call.forms) {
    std::ostringstream text;
    write_answer(*asked.question, *asked.answer, form, text);
    texts.push_back(text.str());
  }
  return {std::move(texts), asked.answer->exit_code(), std::move(asked.remarks)};
}

/// The settings that a job is opened with.
class Opening final : public Described {
 public:
  void describe(Fields& fields) override {
    describe_trace(fields, path);
    fields.integer("ranks", world_size, "Number of ranks of the whole job; see predict", 0,
                   1 << 20);
    reading.describe_part(fields);
    reading.describe_execution_trace(fields);
    reading.describe(fields);
  }

  std::string path;
  std::int64_t world_size = 0;
  Reading reading;
};

JobPtr opened(const std::string& settings) {
  Opening opening;
  read_json(parse_json<Json>(settings), opening);
  Session session;
  return std::make_shared<Job>(
      opening.path, JobOptions{.reading = opening.reading.options(session),
                               .world_size = static_cast<std::int32_t>(opening.world_size),
                               .keeps_traces = true});
}

/// Each question with its summary and the schema of its settings.
std::string described_questions() {
  Json all = Json::object();
  for (const QuestionEntry& entry : questions())
    all[std::string(entry.name)] = {{"summary", entry.summary},
                                    {"settings", json_schema(*entry.make())}};
  return json_line(all);
}

}  // namespace

// A call may end before its calculation does, so the calculation gets copies of the arguments.
PYBIND11_MODULE(_foretrace, module) {
  module.doc() = "The compiled part of foretrace; use `import foretrace`.";
  module.attr("version") = std::string(kVersion);

  const auto error = py::register_exception<Error>(module, "Error", PyExc_ValueError);
  py::register_exception<TraceError>(module, "TraceError", error);

  py::class_<Job, std::shared_ptr<Job>>(module, "OpenJob");
  module.def("open", [](std::string settings) {
    return interruptible([settings] { return std::const_pointer_cast<Job>(opened(settings)); });
  });
  module.def("ask", [](std::string question, std::string settings, std::vector<std::string> forms,
                       std::map<std::string, std::string> files, std::shared_ptr<Job> job,
                       bool ends_early) {
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    const auto end = ends_early ? std::function<void()>([stop] { *stop = true; }) : nullptr;
    return interruptible([call = PythonCall{question, settings, forms, files, job},
                          stop] { return answer_texts(call, *stop); },
                         end);
  });
  module.def("questions", described_questions);
  module.def("transforms", [] { return json_line(describe_transforms()); });
  module.def("finish_abandoned", finish_abandoned);
}

}  // namespace foretrace
