#include <nlohmann/json.hpp>

#include "cli/options/options.h"
#include "cli/options/progress.h"
#include "foretrace/ask/examine.h"
#include "foretrace/ask/pairs.h"
#include "foretrace/ask/predict.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

struct ValidateCommand {
  std::vector<std::string> traces;
  std::string against, pairs, folder, ledger, written_ledger;
  AnswerOptions options;

  void add_to(CLI::App& command) {
    command.add_option(
        "TRACE", traces,
        "Traces, or folders with the traces of all ranks; without any: check the shipped pairs");
    command
        .add_option("--against", against, "Take the work from this other recording of the same job")
        ->type_name("TRACE");
    command
        .add_option("--pairs", pairs,
                    "Compare predictions with the outcomes of these before/after pairs: a list "
                    "(foretrace.pairs/1) or traces/ground_truth.json")
        ->type_name("FILE");
    command.add_option("--traces", folder, "Folder with the recordings of the pairs")
        ->type_name("FOLDER");
    command
        .add_option("--ledger", ledger,
                    "Your own ledger of outcomes, which widens or narrows the intervals")
        ->type_name("FILE");
    names_output(command.add_option(
        "--write-ledger", written_ledger,
        "Also write the outcomes of the pairs as a ledger, for predict --ledger"));
    options.format.names.push_back("markdown");
    options.add_to(command);
  }

  void run_pairs(Session& session) const {
    if (!against.empty()) throw Error("--against: needs a TRACE to compare with");
    const PairsReport report = [&] {
      const Progress progress("comparing pairs", options.quiet);
      return compare_pairs(
          pairs.empty() ? shipped_pairs(folder) : std::vector{read_pairs(pairs, folder)},
          {.reading = options.reading.options(), .ledger_path = ledger});
    }();
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "json") return print_json(to_json(report), out);
      if (options.format.chosen == "markdown") return write_pairs_markdown(report, out);
      write_pairs_text(report, out);
    });
    if (!written_ledger.empty()) write_ledger(written_ledger, outcomes_of(report));
  }

  void run(Session& session) const {
    options.format.check();
    if (traces.empty()) return run_pairs(session);
    for (const auto& [name, value] :
         {std::pair("--pairs", pairs), std::pair("--traces", folder), std::pair("--ledger", ledger),
          std::pair("--write-ledger", written_ledger)}) {
      if (!value.empty())
        throw Error(std::string(name) + ": is about pairs of recordings; leave out the TRACE");
    }
    std::vector<ValidatedRank> ranks;
    for (const std::string& path : traces) {
      const Progress progress("validating " + path, options.quiet);
      for (ValidatedRank& rank : validate_trace(path, against, options.reading.options()))
        ranks.push_back(std::move(rank));
    }
    options.output.write(session, [&](std::ostream& out) {
      if (options.format.chosen == "text") return write_validation_text(ranks, out);
      if (options.format.chosen == "markdown") return write_validation_markdown(ranks, out);
      nlohmann::json all = nlohmann::json::array();
      for (const ValidatedRank& rank : ranks) all.push_back(to_json(rank));
      print_json(all, out);
    });
    for (const ValidatedRank& rank : ranks) {
      if (!rank.broken().empty()) session.exit_code = kCheckFailed;
    }
  }
};

}  // namespace

void add_validate(CLI::App& command, Session& session) {
  add_command<ValidateCommand>(command, session);
}

}  // namespace foretrace
