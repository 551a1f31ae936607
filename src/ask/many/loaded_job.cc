#include "ask/many/loaded_job.h"

#include <utility>

#include "ask/job/apply.h"
#include "ask/many/questions.h"
#include "ask/many/vary.h"
#include "ask/predict/predict_job.h"
#include "ask/predict/trust.h"

namespace foretrace {

LoadedJob::~LoadedJob() = default;

LoadedJob::LoadedJob(const std::string& path, const ImportOptions& reading, std::int32_t world_size)
    : reading_(reading),
      world_size_(world_size),
      job_(read_job(path, {.reading = reading,
                           .keep_traces = true,
                           .joining = Joining::required,
                           .world_size = world_size})),
      inputs_(job_.inputs()) {}

PredictOptions LoadedJob::as_read(PredictOptions options) const {
  options.reading = reading_;
  options.world_size = world_size_;
  return options;
}

Prediction LoadedJob::predict(const Scenario& scenario, PredictOptions options) const {
  return foretrace::predict(job_, inputs_, scenario, as_read(std::move(options)));
}

Curve LoadedJob::vary(const Scenario& scenario, const Vary& question,
                      PredictOptions options) const {
  Curve curve = foretrace::vary(job_, scenario, question, as_read(std::move(options)));
  curve.header.inputs = inputs_;
  return curve;
}

Prediction LoadedJob::quick_prediction(const Scenario& scenario) const {
  std::call_once(swept_once_,
                 [&] { swept_job_ = std::make_unique<SweptJob>(swept_job(job_, {})); });
  Donors donors(reading_);
  donors.read(scenario);
  Prediction prediction = predict_slowest(swept_job_->baselines, job_, scenario, &donors);
  compare_with(swept_job_->recorded(), prediction);
  prediction.trust = trust_of(prediction, {});
  return prediction;
}

}  // namespace foretrace
