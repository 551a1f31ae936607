#include "foretrace/ask/predict.h"

#include <algorithm>
#include <fmt/core.h>
#include <iostream>

#include "base/shown.h"
#include "cli/options/allocator_option.h"
#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

struct PredictCommand {
  std::string trace, scenario_path, machine, ledger;
  std::vector<std::string> steps;
  std::string vary_text;
  Vary question;
  AllocatorOption allocator;
  double samples_per_step = 0, tokens_per_step = 0;
  bool explain = false, strict = false, quiet = false, exact = false;
  std::int32_t world_size = 0;
  FormatOption format;
  ReadingOptions reading;
  OutputOption output, perfetto, html;

  void add_to(CLI::App& command) {
    add_question(command);
    add_outputs(command);
    command
        .add_option("--ledger", ledger,
                    "Your own ledger of outcomes (written by validate and verify), which widens or "
                    "narrows the interval")
        ->type_name("FILE");
    command
        .add_option(
            "--ranks", world_size,
            "Number of ranks of the whole job: the recorded groups are repeated until there are "
            "this many ranks, and each recorded rank stands for those with its place in a group")
        ->type_name("COUNT")
        ->check(CLI::Range(1, 1 << 20));
    command.add_flag("--exact", exact,
                     "Replay each rank by itself, even those that are provably alike; same answer");
    command.add_flag("--explain", explain, "Show what the critical path works on and waits for");
    command.add_flag("--strict", strict, "Refuse a trace that causes warnings");
    command.add_flag("--quiet", quiet, "Show no progress");
    output.add_to(command);
    reading.add_part_to(command);
    reading.add_execution_trace_to(command);
    reading.add_to(command);
  }

  /// Adds the options that say what is asked.
  void add_question(CLI::App& command) {
    command.add_option("TRACE", trace, "A trace, or a folder with the traces of all ranks");
    command
        .add_option("--with", steps,
                    "What to change: a transform with its settings, prefetch:buffers=2, or "
                    "several, amp,loader:workers=4; may be repeated. Common names work, too: bf16, "
                    "num_workers=4 (see list synonyms)")
        ->type_name("STEP")
        ->allow_extra_args(false);
    command.add_option("--scenario", scenario_path, "Read the changes from this JSON file")
        ->type_name("FILE");
    command
        .add_option("--machine", machine,
                    "Predict for this device, like --with faster_device:to=NAME before all other "
                    "changes; a built-in name or a JSON file")
        ->type_name("NAME|FILE");
    allocator.add_to(command);
    command
        .add_option("--samples-per-step", samples_per_step,
                    "Samples in a recorded step; adds samples per second to the answer")
        ->type_name("NUMBER")
        ->check(CLI::Range(1e-3, 1e15));
    command
        .add_option("--tokens-per-step", tokens_per_step,
                    "Tokens in a recorded step; adds tokens per second to the answer")
        ->type_name("NUMBER")
        ->check(CLI::Range(1e-3, 1e15));
    command
        .add_option("--vary", vary_text,
                    "Predict for several values of a setting: loader.workers=0..16, "
                    "recompute.share=0..1/10, memory.limit=8GB,16GB")
        ->type_name("SETTING=VALUES");
    command
        .add_option("--until", question.until,
                    "With --vary: find the last value of a range for which this holds, such as "
                    "\"peak_reserved <= 16GB\"")
        ->type_name("ASSERTION");
  }

  /// Adds --format and the files besides the answer.
  void add_outputs(CLI::App& command) {
    for (const ReportEntry& report : reports()) format.names.push_back(report.name);
    format.add_to(command);
    perfetto.add_to(command, "--perfetto",
                    "Also write the predicted timeline: as .pftrace for ui.perfetto.dev, or as "
                    "JSON (.gz compresses either), with all ranks and whom each waits for; FOLDER/ "
                    "gets a file for each rank");
    html.add_to(command, "--html",
                "Also write the answer as one HTML page with timelines, the critical path and "
                "memory, before and after");
  }

  Scenario scenario() const {
    Scenario scenario;
    if (!scenario_path.empty()) scenario = read_scenario(scenario_path);
    for (const std::string& step : steps)
      within("--with " + step, [&] { add_steps(step, scenario); });
    if (samples_per_step > 0) scenario.samples_per_step = samples_per_step;
    if (tokens_per_step > 0) scenario.tokens_per_step = tokens_per_step;
    if (!trace.empty()) scenario.trace = trace;
    if (!machine.empty()) scenario.machine = machine;
    allocator.set(scenario.allocator);
    if (scenario.trace.empty())
      throw Error("predict: which TRACE? Give it on the command line or in the scenario");
    return scenario;
  }

  /// Returns the formats given on the command line, else those of the scenario, else text.
  std::vector<std::string> chosen_reports(const Scenario& scenario) const {
    if (!format.chosen.empty()) return {format.chosen};
    if (!scenario.reports.empty()) return scenario.reports;
    return {"text"};
  }

  void run(Session& session) {
    if (format.chosen == "html") throw Error("--format: use --html FILE to write a page");
    if (!format.chosen.empty()) format.check();
    const Scenario asked = scenario();
    warn_if_large(asked.trace, reading.options(), quiet);
    if (!vary_text.empty()) return run_curve(session, asked);
    if (!question.until.empty()) throw Error("--until: needs --vary, which says what to change");
    const Prediction prediction = [&] {
      const Progress progress("predicting " + asked.trace, quiet);
      return predict(asked.trace, asked,
                     {.explain = explain,
                      .strict = strict,
                      .reading = reading.options(),
                      .perfetto_path = perfetto.path,
                      .html_path = html.path,
                      .ledger_path = ledger,
                      .world_size = world_size,
                      .exact = exact});
    }();
    output.write(session, [&](std::ostream& out) {
      for (const std::string& name : chosen_reports(asked)) write_report(name, prediction, out);
    });
    session.exit_code = check(asked, prediction);
  }

  void run_curve(Session& session, const Scenario& asked) {
    const std::size_t equals = vary_text.find('=');
    if (equals == std::string::npos)
      throw Error(fmt::format(
          "--vary: must be SETTING=VALUES such as loader.workers=0..16, got \"{}\"", vary_text));
    if (!perfetto.path.empty() || !html.path.empty() || explain || strict)
      throw Error(
          "--vary: makes many predictions; --perfetto, --html, --explain and --strict work with a "
          "single one");
    question.setting = vary_text.substr(0, equals);
    question.values = vary_text.substr(equals + 1);
    const Curve curve = [&] {
      const Progress progress("predicting " + asked.trace, quiet);
      return vary(asked.trace, asked, question,
                  {.reading = reading.options(), .ledger_path = ledger});
    }();
    output.write(session, [&](std::ostream& out) {
      for (const std::string& name : chosen_reports(asked)) write_curve(name, curve, out);
    });
    if (!question.until.empty() && !curve.answer)
      session.exit_code = curve.trust.grade() == Grade::poor ? kUndecided : kCheckFailed;
  }

  static void write_curve(const std::string& name, const Curve& curve, std::ostream& out) {
    if (name == "json") return print_answer(curve, out);
    if (name == "csv") return write_curve_csv(curve, out);
    if (name == "markdown") return write_curve_markdown(curve, out);
    write_curve_text(curve, out);
  }

  static void write_report(const std::string& name, const Prediction& prediction,
                           std::ostream& out) {
    const auto& all = reports();
    const auto found = std::find_if(all.begin(), all.end(),
                                    [&](const ReportEntry& entry) { return entry.name == name; });
    if (found == all.end()) throw Error(fmt::format("reports: there is no report '{}'", name));
    found->write(prediction, out);
  }

  /// Checks the assertions of the scenario and names those that do not hold on stderr. Returns the
  /// exit code.
  static int check(const Scenario& question, const Prediction& prediction) {
    int code = kAnswered;
    for (const CheckedAssert& one : check_asserts(question, prediction)) {
      const bool fails = one.verdict == Verdict::fails;
      std::cerr << "foretrace: assert " << (fails ? "fails" : "is undecided") << ": "
                << shown(one.text) << ", found " << shown(one.found) << '\n';
      if (fails) code = kCheckFailed;
      if (!fails && code == kAnswered) code = kUndecided;
    }
    return code;
  }
};

}  // namespace

void add_predict(CLI::App& command, Session& session) {
  add_command<PredictCommand>(command, session);
}

}  // namespace foretrace
