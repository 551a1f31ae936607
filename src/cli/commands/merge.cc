#include <fmt/core.h>

#include "cli/options/command.h"
#include "foretrace/error.h"
#include "question/plan/resumable_plan.h"
#include "question/sweep/sweep_file.h"

namespace foretrace {
namespace {

/// Merges the files of all shards into the file that one process would have written.
class MergeCommand : public Command {
 public:
  void describe(Fields& fields) override {
    fields.as({.value = "FILES", .is_positional = true, .is_required = true})
        .texts("files", files_, "The files of all shards, in any order");
    fields.as({.value = "OUT", .letter = "o", .is_required = true})
        .path("output", output_, "Output file, as one process would have written it");
  }

 protected:
  std::vector<std::string> files_;
  std::string output_;
};

class PlanMergeCommand final : public MergeCommand {
 public:
  std::string remarks() const override {
    return "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536 "
           "--keep plans.jsonl --shard 1/2\n"
           "  foretrace plan merge plans.shard-*-of-2.jsonl --output plans.jsonl\n"
           "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536 "
           "--keep plans.jsonl";
  }
  void run(Invocation&) override { merge_plans(files_, output_); }
};

class SweepMergeCommand final : public MergeCommand {
 public:
  void run(Invocation& invocation) override {
    const SweepForm form = sweep_form("", output_);
    for (const std::string& file : files_) {
      if (sweep_form("", file) != form)
        throw Error(fmt::format("sweep merge: '{}' and '{}' must both end in .csv, or both not",
                                file, output_));
    }
    if (form == SweepForm::csv)
      invocation.files.add_outputs({{.setting = "--output", .path = header_file_of(output_)}});
    merge_shards(files_, output_, form);
  }
};

}  // namespace

std::unique_ptr<Command> make_plan_merge_command() { return std::make_unique<PlanMergeCommand>(); }
std::unique_ptr<Command> make_sweep_merge_command() {
  return std::make_unique<SweepMergeCommand>();
}

}  // namespace foretrace
