#include "foretrace/ask/scale.h"

#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/error.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct ScaleCommand {
  ScaleQuestion question;
  std::string scenario_path, step_time, update_time, counts = "1..64";
  std::vector<std::string> steps;
  double samples_per_step = 0;
  bool quiet = false;
  FormatOption format{{"text", "json", "csv"}, "text"};
  ReadingOptions reading;
  OutputOption output, page;

  void add_to(CLI::App& command) {
    command.add_option("TRACE", question.trace, "The trace of a job on one GPU");
    command
        .add_option("--step-time", step_time, "Without a trace: how long a step takes on one GPU")
        ->type_name("TIME");
    command
        .add_option("--update-time", update_time,
                    "Without a trace: how long the optimizer's part of the step takes")
        ->type_name("TIME");
    command
        .add_option("--machine", question.machine,
                    "The machine to scale on: a name from `foretrace list machines`, or a file")
        ->type_name("NAME|FILE");
    command
        .add_option("--gpus", counts,
                    "Counts: 1..1024 doubles from one to the next, 8..64/8 adds 8, 1,8,16 lists "
                    "them")
        ->type_name("COUNTS");
    command
        .add_option("--scheme", question.schemes,
                    "How to scale: a transform that has a setting \"gpus\", such as "
                    "data_parallel:bucket=100MB; may be repeated; data_parallel by default")
        ->type_name("STEP")
        ->allow_extra_args(false);
    command
        .add_option("--with", steps, "What else to change before the job is scaled, as in predict")
        ->type_name("STEP")
        ->allow_extra_args(false);
    command.add_option("--scenario", scenario_path, "Read these changes from a JSON file")
        ->type_name("FILE");
    command
        .add_option("--samples-per-step", samples_per_step,
                    "Samples in a recorded step; adds samples per second to the answer")
        ->type_name("NUMBER")
        ->check(CLI::Range(1e-3, 1e15));
    command.add_option("--ledger", question.options.ledger_path, "Your own ledger of outcomes")
        ->type_name("FILE");
    command.add_flag("--quiet", quiet, "Show no progress");
    format.add_to(command);
    output.add_to(command);
    page.add_to(command, "--html", "Also write a page with a plot over GPUs");
    reading.add_part_to(command);
    reading.add_to(command);
  }

  void run(Session& session) {
    format.check();
    if (!scenario_path.empty()) question.scenario = read_scenario(scenario_path);
    for (const std::string& step : steps)
      within("--with " + step, [&] { add_steps(step, question.scenario); });
    if (samples_per_step > 0) question.scenario.samples_per_step = samples_per_step;
    if (question.trace.empty() && step_time.empty())
      throw Error(
          "scale: which TRACE? Without one, give --step-time, and the scheme's "
          "gradient_bytes");
    if (!step_time.empty())
      question.step_time = within("--step-time", [&] { return parse_time(step_time); });
    if (!update_time.empty())
      question.update_time = within("--update-time", [&] { return parse_time(update_time); });
    question.gpus = within("--gpus", [&] { return read_counts(counts); });
    question.options.reading = reading.options();
    const ScaleReport report = [&] {
      const Progress progress("scaling " + (question.trace.empty() ? "a step" : question.trace),
                              quiet);
      return scale(question);
    }();
    if (!page.path.empty())
      page.write(session, [&](std::ostream& out) { write_scale_page(report, out); });
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_json(to_json(report), out);
      if (format.chosen == "csv") return write_scale_csv(report, out);
      write_scale_text(report, out);
    });
  }
};

}  // namespace

void add_scale(CLI::App& command, Session& session) { add_command<ScaleCommand>(command, session); }

}  // namespace foretrace
