#include <fmt/core.h>
#include <optional>

#include "base/wording.h"
#include "foretrace/error.h"
#include "foretrace/question/plan.h"
#include "foretrace/question/scale.h"
#include "plan/plan.h"
#include "question/common/changes.h"
#include "question/common/forms.h"
#include "question/common/model.h"
#include "question/common/reading.h"
#include "question/plan/resumable_plan.h"

namespace foretrace {
namespace {

/// Has no report if only bounds were found, and kept in a file.
struct FoundPlan {
  std::optional<PlanReport> report;
};

class PlanLayouts final : public Question {
 public:
  void describe(Fields& fields) override {
    describe_job(fields);
    describe_search(fields);
    describe_keeping(fields);
    reading_.describe(fields);
  }

  std::string remarks() const override {
    return "The search covers all layouts that the model, the batch and the memory allow. They "
           "differ in data, tensor, pipeline, context and expert parallel ranks, micro-batch, "
           "schedule, recomputation, ZeRO and sequence parallelism.\n"
           "MODEL may also be the trace of a job on one GPU: the layers are then the recorded "
           "ones, and the batch is counted in recorded batches.\n"
           "  foretrace plan gpt3-175b --machine dgx-a100 --gpus 1024 --global-batch 1536\n"
           "  foretrace plan job.json.gz --machine dgx-a100 --gpus 8\n"
           "  foretrace plan --config train.toml --machine dgx-h100 --gpus 64 --format config";
  }

  std::vector<Form> forms() const override {
    std::vector<Form> all = forms_of<PlanReport>();
    for (Form& one : all) {
      one.write = [write = one.write](const Answer& answer, std::ostream& out) {
        if (const auto& report = dynamic_cast<const AnswerOf<FoundPlan>&>(answer).value().report)
          write(AnswerOf<PlanReport>(*report), out);
      };
    }
    all.push_back(form<FoundPlan>("config", [](const FoundPlan& found, std::ostream& out) {
      if (!found.report) return;
      const auto& launches = found.report->launches;
      if (!launches.empty() && !launches.front().no_file.empty())
        throw Error(launches.front().no_file);
      if (launches.empty() || launches.front().file.empty())
        throw Error(
            "--format config: writes the file of --config with the fastest layout; there is no "
            "such file, or its program can run none of the layouts that fit");
      out << launches.front().file;
    }));
    return all;
  }

  std::unique_ptr<Answer> ask(Session& session) override {
    if (!gpus_.empty()) question_.gpus = within("--gpus", [&] { return read_counts(gpus_); });
    question_.memory = memory_limit_of(limit_);
    question_.top = static_cast<std::size_t>(top_);
    question_.reading = reading_.options(session);
    check_keeping(session);
    if (!keeping_.path.empty()) return plan_with_file(session);
    const auto activity = session.begin("planning " + question_.model);
    return answer_of(FoundPlan{plan(question_)});
  }

 private:
  /// Lists what is trained, and on what.
  void describe_job(Fields& fields) {
    describe_model(fields, question_);
    describe_launch(fields, question_);
    fields.bytes("gradient_bytes", question_.gradients,
                 "With a trace that does not show gradients: size of all gradients of a step");
    fields.bytes("output_bytes", question_.output,
                 "With a trace: size of the output that a stage passes on for a recorded batch");
    fields.as({.value = "COUNTS"})
        .text("gpus", gpus_, "Counts to choose from: 64, or 8..1024, or 8,24,64");
    fields.integer("global_batch", question_.global_batch,
                   "Number of samples in a step, on all GPUs together");
    describe_memory_limit(fields, limit_,
                          "Memory that a device may use, such as 60GB; by default all of it");
  }

  /// Lists which layouts are compared, and how they are priced.
  void describe_search(Fields& fields) {
    fields.as({.value = "SETTINGS"})
        .text("layout", question_.layout,
              "Your own layout, as for generate: the answer always includes it, and settings that "
              "are not searched, such as its precision, apply to all layouts");
    fields.as({.value = "SETTINGS"})
        .text("fix", question_.fix, "Settings that every layout must have: tp=8,schedule=1f1b");
    std::vector<std::string_view> unoffered = planned_schedules(true);
    const std::vector<std::string_view> offered = planned_schedules(false);
    std::erase_if(unoffered, [&](auto name) { return std::ranges::count(offered, name) > 0; });
    fields.flag(
        "all_schedules", question_.all_schedules,
        "Also search pipeline schedules that no program offers today: " + joined(unoffered));
    question_.training.describe(fields);
    fields.path("measured", question_.measured,
                "First show how well these measured runs are reproduced: CSV as for --calibrate");
    describe_calibration(fields, question_);
    fields.as({.value = "NAME"})
        .text("strategy", question_.strategy,
              "exhaustive, or a published planner: chimera, dapple, pipedream or pipedream_2bw");
    fields.integer("top", top_, "How many layouts to rank", 1, 1000);
  }

  void describe_keeping(Fields& fields) {
    fields.as({.value = "OUT"})
        .path("keep", keeping_.path,
              "Keep the bounds of layouts in this file, one line for each block of 256, as soon as "
              "they are found; the same command continues an existing file. If stopped (SIGINT, "
              "SIGTERM), the bounds so far are kept and the exit code is 130 or 143");
    fields.flag("fresh", keeping_.fresh, "Discard the bounds that the file of --keep already has");
    fields.as({.value = "I/N|auto"})
        .text("shard", shard_,
              "Find only part I of N of the bounds (1/N to N/N) and keep it in its own file, for "
              "`foretrace plan merge`; auto: take I and N from Slurm or MPI");
  }

  void check_keeping(const Session& session) {
    const std::pair<const char*, bool> options[] = {{"--shard", !shard_.empty()},
                                                    {"--fresh", keeping_.fresh}};
    for (const auto& [option, is_given] : options) {
      if (is_given && keeping_.path.empty()) throw Error(std::string(option) + ": needs --keep");
    }
    if (!shard_.empty()) keeping_.shard = read_shard(shard_, environment_value);
    if (keeping_.shard.count > 1 && (session.wants("file") || session.wants("html")))
      throw Error(
          "--shard: has no answer to write; leave out --output and --html, and ask for the answer "
          "without --shard once the files are merged");
  }

  std::unique_ptr<Answer> plan_with_file(Session& session) {
    const std::string path = path_of_shard(keeping_.path, keeping_.shard);
    session.will_write("keep", {path});
    std::unique_ptr<Activity> activity;
    std::uint64_t known = 0, all = 0;
    PlanEvents events;
    events.begin = [&](std::uint64_t had, std::uint64_t left) {
      known = had, all = had + left;
      activity = session.begin_counting("blocks of layouts", left);
    };
    events.take = [&] { ++known, activity->add(); };
    const std::atomic<bool>& stop = session.stop();
    FoundPlan found{resumable_plan(question_, keeping_, events, stop)};
    activity.reset();
    const std::string so_far =
        fmt::format("{} of {} blocks of layouts", grouped(known), grouped(all));
    if (stop) {
      session.remark("stopped after " + so_far + "; run the same command again to continue");
      found.report.reset();
    } else if (!found.report) {
      session.mention(
          fmt::format("'{}' has {}; merge all shards with `foretrace plan merge`, then "
                      "ask for the answer without --shard",
                      path, so_far));
    }
    return answer_of(std::move(found));
  }

  PlanQuestion question_;
  PlanFileOptions keeping_;
  std::string gpus_, limit_, shard_;
  std::int64_t top_ = static_cast<std::int64_t>(PlanQuestion{}.top);
  Reading reading_;
};

}  // namespace

std::unique_ptr<Question> make_plan() { return std::make_unique<PlanLayouts>(); }

}  // namespace foretrace
