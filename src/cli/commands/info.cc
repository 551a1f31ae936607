#include <nlohmann/json.hpp>
#include <optional>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/infer.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct InfoCommand {
  std::string trace;
  AnswerOptions options;

  void add_to(CLI::App& command) {
    add_trace(command, trace);
    options.reading.add_part_to(command);
    options.reading.add_execution_trace_to(command);
    options.add_to(command);
  }

  void run(Session& session) const {
    options.format.check();
    const std::vector<Trace> traces = [&] {
      const Progress progress("reading " + trace, options.quiet);
      return import_all(trace, options.reading.options());
    }();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") return print(traces, out);
      for (std::size_t i = 0; i < traces.size(); ++i) {
        if (i > 0) out << '\n';
        const std::optional<StepTimes> steps = recorded_steps(traces[i]);
        write_info(traces[i], out, steps ? &*steps : nullptr);
      }
    });
  }

  static nlohmann::json described(const Trace& trace) {
    const std::optional<StepTimes> steps = recorded_steps(trace);
    return describe_trace(trace, steps ? &*steps : nullptr);
  }

  /// One object for one trace, an array for several.
  static void print(const std::vector<Trace>& traces, std::ostream& out) {
    if (traces.size() == 1) return print_json(described(traces[0]), out);
    nlohmann::json all = nlohmann::json::array();
    for (const Trace& trace : traces) all.push_back(described(trace));
    print_json(all, out);
  }
};

}  // namespace

void add_info(CLI::App& command, Session& session) { add_command<InfoCommand>(command, session); }

}  // namespace foretrace
