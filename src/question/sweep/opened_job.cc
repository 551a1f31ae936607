#include <mutex>
#include <optional>
#include <utility>

#include "analysis/doubt/trust.h"
#include "foretrace/job.h"
#include "job/apply.h"
#include "job/job.h"
#include "question/sweep/questions.h"

namespace foretrace {
namespace {

JobRanks ranks_at(const std::string& path, const JobOptions& options) {
  return read_job(path, {.reading = options.reading,
                         .keep_traces = options.keeps_traces,
                         .joining = Joining::required,
                         .world_size = options.world_size});
}

JobRanks ranks_of(const Inference& rank) {
  std::vector<Inference> one;
  one.push_back(clone(rank));
  return job_of(std::move(one));
}

}  // namespace

struct Job::Impl {
  JobOptions options;
  JobRanks ranks;
  std::vector<InputFile> inputs = ranks.inputs();  ///< Now, as the files may go.
  std::once_flag swept{};
  std::optional<SweptJob> swept_job{};  ///< Made by the first quick prediction.
};

Job::Job(const std::string& path, const JobOptions& options)
    : impl_(new Impl{options, ranks_at(path, options)}) {}

Job::Job(std::vector<Inference> ranks) : impl_(new Impl{{}, job_of(std::move(ranks))}) {}

Job::Job(const Inference& rank) : impl_(new Impl{{}, ranks_of(rank)}) {}

Job::Job(Job&&) noexcept = default;
Job::~Job() = default;

const std::string& Job::path() const { return impl_->ranks.path; }
const JobOptions& Job::options() const { return impl_->options; }
const JobRanks& Job::ranks() const { return impl_->ranks; }

const std::vector<InputFile>& Job::inputs() const { return impl_->inputs; }

Prediction quick_prediction(const Job& job, const Scenario& scenario) {
  const JobRanks& ranks = job.ranks();
  std::optional<SweptJob>& swept = job.impl_->swept_job;
  std::call_once(job.impl_->swept, [&] { swept.emplace(swept_job(ranks, {})); });
  Donors donors(job.options().reading);
  donors.read(scenario);
  Prediction prediction = predict_slowest(swept->baselines, ranks, scenario, &donors);
  compare_with(swept->recorded(), prediction);
  prediction.trust = trust_of(prediction, {});
  return prediction;
}

}  // namespace foretrace
