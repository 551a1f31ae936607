#include "question/sweep/sweep_file.h"

#include <filesystem>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <optional>

#include "foretrace/error.h"
#include "foretrace/job.h"
#include "foretrace/question/sweep.h"
#include "question/sweep/run.h"
#include "scenario/scenario_file.h"

namespace foretrace {

SweepForm sweep_form(const std::string& name, const std::string& path) {
  constexpr std::string_view kNames[] = {"jsonl", "csv"};
  if (name == "csv" || (name.empty() && path.ends_with(".csv"))) return SweepForm::csv;
  if (name == "jsonl" || name.empty()) return SweepForm::jsonl;
  throw Error(fmt::format("--format: must be one of jsonl, csv, got '{}'{}", name,
                          did_you_mean(name, kNames)));
}

SweepFile::SweepFile(const std::string& path, const SweepHeader& header, SweepForm form, bool fresh)
    : header_(header), form_(form), file_(path, answers_of(), fresh) {}

AnswerFileForm SweepFile::answers_of() {
  return {
      .kind = kSweepAnswers,
      .header = sweep_header_line(header_),
      .heading = form_ == SweepForm::csv ? sweep_csv_heading(header_) : "",
      .difference = [this](const std::string& line) { return difference_of_sweeps(header_, line); },
      .on_known_line =
          [this](std::uint64_t number, std::string_view line) {
            SweepPoint point = read_point_line(header_, line, form_);
            if (point.number != number) throw Error("is another point");
            answered_.push_back(std::move(point));
          }};
}

void SweepFile::add(const SweepPoint& point) { file_.add(sweep_point_line(header_, point, form_)); }

SweepReport answer_into(const SweepOutput& output, const Sweep& sweep, const SweepEvents& events,
                        const std::atomic<bool>& stop) {
  const Shard& shard = output.shard;
  SweepReport report{.header = sweep.header(), .points = {}};
  report.header.shard = shard.number;
  report.header.shards = shard.count;
  if (report.header.points < shard.count)
    throw Error(
        fmt::format("--shard: must be one of at most {}, because there are no more questions",
                    report.header.points));
  std::optional<SweepFile> file;
  if (!output.path.empty()) {
    file.emplace(path_of_shard(output.path, shard), report.header, output.form, output.fresh);
    report.points = std::move(file->answered());
  }
  const auto [first, end] = points_of_shard(report.header.points, shard.number, shard.count);
  const std::uint64_t known_count = report.points.size();
  events.begin(known_count, end - first - known_count);
  const auto take = [&](SweepPoint&& point) {
    if (file) file->add(point);
    events.take(point);
    report.points.push_back(std::move(point));
  };
  const auto flush = [&] {
    if (file) file->flush();
    events.flush();
  };
  sweep.run(first + known_count, end, {.take = take, .flush = flush}, stop);
  return report;
}

void merge_shards(const std::vector<std::string>& files, const std::string& output,
                  SweepForm form) {
  merge_answers(files, output, kSweepAnswers, form == SweepForm::csv);
}

struct Sweep::Impl {
  Impl(const nlohmann::json& scenario, const std::string& sweep_folder, const SweepOptions& options)
      : questions(scenario, sweep_folder, options), answers(questions) {}

  std::optional<Job> job;  ///< If it was opened before.
  SweepQuestions questions;
  SweepAnswers answers;
};

Sweep::Sweep(const std::string& scenario_path, const SweepOptions& options) {
  const ScenarioFile file = read_extended(scenario_path);
  within(scenario_path, [&] {
    parse_scenario(file.json);  // Mistakes outside the sweep are reported first.
    if (!asks_many(file.json))
      throw Error(
          "asks one question, which `foretrace predict --scenario` answers; add a \"sweep\" or a "
          "\"matrix\" to ask more");
    impl_ = std::make_unique<Impl>(file.json, file.sweep_folder, options);
  });
  impl_->questions.read_traces();
}

Sweep::Sweep(const nlohmann::json& scenario, Job job, const SweepOptions& options)
    : impl_(std::make_unique<Impl>(scenario, "", options)) {
  impl_->job.emplace(std::move(job));
  impl_->questions.ask_about(impl_->job->ranks());
}

Sweep::Sweep(const nlohmann::json& scenario, const SweepOptions& options)
    : impl_(std::make_unique<Impl>(scenario, "", options)) {
  impl_->questions.read_traces();
}

Sweep::Sweep(Sweep&&) noexcept = default;
Sweep::~Sweep() = default;

const SweepHeader& Sweep::header() const { return impl_->questions.header; }

void Sweep::run(std::uint64_t first, std::uint64_t end, const Sink& sink,
                const std::atomic<bool>& stop) const {
  CHECK(end <= impl_->questions.plan.size());
  run_questions(impl_->questions, impl_->answers, in_order(first, std::max(first, end)),
                {.take = [&](PendingQuestion&& pending) { sink.take(std::move(*pending.answer)); },
                 .flush = sink.flush},
                stop);
}

std::uint64_t Sweep::answered_together() const { return impl_->answers.answered_together(); }

}  // namespace foretrace
