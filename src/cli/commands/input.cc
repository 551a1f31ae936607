#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/ask/examine.h"

namespace foretrace {
namespace {

struct InputCommand {
  std::string trace;
  InputQuestion question;
  AnswerOptions options;

  void add_to(CLI::App& command) {
    add_trace(command, trace);
    command
        .add_option("--synthetic", question.synthetic,
                    "The same job with synthetic batches made on the device")
        ->type_name("TRACE");
    command
        .add_option("--cached", question.cached, "The same job with all its data cached in memory")
        ->type_name("TRACE");
    command.add_option("--samples", question.samples, "Samples in a batch, for rates")
        ->check(CLI::Range(0.0, 1e12));
    command.add_option("--workers", question.workers, "Loader processes in the recorded job")
        ->check(CLI::Range(0, 100'000));
    command
        .add_option("--cached-share", question.cached_share,
                    "Share of the data that was cached when TRACE was recorded")
        ->check(CLI::Range(0.0, 1.0));
    command
        .add_option(
            "--cache-policy", question.policy,
            "How the data was cached: minio, page_cache or lru (see `foretrace help loader`)")
        ->check(CLI::IsMember({"minio", "page_cache", "lru"}));
    options.reading.add_part_to(command);
    options.add_to(command);
  }

  void run(Session& session) const {
    options.format.check();
    const ImportOptions reading = options.reading.options();
    warn_if_large(trace, reading, options.quiet);
    const InputReport report = [&] {
      const Progress progress("reading " + trace, options.quiet);
      return examine_input(trace, question, reading);
    }();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") return print_answer(report, out);
      write_input(report, out);
    });
  }
};

}  // namespace

void add_input(CLI::App& command, Session& session) { add_command<InputCommand>(command, session); }

}  // namespace foretrace
