#include "transform/parallel/gradient_exchange.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/numbers/scaling.h"
#include "base/statistics.h"
#include "transform/edit/edit.h"

namespace foretrace {
namespace {

/// How late workers are. Fitted to six of 130 published throughputs on 4 to 16 GPUs (DGX-1V, DGX-2,
/// DGX A100; NVIDIA's DeepLearningExamples) against those of one; without it predictions for the
/// others are 6 % off in the median, with it 3 %.
constexpr Nanoseconds kLateness = 3ms;
constexpr double kLatenessShare = 0.012;

}  // namespace

WorkerSettings::WorkerSettings() : lateness(kLateness), lateness_share(kLatenessShare) {}

void ExchangeSettings::describe(Fields& fields) {
  fields.bytes("bucket", bucket, "Bytes of gradients that are sent together", kGradientElement);
  fields.bytes("first_bucket", first_bucket,
               "The same for the bucket that is ready first; at most `bucket`", kGradientElement);
  fields.flag("overlap", overlap, "Buckets are sent while the backward pass goes on, not after it");
  fields.flag("copies", copies,
              "Gradients are copied into buckets and back, as DistributedDataParallel does "
              "without gradient_as_bucket_view");
  workers.describe(fields);
}

void WorkerSettings::describe(Fields& fields) {
  fields.number("kernel_contention", contention.kernels,
                "Kernels take this share longer while gradients are sent; see `contention`", 0,
                100);
  fields.number("collective_contention", contention.collectives,
                "Collectives take this share longer while kernels run; see `contention`", 0, 100);
  fields.time("lateness", lateness,
              "Standard deviation of the time that a worker is late in a step, whatever its "
              "length",
              0ns);
  fields.number("lateness_share", lateness_share,
                "Added to it, as a share of the time of both passes", 0, 10);
}

ArrivalSkew::ArrivalSkew(const BackwardPass& pass, const Timeline& timeline,
                         const WorkerSettings& settings, std::int64_t workers)
    : timeline_(timeline),
      begin_(timeline.start[index(pass.first)]),
      end_(timeline.finish[index(pass.last)]) {
  const Nanoseconds deviation = settings.lateness + scaled(end_ - begin_, settings.lateness_share);
  most_ = scaled(deviation, expected_greatest(workers));
}

Nanoseconds ArrivalSkew::at(TaskId task) const {
  return scaled(most_, ratio(timeline_.finish[index(task)] - begin_, end_ - begin_));
}

GradientExchange::GradientExchange(Graph& graph, const Timeline& timeline,
                                   Communicator& communicator, const ExchangeSettings& settings,
                                   std::int64_t workers)
    : graph_(graph),
      timeline_(timeline),
      communicator_(communicator),
      settings_(settings),
      workers_(workers) {}

std::vector<GradientExchange::Bucket> GradientExchange::buckets_of(const BackwardPass& pass) const {
  std::vector<Bucket> buckets;
  Bucket open;
  for (const Gradient& gradient : pass.gradients) {
    open.bytes += gradient.bytes, open.ready = gradient.ready;
    const Bytes least =
        buckets.empty() ? std::min(settings_.first_bucket, settings_.bucket) : settings_.bucket;
    if (open.bytes < least) continue;
    buckets.push_back(open);
    open = {};
  }
  if (open.bytes > Bytes{}) buckets.push_back(open);
  return buckets;
}

Nanoseconds GradientExchange::copy_time(Bytes bytes) const {
  return memory_.bytes_per_second > 0 ? time_for({2 * bytes.count}, memory_) : 0ns;
}

TaskId GradientExchange::send(const BackwardPass& pass, Operation operation) {
  const ArrivalSkew late(pass, timeline_, settings_.workers, workers_);
  TaskId sent = kNoTask;
  for (const Bucket& bucket : buckets_of(pass)) sent = send_bucket(pass, bucket, late, operation);
  count_step(pass, late);
  for (std::size_t i = 0; i < pass.readers.size() && sent != kNoTask; ++i) {
    const TaskId reader = i == 0 ? copied_back(pass) : pass.readers[i];
    graph_.add({.before = sent,
                .after = reader,
                .provenance = Provenance::assumed,
                .why = Rule::update_after_collectives});
  }
  return sent;
}

TaskId GradientExchange::transfer(const BackwardPass& pass, const char* lane,
                                  const std::string& name, Operation operation, Bytes bytes,
                                  Communicator& by) {
  Task task{.bytes = bytes, .step = pass.step, .phase = Phase::backward};
  task.kind = TaskKind::collective;
  task.name = graph_.names().intern(name);
  task.duration = by.time(operation, bytes);
  const TaskId sent = graph_.append(lane_named(graph_, lane, graph_.lane_of(pass.last)), task);
  std::string word(to_string(operation));
  graph_.collectives().push_back({.task = sent,
                                  .operation = graph_.names().intern(word),
                                  .group_size = static_cast<std::int32_t>(by.workers()),
                                  .bytes = bytes});
  totals_.transfer += task.duration;
  ++changed_;
  return sent;
}

TaskId GradientExchange::send_bucket(const BackwardPass& pass, const Bucket& bucket,
                                     const ArrivalSkew& late, Operation operation) {
  TaskId ready = bucket.ready;
  if (const Nanoseconds time = copy_time(bucket.bytes); time > 0ns) {
    Task copy{.duration = time, .bytes = bucket.bytes, .step = pass.step, .phase = Phase::backward};
    copy.kind = TaskKind::copy_on_device;
    copy.name = graph_.names().intern("gradients into a bucket");
    ready = graph_.insert_behind(bucket.ready, copy);
    totals_.copies += time;
    ++changed_;
  }
  const TaskId sent =
      transfer(pass, "data parallel", fmt::format("{} of a bucket", to_string(operation)),
               operation, bucket.bytes, communicator_);
  const auto wait_for = [&](TaskId before, Nanoseconds lag) {
    graph_.add({.before = before,
                .after = sent,
                .lag = lag,
                .provenance = Provenance::assumed,
                .why = Rule::collective_input});
  };
  wait_for(ready, late.at(bucket.ready));
  if (!settings_.overlap) wait_for(pass.last, late.most());
  ++totals_.buckets;
  return replicated(pass, sent, bucket.bytes);
}

TaskId GradientExchange::send_unit(const BackwardPass& pass, const char* lane, Bytes bytes) {
  last_unit_ = transfer(pass, lane, "reduce_scatter of a unit", Operation::reduce_scatter, bytes,
                        communicator_);
  ++totals_.buckets;
  return replicated(pass, last_unit_, bytes);
}

/// Sums the worker's part of a bucket over the copies, if there are any. Returns the last transfer.
TaskId GradientExchange::replicated(const BackwardPass& pass, TaskId sent, Bytes bytes) {
  if (among_ == nullptr) return sent;
  const TaskId summed = transfer(pass, "among copies", "all_reduce of a part",
                                 Operation::all_reduce, {bytes.count / parts_}, *among_);
  graph_.add({.before = sent,
              .after = summed,
              .provenance = Provenance::assumed,
              .why = Rule::collective_input});
  return summed;
}

void GradientExchange::count_step(const BackwardPass& pass, const ArrivalSkew& late) {
  totals_.late += late.most();
  totals_.largest = std::max(totals_.largest, total_bytes(pass));
}

/// Returns the first reader of gradients or, if gradients are copied, the copy out of buckets that
/// it adds in front.
TaskId GradientExchange::copied_back(const BackwardPass& pass) {
  const Bytes bytes = total_bytes(pass);
  const Nanoseconds time = copy_time(bytes);
  if (time == 0ns) return pass.readers.front();
  Task copy{.duration = time, .bytes = bytes, .step = pass.step, .phase = Phase::update};
  copy.kind = TaskKind::copy_on_device;
  copy.name = graph_.names().intern("gradients out of buckets");
  totals_.copies += time;
  ++changed_;
  return graph_.insert_before(pass.readers.front(), copy);
}

std::vector<Figure> GradientExchange::figures(std::size_t steps) const {
  const auto count = static_cast<std::int64_t>(steps);
  return {{"gradient_bytes", totals_.largest},
          {"transfer_per_step", totals_.transfer / count},
          {"copies_per_step", totals_.copies / count},
          {"lateness_per_step", totals_.late / count},
          {"buckets_per_step", static_cast<double>(totals_.buckets) / static_cast<double>(steps)}};
}

}  // namespace foretrace
