// Every answer in every form, about programs whose names are arbitrary bytes: an Error, or bytes
// that are safe for a terminal, a browser, a runner of continuous integration and a reader of JSON.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/shown.h"
#include "document/document.h"
#include "document/forms/forms.h"
#include "foretrace/answer/advice.h"
#include "foretrace/answer/census.h"
#include "foretrace/answer/check.h"
#include "foretrace/answer/diagnosis.h"
#include "foretrace/answer/diff.h"
#include "foretrace/answer/input.h"
#include "foretrace/answer/memory.h"
#include "foretrace/answer/pairs.h"
#include "foretrace/answer/prediction.h"
#include "foretrace/answer/prediction_page.h"
#include "foretrace/answer/sweep.h"
#include "foretrace/answer/verification.h"
#include "foretrace/error.h"
#include "foretrace/infer.h"
#include "foretrace/job.h"
#include "foretrace/question/advise.h"
#include "foretrace/question/check.h"
#include "foretrace/question/diff.h"
#include "foretrace/question/examine.h"
#include "foretrace/question/predict.h"
#include "foretrace/question/sweep.h"
#include "foretrace/question/verify.h"
#include "foretrace/scenario.h"
#include "foretrace/simulate.h"
#include "foretrace/trace.h"
#include "fuzz/hostile_trace.h"
#include "fuzz/report_bytes.h"
#include "fuzz/supply.h"

namespace {

using namespace foretrace;

/// Recordings of a program before and after a change; the files in the folder are recordings of the
/// same two.
struct FuzzedJob {
  Trace before, after;
  Inference was{}, is{};
  std::string folder{};

  std::string path(const char* name) const { return folder + "/" + name; }
};

std::string folder_of_this_process() {
  std::string name = (std::filesystem::temp_directory_path() / "foretrace-fuzz-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

template <class Report>
void check_json(const Report& report) {
  require_json(indented_json(to_json(report)));
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Scenario some_scenario(Supply& supply) {
  Scenario scenario;
  const char* const steps[] = {"amp", "scale:where.kind=kernel,factor=0.5", "remove_sync"};
  for (const char* step : steps) {
    if (supply.below(2) != 0) continue;
    scenario.uses.emplace_back(step);
    scenario.transforms.push_back(read_transform_text(step));
  }
  return scenario;
}

void check_trace(const FuzzedJob& job, Supply&) {
  Document recording("Recording");
  add_info(job.before, nullptr, nullptr, recording);
  check_document(recording);
  require_json(indented_json(describe_trace(job.before)));
  for (const Finding& finding : examine(job.before)) {
    require_plain(shown_answer(finding.what + "\n" + finding.cost + "\n" + finding.fix));
  }
}

void check_prediction(const FuzzedJob& job, Supply& supply) {
  PredictOptions options{.explain = true};
  options.perfetto_path = job.path("timeline.json");
  std::string html;
  options.page_is_whole = true;
  options.take_page = [&](const PredictionPage& page) {
    html = written([&](std::ostream& out) { write_prediction_page(page, out); });
  };
  Prediction prediction = predict(job.was, some_scenario(supply), options);
  prediction.inputs = {{hostile_text(supply, "job.json.gz"), "kineto", "ab12"}};
  check_json(prediction);
  check_document(document_of(prediction));
  require_plain(written([&](std::ostream& out) { write_csv(prediction, out); }));
  require_no_forged_markup(html);
  require_json(bytes_of(options.perfetto_path));
}

void check_curve(const FuzzedJob& job, Supply& supply) {
  const Scenario scenario = parse_scenario(
      nlohmann::json::parse(R"({"transforms": [{"use": "scale", "where": {"kind": "kernel"}}]})"));
  std::vector<Inference> ranks;
  ranks.push_back(infer(job.before));
  Curve curve =
      vary(std::move(ranks), scenario, {.setting = "scale.factor", .values = "0.5,1", .until = {}});
  curve.header.inputs = {{hostile_text(supply, "job.json.gz"), "kineto", "ab12"}};
  check_json(curve);
  check_document(document_of(curve));
  require_plain(written([&](std::ostream& out) { write_csv(curve, out); }));
}

void check_memory(const FuzzedJob& job, Supply& supply) {
  MemoryQuestion question;
  question.out = question.in = Bandwidth{12e9};
  MemoryReport report = describe_memory(job.was.graph, job.was.recorded, question);
  report.trace = hostile_text(supply, "job.json.gz");
  check_json(report);
  check_document(document_of(report));
  require_plain(written([&](std::ostream& out) { write_csv(report, job.was.graph, out); }));
  require_no_forged_markup(
      written([&](std::ostream& out) { write_memory_html(report, job.was.graph, out); }));
}

void check_advice(const FuzzedJob& job, Supply& supply) {
  AdviceQuestion question;
  question.only = {"amp", "remove_sync"};
  Advice advice = advise(job.was, question);
  advice.inputs = {{hostile_text(supply, "job.json.gz"), "kineto", "ab12"}};
  check_json(advice);
  check_document(document_of(advice, true));
  require_plain(written([&](std::ostream& out) { write_csv(advice, out); }));
}

void check_diff(const FuzzedJob& job, Supply& supply) {
  DiffReport report;
  report.before = {{hostile_text(supply, "before.json"), "kineto", "ab12"}};
  report.after = {{hostile_text(supply, "after.json"), "kineto", "ab12"}};
  report.ranks.push_back(diff({job.was.graph, job.was.recorded, &job.before},
                              {job.is.graph, job.is.recorded, &job.after}, {.with_names = true}));
  check_json(report);
  check_document(document_of(report));
  require_plain(written([&](std::ostream& out) { write_csv(report, out); }));
}

void check_gate(const FuzzedJob& job, Supply& supply) {
  write_ftrace(job.before, job.path("before.ftrace"));
  write_ftrace(job.after, job.path("after.ftrace"));
  const CheckBaseline baseline = bless(job.path("before.ftrace"), {}, {});
  require_json(write_baseline(baseline));
  CheckReport report = check(job.path("after.ftrace"), {}, baseline, {});
  report.baseline = hostile_text(supply, "baseline.json");
  check_json(report);
  check_document(document_of(report));
  for (const CheckForm& form : check_forms()) {
    const std::string text = written([&](std::ostream& out) { form.write(report, out); });
    if (form.name.starts_with("bench")) require_json(text);
    if (form.name == "junit") require_no_forged_markup(text);
    // This form consists of its own commands; a forged command is not one of them.
    if (form.name != "github") continue;
    require_of_answer(!has_control(text), "a control character", text);
    require_of_answer(text.find("\n::stop-commands") == text.npos, "a forged command", text);
  }
}

void check_verification(const FuzzedJob& job, Supply& supply) {
  write_ftrace(job.before, job.path("before.ftrace"));
  write_ftrace(job.after, job.path("after.ftrace"));
  const Prediction prediction = predict(Job(job.path("before.ftrace")), some_scenario(supply));
  std::ofstream(job.path("prediction.json")) << indented_json(to_json(prediction));
  const Verification verification = verify(job.path("prediction.json"), job.path("after.ftrace"));
  check_json(verification);
  check_document(document_of(verification));
}

void check_pairs(const FuzzedJob&, Supply& supply) {
  PairsReport report;
  report.lists = {hostile_text(supply, "pairs.json")};
  for (std::uint32_t i = supply.below(4); i > 0; --i) {
    PairRow row;
    row.name = hostile_text(supply, "workers 0 -> 4"), row.uses = {hostile_text(supply, "amp")};
    row.kind = hostile_text(supply, "amp"), row.problem = hostile_text(supply, "");
    row.before = 100, row.predicted = 90, row.recorded = 80, row.lower = 70, row.upper = 95;
    report.rows.push_back(row);
  }
  sum_up(report);
  check_json(report);
  check_document(document_of(report));
}

void check_sweep(const FuzzedJob& job, Supply& supply) {
  nlohmann::json scenario = {{"transforms", {{{"use", "scale"}, {"where", {{"kind", "kernel"}}}}}},
                             {"sweep", {{"scale.factor", {0.5, 1}}}}};
  const std::string name = hostile_text(supply, "sgemm");
  scenario["sweep"]["scale.where.name"] = {name, ""};
  std::vector<Inference> ranks;
  ranks.push_back(infer(job.before));
  const Sweep sweep(scenario, std::move(ranks), {.jobs = 1});
  SweepReport report{.header = sweep.header(), .points = {}};
  const auto take = [&](SweepPoint&& point) {
    for (const SweepForm form : {SweepForm::jsonl, SweepForm::csv}) {
      const std::string line = sweep_point_line(report.header, point, form);
      form == SweepForm::jsonl ? require_json(line) : require_plain(line);
    }
    report.points.push_back(std::move(point));
  };
  sweep.run(0, report.header.points, {.take = take, .flush = [] {}}, false);
  require_json(sweep_header_line(report.header));
  check_json(report);
  check_document(document_of(report));
  require_no_forged_markup(written([&](std::ostream& out) { write_sweep_page(report, out); }));
}

void check_input(const FuzzedJob& job, Supply&) {
  InputReport report;
  report.stalls = input_stalls(job.was.graph, job.was.recorded);
  report.notes = job.was.notes;
  report.notes.merge(job.before.notes);
  check_json(report);
  check_document(document_of(report));
  check_json(validate(job.was));
}

using Check = void (*)(const FuzzedJob&, Supply&);
constexpr Check kChecks[] = {check_trace,  check_prediction, check_curve, check_memory,
                             check_advice, check_diff,       check_gate,  check_verification,
                             check_pairs,  check_sweep,      check_input};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string folder = folder_of_this_process();
  Supply supply(data, size);
  const Check first = supply.one_of(kChecks), second = supply.one_of(kChecks);
  try {
    FuzzedJob job{.before = HostileTrace(supply).write(), .after = HostileTrace(supply).write()};
    job.was = infer(job.before), job.is = infer(job.after), job.folder = folder;
    first(job, supply);
    if (second != first) second(job, supply);
  } catch (const Error&) {
  }
  return 0;
}
