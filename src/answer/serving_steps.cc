#include "foretrace/answer/serving_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <unordered_map>

#include "base/contains.h"
#include "base/statistics.h"
#include "foretrace/error.h"
#include "foretrace/machine.h"
#include "trace/serving/serving_step.h"

namespace foretrace {
namespace {

using WorkTimes = std::array<Nanoseconds, static_cast<std::size_t>(ServingWork::count)>;

struct TimedStep {
  ServingStep step;
  std::int64_t called = 0;                        ///< The start of its range on the host.
  std::int64_t first = -1, last = -1, next = -1;  ///< First and last work; first of the next step.
  Nanoseconds busy{};
  WorkTimes work{};

  /// Without a next step, up to its own last work.
  Nanoseconds time() const { return Nanoseconds((next < 0 ? last : next) - first); }
};

ServingWork kind_of_work(std::string_view kernel, std::string_view ops) {
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return contains_any(kernel, words) || contains_any(ops, words);
  };
  if (has({"nccl", "all_reduce", "allreduce", "all_gather", "reduce_scatter", "all_to_all"}))
    return ServingWork::communication;
  if (has({"moe", "expert", "matmul_ogs"})) return ServingWork::experts;
  if (has({"attention", "attn", "fmha", "flash", "mla_"})) return ServingWork::attention;
  if (classify_kernel(kernel).bound == Boundness::compute) return ServingWork::products;
  return ServingWork::other;
}

class StepTimer {
 public:
  explicit StepTimer(const Trace& trace) : trace_(trace) {}

  std::vector<TimedStep> run() {
    find_steps();
    if (steps_.empty()) return {};
    add_work();
    std::int64_t next = -1;
    for (std::size_t i = steps_.size(); i-- > 0;) {
      if (steps_[i].first < 0) continue;
      if (next > steps_[i].first) steps_[i].next = next;
      next = steps_[i].first;
    }
    return std::move(steps_);
  }

 private:
  /// Where two ranges name one step, the one that says more counts.
  void find_steps() {
    for (const HostRecord& host : trace_.hosts) {
      if (host.kind != HostKind::annotation) continue;
      if (const auto step = serving_step(trace_.names[host.name]))
        steps_.push_back({.step = *step, .called = host.start_ns}),
            ends_.push_back(host.start_ns + host.duration_ns);
    }
    std::vector<std::size_t> order(steps_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps_[i].called; });
    std::vector<TimedStep> sorted;
    std::int64_t end = -1;
    for (const std::size_t i : order) {
      if (steps_[i].called < end) {
        if (steps_[i].step.context >= 0 && sorted.back().step.context < 0)
          sorted.back().step = steps_[i].step;
        continue;
      }
      end = ends_[i];
      sorted.push_back(steps_[i]);
    }
    steps_ = std::move(sorted);
  }

  /// The time that spans cover, which may overlap.
  static Nanoseconds covered_by(std::vector<std::pair<std::int64_t, std::int64_t>>& spans) {
    std::ranges::sort(spans);
    std::int64_t covered = -1;
    Nanoseconds all{0};
    for (const auto& [start, finish] : spans) {
      all += Nanoseconds(std::max<std::int64_t>(0, finish - std::max(start, covered)));
      covered = std::max(covered, finish);
    }
    return all;
  }

  void add_work() {
    std::unordered_map<std::uint32_t, std::int64_t> called;
    for (const HostRecord& host : trace_.hosts) {
      if (is_call(host.kind) && host.correlation != 0)
        called.try_emplace(host.correlation, host.start_ns);
    }
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> spans(steps_.size());
    std::map<std::pair<NameId, NameId>, ServingWork> known;
    for (const DeviceRecord& record : trace_.devices) {
      if (record.kind == DeviceKind::annotation) continue;
      const auto call = called.find(record.correlation);
      if (record.correlation == 0 || call == called.end()) continue;
      const auto after = std::ranges::upper_bound(steps_, call->second, {}, &TimedStep::called);
      if (after == steps_.begin()) continue;
      const auto number = static_cast<std::size_t>(after - steps_.begin()) - 1;
      TimedStep& step = steps_[number];
      const std::int64_t finish = record.start_ns + record.duration_ns;
      step.first = step.first < 0 ? record.start_ns : std::min(step.first, record.start_ns);
      step.last = std::max(step.last, finish);
      spans[number].emplace_back(record.start_ns, finish);
      const CapturedNode* const node = captured_node(trace_, record);
      const NameId path = node == nullptr ? NameId{} : node->path;
      const auto [kind, added] = known.try_emplace({record.name, path});
      if (added) kind->second = kind_of_work(trace_.names[record.name], trace_.names[path]);
      step.work[static_cast<std::size_t>(kind->second)] += Nanoseconds(record.duration_ns);
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) steps_[i].busy = covered_by(spans[i]);
  }

  const Trace& trace_;
  std::vector<TimedStep> steps_;
  std::vector<std::int64_t> ends_;
};

/// The last step of a recording, of which only its own work is known, counts where there is no
/// other.
ServingKind kind_from(const std::string& name, std::vector<const TimedStep*> steps) {
  ServingKind kind{.name = name, .steps = std::ssize(steps)};
  const auto is_last = [](const TimedStep* step) { return step->next < 0; };
  if (!std::ranges::all_of(steps, is_last)) std::erase_if(steps, is_last);
  const auto median_of = [&](const auto& value) {
    std::vector<Nanoseconds> values;
    for (const TimedStep* step : steps) values.push_back(value(*step));
    return lower_quantile(values, 50);
  };
  std::vector<Nanoseconds> times;
  for (const TimedStep* step : steps) times.push_back(step->time());
  kind.least = lower_quantile(times, 10), kind.most = upper_quantile(times, 90);
  kind.time = median_of([](const TimedStep& step) { return step.time(); });
  kind.busy = median_of([](const TimedStep& step) { return step.busy; });
  for (std::size_t i = 0; i < kind.work.size(); ++i)
    kind.work[i] = median_of([i](const TimedStep& step) { return step.work[i]; });
  return kind;
}

/// Solves the normal equations by elimination, without unknowns that the rows do not tell apart.
std::vector<double> least_squares(const std::vector<std::array<double, 4>>& rows,
                                  const std::vector<double>& values) {
  std::array<std::array<double, 5>, 4> sums{};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) sums[i][j] += rows[r][i] * rows[r][j];
      sums[i][4] += rows[r][i] * values[r];
    }
  }
  const auto whole = sums;
  std::array<bool, 4> known{};
  for (std::size_t i = 0; i < 4; ++i) {
    known[i] = sums[i][i] > 1e-9 * std::max(whole[i][i], 1.0);
    if (!known[i]) continue;
    for (std::size_t k = 0; k < 4; ++k) {
      const double factor = sums[k][i] / sums[i][i];
      if (k == i) continue;
      for (std::size_t j = 0; j < 5; ++j) sums[k][j] -= factor * sums[i][j];
    }
  }
  std::vector<double> found;
  for (std::size_t i = 0; i < 4; ++i) found.push_back(known[i] ? sums[i][4] / sums[i][i] : 0);
  return found;
}

/// Steps must be three times as many as what is asked of them.
constexpr std::size_t kFewestSteps = 12;

std::vector<StepLaw> law_of(const std::vector<TimedStep>& steps) {
  std::vector<std::array<double, 4>> rows;
  std::vector<double> times;
  for (const TimedStep& step : steps) {
    if (step.next < 0 || step.step.tokens() < 0 || step.step.sequences < 0) continue;
    rows.push_back({1, static_cast<double>(step.step.prompt_tokens),
                    static_cast<double>(step.step.sequences),
                    static_cast<double>(std::max<std::int64_t>(step.step.context, 0))});
    times.push_back(static_cast<double>(step.time().count()));
  }
  if (rows.size() < kFewestSteps) return {};
  const std::vector<double> found = least_squares(rows, times);
  StepLaw law{.fixed = Nanoseconds(std::llround(found[0])),
              .per_prompt_token = found[1],
              .per_sequence = found[2],
              .per_position = found[3],
              .steps = std::ssize(rows)};
  if (found[1] == 0 && found[2] == 0 && found[3] == 0) return {};
  std::vector<double> off;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    double predicted = 0;
    for (std::size_t j = 0; j < 4; ++j) predicted += found[j] * rows[i][j];
    off.push_back(std::abs(predicted - times[i]) / std::max(times[i], 1.0));
  }
  law.scatter = lower_quantile(off, 50);
  return {law};
}

/// Context in 16 sizes for each power of two, so that steps of nearly the same share a row.
std::int64_t rounded_context(std::int64_t context) {
  std::int64_t unit = 1;
  while (context / unit >= 16) unit *= 2;
  return std::max<std::int64_t>(1, context / unit * unit);
}

/// The usual time of steps that decode about as many sequences; 0 if none is known.
Nanoseconds decoding_of(std::int64_t sequences,
                        std::map<std::int64_t, std::vector<Nanoseconds>>& by_sequences) {
  if (sequences < 1 || by_sequences.empty()) return 0ns;
  auto near = by_sequences.lower_bound(sequences);
  if (near == by_sequences.end()) --near;
  return lower_quantile(near->second, 50);
}

/// Steps of a kind that only one recording has.
KindChange only_in(const ServingKind& kind, bool is_before) {
  KindChange change{.name = kind.name, .where = {}};
  (is_before ? change.steps_before : change.steps_after) = kind.steps;
  (is_before ? change.before : change.after) = kind.time;
  return change;
}

/// How steps of one kind changed, and which work most.
KindChange change_between(const ServingKind& was, const ServingKind& is) {
  KindChange change{.name = was.name,
                    .steps_before = was.steps,
                    .steps_after = is.steps,
                    .before = was.time,
                    .after = is.time,
                    .where = {}};
  Nanoseconds most{0};
  const auto consider = [&](std::string_view name, Nanoseconds difference) {
    const Nanoseconds size = is.time > was.time ? difference : -difference;
    if (size > most) most = size, change.where = name;
  };
  for (std::size_t i = 0; i < was.work.size(); ++i)
    consider(to_string(static_cast<ServingWork>(i)), is.work[i] - was.work[i]);
  consider("the device waits", (is.time - is.busy) - (was.time - was.busy));
  return change;
}

}  // namespace

std::string_view to_string(ServingWork work) {
  constexpr std::string_view kNames[] = {"attention", "experts", "products", "communication",
                                         "other work"};
  return kNames[static_cast<std::size_t>(work)];
}

ServingSteps serving_steps_of(const Trace& trace) {
  const std::vector<TimedStep> steps = StepTimer(trace).run();
  ServingSteps found;
  std::map<std::string, std::vector<const TimedStep*>> kinds;
  for (const TimedStep& step : steps) {
    if (step.first < 0) {
      ++found.without_work;
      continue;
    }
    ++found.steps;
    found.total += step.time();
    kinds[kind_of(step.step)].push_back(&step);
  }
  for (const auto& [name, of_kind] : kinds) found.kinds.push_back(kind_from(name, of_kind));
  std::ranges::stable_sort(found.kinds, std::greater{},
                           [](const ServingKind& kind) { return kind.time * kind.steps; });
  found.law = law_of(steps);
  return found;
}

std::vector<StepRow> table_of_steps(const Trace& trace) {
  using Key = std::pair<std::int64_t, std::int64_t>;
  const std::vector<TimedStep> steps = StepTimer(trace).run();
  std::map<Key, std::vector<Nanoseconds>> decoding;
  std::map<std::int64_t, std::vector<Nanoseconds>> by_sequences, prompts;
  for (const TimedStep& timed : steps) {
    const ServingStep& step = timed.step;
    if (timed.next < 0 || step.prompts != 0 || step.sequences < 1) continue;
    const std::int64_t context = step.context > 0 ? step.context / step.sequences : 1;
    decoding[{step.sequences, rounded_context(context)}].push_back(timed.time());
    by_sequences[step.sequences].push_back(timed.time());
  }
  for (const TimedStep& timed : steps) {
    if (timed.next < 0 || timed.step.prompt_tokens < 1) continue;
    const Nanoseconds time = timed.time() - decoding_of(timed.step.sequences, by_sequences);
    if (time > 0ns) prompts[timed.step.prompt_tokens].push_back(time);
  }
  if (decoding.empty() || prompts.empty())
    throw Error(
        "must have steps of an engine that only decode, and some that compute prompts, to make a "
        "table of steps");
  std::vector<StepRow> rows;
  for (auto& [key, times] : decoding)
    rows.push_back({true, key.first, key.second, lower_quantile(times, 50)});
  for (auto& [tokens, times] : prompts)
    rows.push_back({false, 1, tokens, lower_quantile(times, 50)});
  return rows;
}

std::vector<KindChange> changes_of_kinds(const ServingSteps& before, const ServingSteps& after) {
  std::vector<KindChange> changes;
  for (const ServingKind& was : before.kinds) {
    const auto is = std::ranges::find(after.kinds, was.name, &ServingKind::name);
    if (is != after.kinds.end()) changes.push_back(change_between(was, *is));
  }
  for (const ServingSteps* side : {&before, &after}) {
    for (const ServingKind& kind : side->kinds) {
      if (std::ranges::find(changes, kind.name, &KindChange::name) != changes.end()) continue;
      changes.push_back(only_in(kind, side == &before));
    }
  }
  return changes;
}

}  // namespace foretrace
