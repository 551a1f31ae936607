#include "base/files/new_file.h"
#include "cli/options/options.h"
#include "cli/options/outputs.h"
#include "cli/options/progress.h"
#include "cli/options/trace_part_option.h"
#include "foretrace/error.h"
#include "foretrace/export.h"
#include "foretrace/infer.h"

namespace foretrace {
namespace {

void write_notation(const Trace& trace, const std::string& path) {
  write_new_file(path, to_text(infer(trace).graph));
}

struct ConvertCommand {
  std::string from;
  OutputChoice out{.path = {}, .to = {}, .allows_graph = true};
  TracePartOption part;
  bool quiet = false;
  ReadingOptions reading;

  void add_to(CLI::App& command) {
    add_trace(command, from);
    out.add_to(command);
    part.add_to(command);
    command.add_flag("--quiet", quiet, "Show no progress");
    reading.add_execution_trace_to(command);
    reading.add_to(command);
  }

  void run(Session& session) const {
    out.check("convert");
    part.check();
    const Progress progress("converting " + from, quiet);
    std::vector<Trace> traces = import_all(from, reading.options());
    within(from, [&] { part.apply(traces); });
    for (const Output& output : out.output_files(from, traces, session)) {
      within(from, [&] {
        if (output.exporter == nullptr) return write_notation(*output.trace, output.path);
        output.exporter->write(*output.trace, output.path);
      });
    }
    session.exit_code = kAnswered;
  }
};

}  // namespace

void add_convert(CLI::App& command, Session& session) {
  add_command<ConvertCommand>(command, session);
}

}  // namespace foretrace
