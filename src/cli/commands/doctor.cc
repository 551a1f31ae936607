#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/ask/examine.h"

namespace foretrace {
namespace {

struct DoctorCommand {
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
    const std::vector<Diagnosis> ranks = [&] {
      const Progress progress("examining " + trace, options.quiet);
      return diagnose(trace, options.reading.options());
    }();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") return print_json(to_json(ranks), out);
      write_diagnosis(ranks, out);
    });
    const bool usable = std::all_of(ranks.begin(), ranks.end(),
                                    [](const Diagnosis& one) { return one.replay.has_value(); });
    session.exit_code = usable ? kAnswered : kUnusableTrace;
  }
};

}  // namespace

void add_doctor(CLI::App& command, Session& session) {
  add_command<DoctorCommand>(command, session);
}

}  // namespace foretrace
