// The summary of a sweep's answers.
//
// The influence of a setting is the share of the variance of step time that lies between its
// values, averaged over all others (the first-order index of Sobol):  Var(E[t | x]) / Var(t).
// Values of a setting that is drawn from a range are first divided into groups with equal numbers
// of answers.

#include <algorithm>
#include <fmt/core.h>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/json_text.h"
#include "base/parse_number.h"
#include "foretrace/answer/sweep.h"

namespace foretrace {
namespace {

constexpr std::size_t kMaxListedValues = 24;
constexpr std::size_t kGroups = 12;

bool is_feasible(const SweepPoint& point) {
  return point.refused.empty() && point.fits.value_or(true);
}

bool passes_assertions(const SweepPoint& point) {
  return std::find(point.verdicts.begin(), point.verdicts.end(), "fails") == point.verdicts.end();
}

/// The answers with the same or a similar value of a setting.
struct ValueGroup {
  std::string value;
  double sum = 0;
  double count = 0;

  double mean() const { return sum / count; }
};

std::vector<ValueGroup> groups_of(const SweepReport& report, std::size_t setting) {
  std::map<std::string, ValueGroup> by_value;
  std::vector<std::tuple<double, const SweepPoint*>> by_number;
  for (const SweepPoint& point : report.points) {
    if (!point.refused.empty()) continue;
    const std::string& value = point.values[setting];
    ValueGroup& group = by_value[value];
    group.value = value;
    group.sum += static_cast<double>(point.step_time.count());
    group.count += 1;
    if (const auto number = parse_number<double>(value)) by_number.emplace_back(*number, &point);
  }
  std::vector<ValueGroup> groups;
  if (by_value.size() <= kMaxListedValues || by_number.size() < kGroups) {
    for (auto& [value, group] : by_value) groups.push_back(std::move(group));
    return groups;
  }
  std::sort(by_number.begin(), by_number.end(), [](const auto& a, const auto& b) {
    return std::tuple(std::get<0>(a), std::get<1>(a)->number) <
           std::tuple(std::get<0>(b), std::get<1>(b)->number);
  });
  for (std::size_t i = 0; i < kGroups; ++i) {
    const std::size_t begin = i * by_number.size() / kGroups;
    const std::size_t end = (i + 1) * by_number.size() / kGroups;
    ValueGroup& group = groups.emplace_back();
    group.value = fmt::format("{} to {}", std::get<1>(by_number[begin])->values[setting],
                              std::get<1>(by_number[end - 1])->values[setting]);
    for (std::size_t at = begin; at < end; ++at) {
      group.sum += static_cast<double>(std::get<1>(by_number[at])->step_time.count());
      group.count += 1;
    }
  }
  return groups;
}

/// Returns the influence of a setting; nullopt if it has one value, or if all step times are equal.
std::optional<SweepEffect> effect_of(const SweepReport& report, std::size_t setting) {
  const std::vector<ValueGroup> groups = groups_of(report, setting);
  if (groups.size() < 2) return std::nullopt;
  double sum = 0, count = 0;
  for (const ValueGroup& group : groups) sum += group.sum, count += group.count;
  const double mean = sum / count;
  double between = 0, total = 0;
  const ValueGroup *best = nullptr, *worst = nullptr;
  for (const ValueGroup& group : groups) {
    between += group.count * (group.mean() - mean) * (group.mean() - mean);
    if (!best || group.mean() < best->mean()) best = &group;
    if (!worst || group.mean() > worst->mean()) worst = &group;
  }
  for (const SweepPoint& point : report.points) {
    if (!point.refused.empty()) continue;
    const double off = static_cast<double>(point.step_time.count()) - mean;
    total += off * off;
  }
  if (total <= 0) return std::nullopt;
  return SweepEffect{.setting = report.header.settings[setting],
                     .moves = Nanoseconds(static_cast<std::int64_t>(worst->mean() - best->mean())),
                     .share = std::min(1.0, between / total),
                     .best = best->value};
}

void count_refusal(const SweepPoint& point, std::vector<SweepRefusal>& refusals) {
  const auto same = std::find_if(refusals.begin(), refusals.end(), [&](const SweepRefusal& known) {
    return known.why == point.refused;
  });
  // Texts that quote a value differ for each point, so only some kinds are counted separately.
  constexpr std::size_t kMaxKinds = 20;
  if (same != refusals.end()) {
    ++same->count;
  } else if (refusals.size() < kMaxKinds) {
    refusals.push_back({point.refused, 1, point.number});
  } else {
    if (refusals.size() == kMaxKinds) refusals.push_back({"other reasons", 0, point.number});
    ++refusals.back().count;
  }
}

std::optional<Bytes> size_of(const SweepPoint& point, bool by_reserved) {
  return by_reserved ? point.peak_reserved : point.peak_allocated;
}

std::vector<std::size_t> front_of(const SweepReport& report, bool by_reserved) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    if (is_feasible(report.points[i]) && size_of(report.points[i], by_reserved)) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::tuple(report.points[i].step_time, *size_of(report.points[i], by_reserved), i);
    };
    return key(a) < key(b);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    const Bytes size = *size_of(report.points[i], by_reserved);
    if (front.empty() || size < *size_of(report.points[front.back()], by_reserved))
      front.push_back(i);
  }
  return front;
}

}  // namespace

SweepSummary summarize(const SweepReport& report) {
  SweepSummary summary;
  for (std::size_t i = 0; i < report.points.size(); ++i) {
    const SweepPoint& point = report.points[i];
    if (!point.refused.empty()) {
      ++summary.refused;
      count_refusal(point, summary.refusals);
      continue;
    }
    ++summary.answered;
    summary.by_reserved = summary.by_reserved || point.peak_reserved.has_value();
    if (!point.fits.value_or(true)) ++summary.unfit;
    if (!passes_assertions(point)) ++summary.failed;
    if (!is_feasible(point) || !passes_assertions(point)) continue;
    if (!summary.best || point.step_time < report.points[*summary.best].step_time) summary.best = i;
  }
  summary.front = front_of(report, summary.by_reserved);
  for (std::size_t i = 0; i < report.header.settings.size(); ++i) {
    if (auto effect = effect_of(report, i)) summary.effects.push_back(std::move(*effect));
  }
  std::stable_sort(summary.effects.begin(), summary.effects.end(),
                   [](const SweepEffect& a, const SweepEffect& b) { return a.share > b.share; });
  return summary;
}

nlohmann::json to_json(const SweepReport& report) {
  using Json = nlohmann::json;
  const SweepSummary summary = summarize(report);
  const auto point_json = [&](std::size_t i) {
    return parse_json<Json>(sweep_point_line(report.header, report.points[i], SweepForm::jsonl));
  };
  Json front = Json::array(), effects = Json::array(), refusals = Json::array();
  for (const std::size_t i : summary.front) front.push_back(point_json(i));
  for (const SweepEffect& effect : summary.effects) {
    effects.push_back({{"setting", effect.setting},
                       {"moves_ns", effect.moves.count()},
                       {"share", effect.share},
                       {"best", effect.best}});
  }
  for (const SweepRefusal& refusal : summary.refusals)
    refusals.push_back({{"text", refusal.why}, {"count", refusal.count}, {"first", refusal.first}});
  return {{"schema", "foretrace.sweep_summary/1"},
          {"sweep", parse_json<Json>(sweep_header_line(report.header))},
          {"answered", summary.answered},
          {"refused", summary.refused},
          {"out_of_memory", summary.unfit},
          {"assertions_failed", summary.failed},
          {"best", summary.best ? point_json(*summary.best) : Json()},
          {"front", front},
          {"effects", effects},
          {"refusals", refusals}};
}

}  // namespace foretrace
