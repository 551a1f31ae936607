#include "foretrace/ask/advise.h"

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

struct AdviseCommand {
  std::string trace, ledger;
  AdviceQuestion question;
  bool quiet = false, all = false;
  FormatOption format{{"text", "json", "markdown", "csv"}, "text"};
  ReadingOptions reading;
  OutputOption output, html;

  void add_to(CLI::App& command) {
    add_trace(command, trace);
    command.add_option("--only", question.only, "Try only this transform; may be repeated")
        ->type_name("TRANSFORM")
        ->allow_extra_args(false);
    command.add_option("--skip", question.skip, "Do not try this transform; may be repeated")
        ->type_name("TRANSFORM")
        ->allow_extra_args(false);
    command
        .add_option("--machine", question.machine,
                    "Advise for the job on this device: a built-in name or a JSON file")
        ->type_name("NAME|FILE");
    command
        .add_option("--network", question.network,
                    "The machine over whose network the job communicates, or would on more GPUs: a "
                    "name from `foretrace list machines` or a file; buckets, algorithms and more "
                    "GPUs are tried with it")
        ->type_name("NAME|FILE");
    command
        .add_option("--until", question.until,
                    "Find how fast each part must be to reach a target, such as \"step_time <= "
                    "100ms\" or \"throughput >= 4000\"")
        ->type_name("TARGET");
    command
        .add_option("--vary", question.vary,
                    "With --until: vary only one part, such as link.bandwidth, or one setting, "
                    "such as loader.workers=1..32")
        ->type_name("WHAT");
    command
        .add_option("--candidates", question.candidates,
                    "Only rank these kernels by what a step gains: CSV with the columns name and "
                    "factor (new time relative to the recorded one)")
        ->type_name("FILE");
    command.add_option("--samples", question.samples, "Samples in a recorded step, for throughput")
        ->check(CLI::Range(0.0, 1e12));
    command.add_option("--top", question.top, "Number of suggestions shown of each kind")
        ->check(CLI::Range(1, 1000));
    command
        .add_option(
            "--ledger", ledger,
            "Your own ledger of predictions and outcomes, counted in addition to the built-in one")
        ->type_name("FILE");
    format.add_to(command);
    command.add_flag("--all", all,
                     "Show everything as text: ceilings, what each suggestion does to the critical "
                     "path, what is not advised");
    html.add_to(command, "--html", "Also write everything to FILE as one HTML page");
    command.add_flag("--quiet", quiet, "Show no progress");
    output.add_to(command);
    reading.add_part_to(command);
    reading.add_execution_trace_to(command);
    reading.add_to(command);
  }

  void run(Session& session) const {
    format.check();
    warn_if_large(trace, reading.options(), quiet);
    const Advice advice = [&] {
      const Progress progress("advising on " + trace, quiet);
      return advise(trace, question, {.reading = reading.options(), .ledger_path = ledger});
    }();
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_answer(advice, out);
      if (format.chosen == "markdown") return write_advice_markdown(advice, out);
      if (format.chosen == "csv") return write_advice_csv(advice, out);
      if (all) return write_whole_advice_text(advice, out);
      write_advice_text(advice, out);
    });
    if (!html.path.empty())
      html.write(session, [&](std::ostream& out) { write_advice_page(advice, out); });
    if (!advice.reaches_target()) session.exit_code = kCheckFailed;
  }
};

}  // namespace

void add_advise(CLI::App& command, Session& session) {
  add_command<AdviseCommand>(command, session);
}

}  // namespace foretrace
