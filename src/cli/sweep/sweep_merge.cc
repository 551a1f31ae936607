#include "cli/sweep/sweep_merge.h"

#include "cli/options/options.h"
#include "cli/sweep/sweep_file.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

struct SweepMergeCommand {
  std::vector<std::string> files;
  std::string output;

  void add_to(CLI::App& command) {
    command.add_option("FILES", files, "Answers of all shards, in any order")->required();
    names_output(
        command.add_option("--output,-o", output, "Output file for the answers of the whole sweep"))
        ->required();
  }

  void run(Session& session) const {
    const SweepForm form = sweep_form("", output);
    for (const std::string& file : files) {
      if (sweep_form("", file) != form)
        throw Error("sweep merge: '" + file + "' and '" + output +
                    "' must both end in .csv, or both not");
    }
    if (form == SweepForm::csv) session.files.add_outputs({{"--output", header_file_of(output)}});
    merge_shards(files, output, form);
  }
};

}  // namespace

void add_sweep_merge(CLI::App& command, Session& session) {
  add_command<SweepMergeCommand>(command, session);
}

}  // namespace foretrace
