// Regroups gradients that the job sends already, recorded in the trace or added by an earlier step,
// into other buckets:
//
//     stream   |F4 3 2 1|            stream   |F4 3 2 1|       4: the work that makes the last
//     network     |aa|bb|      ->    network   |  |cccc|          gradient of the first bucket
//
// The buckets of a step are one row of bytes. A new bucket is ready with the work that makes its
// last byte: if it ends with an old bucket, the work that the old one waited for; if it ends within
// one, the backward work at that share of the time. Its transfer takes what the old ones took for
// its bytes, times
//
//     model(new size) / sum of model(old size) x the share of each that is in it
//
// so that buckets that stay as they are keep their time exactly. A new end near the end of an old
// bucket moves there. An old collective that ends no new bucket takes no time, and work that waited
// for it waits for the new bucket that has its last byte.
//
// Ignored: the host's work for more or fewer buckets, and that other ranks may be ready at another
// time.

#include <algorithm>
#include <cmath>
#include <fmt/core.h>
#include <vector>

#include "base/numbers/scaling.h"
#include "foretrace/error.h"
#include "foretrace/simulate.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"
#include "transform/parallel/communicator.h"
#include "transform/parallel/gradients.h"
#include "transform/parallel/sent_gradients.h"

namespace foretrace {
namespace {

/// A new bucket ends with an old one if the ends are no further apart than this share of its size:
/// frameworks close a bucket with a whole parameter.
constexpr double kNear = 0.25;

class BucketSize final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.bytes("bucket", bucket_, "Bytes of gradients that are sent together", kGradientElement);
    fields.bytes("first_bucket", first_bucket_,
                 "The same for the bucket that is ready first; 0B: unchanged");
    network_.describe(fields);
    describe_sent_gradients(fields, ranks_, where_);
  }

  Effect apply(Graph& graph, const Context&) const override {
    const Timeline timeline = simulate(graph, {.memory = false});
    const std::vector<SentGradients> rows = sent_gradients(graph, timeline, where_, ranks_);
    Communicators networks(network_);
    const auto model = [&](const SentBucket& like, Bytes bytes) {
      return networks.among(like.ranks).time(like.operation, bytes);
    };
    Effect effect;
    std::size_t before = 0, after = 0;
    for (const SentGradients& row : rows) {
      const std::vector<Bytes> ends = new_ends(row);
      before += row.size(), after += ends.size();
      if (!is_same(row, ends)) effect.changed += regroup(graph, timeline, row, ends, model);
    }
    effect.summary = fmt::format("{} become {}", counted(before, "bucket"), grouped(after));
    effect.figures = {
        {"buckets_before", static_cast<double>(before) / static_cast<double>(rows.size())},
        {"buckets_after", static_cast<double>(after) / static_cast<double>(rows.size())}};
    effect.assumptions = networks.assumed();
    effect.assumptions.emplace_back(
        "the host needs no more and no less time for other buckets, and other ranks are ready when "
        "this one is");
    return effect;
  }

 private:
  static Nanoseconds start(const Timeline& timeline, TaskId task) {
    return timeline.start[index(task)];
  }
  static Nanoseconds finish(const Timeline& timeline, TaskId task) {
    return timeline.finish[index(task)];
  }

  std::vector<Bytes> new_ends(const SentGradients& row) const {
    std::vector<Bytes> ends;
    const Bytes all = row.back().end;
    for (Bytes begin{}; begin < all;) {
      const bool first = ends.empty();
      const Bytes size = !first                     ? bucket_
                         : first_bucket_ == Bytes{} ? std::min(row.front().bytes, bucket_)
                                                    : first_bucket_;
      Bytes end = std::min(begin + size, all), nearest = end;
      std::int64_t least = scaled(size, kNear).count + 1;
      for (const SentBucket& bucket : row) {
        const std::int64_t off = std::abs(bucket.end.count - end.count);
        if (bucket.end > begin && off < least) nearest = bucket.end, least = off;
      }
      ends.push_back(nearest);
      begin = nearest;
    }
    return ends;
  }

  static bool is_same(const SentGradients& row, const std::vector<Bytes>& ends) {
    return std::ranges::equal(row, ends, {}, [](const SentBucket& bucket) { return bucket.end; });
  }

  /// Makes one transfer for each new bucket. Returns how many tasks changed.
  template <class Model>
  static std::size_t regroup(Graph& graph, const Timeline& timeline, const SentGradients& row,
                             const std::vector<Bytes>& ends, const Model& model) {
    std::vector<Nanoseconds> durations;
    for (const SentBucket& bucket : row) durations.push_back(graph.task(bucket.task).duration);
    std::vector<TaskId> senders;  // By old bucket: the task that sends its last byte.
    std::size_t old = 0, waiting = 0;
    Bytes begin{};
    for (const Bytes end : ends) {
      while (row[old].end < end) graph.task(row[old++].task).duration = 0ns;
      const Nanoseconds time = time_of(row, durations, begin, end, model);
      TaskId sender = row[old].task;
      if (row[old].end != end) {
        Task task = graph.task(sender);
        task.gap = 0ns;
        sender = graph.insert_before(row[old].task, task);
        if (const TaskId ready = ready_at(graph, timeline, row, old, end); ready != kNoTask)
          graph.add({.before = ready,
                     .after = sender,
                     .provenance = Provenance::assumed,
                     .why = Rule::collective_input});
      }
      graph.task(sender).duration = time;
      graph.task(sender).bytes = end - begin;
      for (; waiting < row.size() && row[waiting].end <= end; ++waiting) senders.push_back(sender);
      if (row[old].end == end) ++old;
      begin = end;
    }
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (senders[i] != row[i].task) wait_for_sender(graph, timeline, row[i], senders[i]);
    }
    return row.size() + ends.size();
  }

  /// Makes work that waited for an old bucket wait for `sender` too, except for `sender` itself and
  /// work that only found the device full. Throws Error if that work starts before `sender`.
  static void wait_for_sender(Graph& graph, const Timeline& timeline, const SentBucket& old,
                              TaskId sender) {
    std::vector<Dependency> waits;
    graph.each_dependent(old.task, [&](const Dependency& wait) { waits.push_back(wait); });
    for (Dependency wait : waits) {
      if (wait.anchor == Anchor::start || wait.after == sender || wait.why == Rule::device_full)
        continue;
      if (index(sender) < timeline.start.size() &&
          start(timeline, wait.after) < start(timeline, sender))
        throw Error(
            fmt::format("bucket: {} uses a bucket before the next one is ready, so that they "
                        "cannot be sent together; at most {} can",
                        graph.name(wait.after), to_text(old.bytes)));
      wait.before = sender;
      graph.add(wait);
    }
  }

  template <class Model>
  static Nanoseconds time_of(const SentGradients& row, const std::vector<Nanoseconds>& durations,
                             Bytes begin, Bytes end, const Model& model) {
    double recorded = 0, modelled = 0;
    const SentBucket* largest = &row.front();
    Bytes most{};
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Bytes from = std::max(begin, row[i].end - row[i].bytes), to = std::min(end, row[i].end);
      if (to <= from) continue;
      if (to - from > most) largest = &row[i], most = to - from;
      const double share =
          static_cast<double>((to - from).count) / static_cast<double>(row[i].bytes.count);
      recorded += share * static_cast<double>(durations[i].count());
      modelled += share * static_cast<double>(model(row[i], row[i].bytes).count());
    }
    const double now = static_cast<double>(model(*largest, end - begin).count());
    return Nanoseconds(std::llround(modelled > 0 ? recorded * now / modelled : recorded));
  }

  /// Returns the backward task that makes the byte in front of `end`, which lies within the old
  /// bucket.
  static TaskId ready_at(const Graph& graph, const Timeline& timeline, const SentGradients& row,
                         std::size_t old, Bytes end) {
    const TaskId last = row[old].ready;
    if (last == kNoTask) return kNoTask;
    const TaskId before = old == 0 ? kNoTask : row[old - 1].ready;
    const Nanoseconds to = finish(timeline, last);
    Nanoseconds from{0};
    if (before != kNoTask) {
      from = finish(timeline, before);
    } else {  // The pass begins with the first backward work on the lane.
      TaskId first = last;
      for (TaskId id = last; id != kNoTask && graph.task(id).phase == graph.task(last).phase;
           id = graph.previous(id))
        first = id;
      from = start(timeline, first);
    }
    const Bytes begin = row[old].end - row[old].bytes;
    const Nanoseconds until =
        from + scaled(to - from, static_cast<double>((end - begin).count) /
                                     static_cast<double>(row[old].bytes.count));
    TaskId found = last;
    for (TaskId id = last; id != kNoTask && finish(timeline, id) >= until; id = graph.previous(id))
      found = id;
    return found;
  }

  Bytes bucket_{25 << 20}, first_bucket_{};
  NetworkSettings network_;
  std::int64_t ranks_ = 0;
  Selector where_{"collective"};
};

}  // namespace

TransformEntry bucket_size_entry() {
  return {.make = create<BucketSize>,
          .assumes =
              "The gradients that the job sends already, in all-reduces, are cut "
              "into other buckets. A bucket is ready with the backward work that makes its last "
              "byte, interpolated by bytes between the work that the recorded buckets waited for. "
              "Its transfer takes as long as those bytes took, multiplied by the ratio of what the "
              "network's model says of the new size and of the old. Buckets that stay the same "
              "keep their time.",
          .advice = {.goal = Goal::time,
                     .tries = {"bucket_size:bucket=50MiB,machine=<network>",
                               "bucket_size:bucket=100MiB,machine=<network>",
                               "bucket_size:bucket=400MiB,machine=<network>",
                               "bucket_size:bucket=10MiB,machine=<network>"},
                     .applies_to = {"buckets"},
                     .why_not = "which network the job runs on is not in a trace: give --network"}};
}

}  // namespace foretrace
