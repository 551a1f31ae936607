#include <memory>
#include <nlohmann/json.hpp>

#include "cli/options.h"
#include "cli/progress.h"
#include "foretrace/report.h"

namespace foretrace {
namespace {

struct InfoCommand {
  std::string trace;
  bool quiet = false;
  FormatOption format{{"text", "json"}, "text"};
  CacheOptions cache;
  OutputOption output;

  void add_to(CLI::App& command) {
    command.add_option("TRACE", trace, "A trace, or a folder with those of all ranks")->required();
    format.add_to(command);
    command.add_flag("--quiet", quiet, "Show no progress");
    output.add_to(command);
    cache.add_to(command);
  }

  void run(Session& session) const {
    format.check();
    const std::vector<Trace> traces = [&] {
      const Progress progress("reading " + trace, quiet);
      return import_all(trace, {.cache_folder = cache.chosen()});
    }();
    output.write(session, [&](std::ostream& out) {
      if (format.chosen == "json") return print(traces, out);
      for (std::size_t i = 0; i < traces.size(); ++i) {
        if (i > 0) out << '\n';
        write_info(traces[i], out);
      }
    });
  }

  /// One object for one trace, an array for several.
  static void print(const std::vector<Trace>& traces, std::ostream& out) {
    if (traces.size() == 1) return print_json(describe_trace(traces[0]), out);
    nlohmann::json all = nlohmann::json::array();
    for (const Trace& trace : traces) all.push_back(describe_trace(trace));
    print_json(all, out);
  }
};

}  // namespace

void add_info(CLI::App& command, Session& session) {
  const auto info = std::make_shared<InfoCommand>();
  info->add_to(command);
  command.callback([info, &session] { info->run(session); });
}

}  // namespace foretrace
