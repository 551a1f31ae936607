#include "foretrace/ask/sweep.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "ask/many/run.h"
#include "foretrace/error.h"
#include "foretrace/job.h"
#include "scenario/scenario_file.h"

namespace foretrace {

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
