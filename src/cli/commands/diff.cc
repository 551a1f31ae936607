#include "foretrace/ask/diff.h"

#include <fmt/core.h>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct DiffCommand {
  std::string before, after;
  bool quiet = false;
  FormatOption format{{"text", "json", "markdown", "csv"}, "text"};
  ReadingOptions reading;
  OutputOption output;

  void add_to(CLI::App& command) {
    command.add_option("A", before, "A trace, or a folder with the traces of all ranks")
        ->required();
    command.add_option("B", after, "The same job, recorded after a change")->required();
    format.add_to(command);
    command.add_flag("--quiet", quiet, "Show no progress");
    output.add_to(command);
    reading.add_to(command);
  }

  void run(Session& session) const {
    format.check();
    const DiffReport report = [&] {
      const Progress progress(fmt::format("comparing {} with {}", before, after), quiet);
      return diff(before, after, reading.options());
    }();
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print_answer(report, out);
      if (format.chosen == "markdown") return write_diff_markdown(report, out);
      if (format.chosen == "csv") return write_diff_csv(report, out);
      write_diff_text(report, out);
    });
  }
};

}  // namespace

void add_diff(CLI::App& command, Session& session) { add_command<DiffCommand>(command, session); }

}  // namespace foretrace
