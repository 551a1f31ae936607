#include <nlohmann/json.hpp>
#include <optional>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/ask/examine.h"
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
    const std::vector<ExaminedTrace> all = [&] {
      const Progress progress("reading " + trace, options.quiet);
      return examine_traces(trace, options.reading.options());
    }();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") return print(all, out);
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (i > 0) out << '\n';
        write_info(all[i].trace, out, all[i].steps ? &*all[i].steps : nullptr,
                   all[i].among ? &*all[i].among : nullptr);
      }
    });
  }

  static nlohmann::json described(const ExaminedTrace& one) {
    return describe_trace(one.trace, one.steps ? &*one.steps : nullptr,
                          one.among ? &*one.among : nullptr);
  }

  /// Prints one object for one trace, and an array for several.
  static void print(const std::vector<ExaminedTrace>& recordings, std::ostream& out) {
    if (recordings.size() == 1) return print_json(described(recordings[0]), out);
    nlohmann::json all = nlohmann::json::array();
    for (const ExaminedTrace& one : recordings) all.push_back(described(one));
    print_json(all, out);
  }
};

}  // namespace

void add_info(CLI::App& command, Session& session) { add_command<InfoCommand>(command, session); }

}  // namespace foretrace
