#include "foretrace/ask/verify.h"

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct VerifyCommand {
  std::string prediction, measured;
  VerifyOptions options;
  bool quiet = false;
  FormatOption format{{"text", "json", "markdown"}, "text"};
  ReadingOptions reading;
  OutputOption output;

  void add_to(CLI::App& command) {
    command.add_option("PREDICTION", prediction, "The output of predict --format json")->required();
    command
        .add_option(
            "TRACE", measured,
            "Recorded after the change was made; a trace, or a folder with the traces of all ranks")
        ->required();
    command
        .add_option("--trace", options.trace,
                    "The trace that the prediction was made from, if it has moved")
        ->type_name("TRACE");
    names_output(command.add_option(
        "--ledger", options.ledger_path,
        "Add the outcome to this ledger of your own, which predict --ledger reads"));
    format.add_to(command);
    command.add_flag("--quiet", quiet, "Show no progress");
    output.add_to(command);
    reading.add_to(command);
    command.footer(
        "Exits with 0 if the measured step time is inside the predicted interval, with 1 if it is "
        "not, and with 4 if it is not but some of the measured steps are.");
  }

  void run(Session& session) {
    format.check();
    options.reading = reading.options();
    const Verification result = [&] {
      const Progress progress("verifying " + prediction, quiet);
      return verify(prediction, measured, options);
    }();
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_answer(result, out);
      if (format.chosen == "markdown") return write_verification_markdown(result, out);
      write_verification_text(result, out);
    });
    if (result.agreement == Agreement::near) session.exit_code = kUndecided;
    if (result.agreement == Agreement::outside) session.exit_code = kCheckFailed;
  }
};

}  // namespace

void add_verify(CLI::App& command, Session& session) {
  add_command<VerifyCommand>(command, session);
}

}  // namespace foretrace
