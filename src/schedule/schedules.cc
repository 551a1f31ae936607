#include <algorithm>
#include <fmt/core.h>

#include "base/wording.h"
#include "foretrace/error.h"
#include "schedule/registered.h"

namespace foretrace {
namespace {

/// Other names of schedules, with the name used here.
constexpr std::pair<std::string_view, std::string_view> kSynonyms[] = {
    {"2bw", "pipedream_2bw"},
    {"dapple", "1f1b"},
    {"interleaved_1f1b", "interleaved"},
    {"interleaved1f1b", "interleaved"},
    {"dualpipev", "dualpipe_v"},
    {"one_f_one_b", "1f1b"},
    {"pipedream_flush", "1f1b"},
    {"v_zb", "zb_v"},
    {"zb1p", "zb_h1"},
    {"zb2p", "zb_h2"},
    {"zbv", "zb_v"},
};

/// 10,000 ranks, 1 M micro-batches: more than any real pipeline, and sums still fit.
constexpr std::int64_t kMaxStages = 10'000, kMaxMicroBatches = 1'000'000, kMaxChunks = 1000;

/// Converts a name such as "ZB-H1" to zb_h1.
std::string canonical_name(std::string_view name) {
  std::string text = lower_case(name);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

}  // namespace

void ScheduleRule::describe(Fields& fields) {
  fields.integer("stages", stages, "Ranks of the pipeline", 1, kMaxStages);
  fields.integer("micro_batches", micro_batches, "Micro-batches of a batch", 1, kMaxMicroBatches);
  if (serves_any_chunks())
    fields.integer("chunks", chunks, "Stages of the model on each rank", 1, kMaxChunks);
  describe_more(fields);
}

const std::vector<ScheduleEntry>& schedules() {
  static const std::vector<ScheduleEntry> entries = {
#define SCHEDULE(function, name, summary) {name, summary, make_##function##_schedule},
#include "schedule/schedules.def"
#undef SCHEDULE
  };
  return entries;
}

std::unique_ptr<ScheduleRule> find_schedule(std::string_view name) {
  std::string wanted = canonical_name(name);
  for (const auto& [synonym, canonical] : kSynonyms) {
    if (synonym == wanted) wanted = canonical;
  }
  std::vector<std::string_view> names;
  for (const ScheduleEntry& entry : schedules()) {
    if (entry.name == wanted) return entry.make();
    names.push_back(entry.name);
  }
  throw Error(fmt::format("there is no schedule '{}'{}; must be one of {}", name,
                          did_you_mean(wanted, names), joined(names)));
}

Schedule empty_schedule(std::string_view name, const ScheduleRule& rule) {
  Schedule schedule;
  schedule.name = name;
  schedule.ranks = static_cast<std::int32_t>(rule.stages);
  schedule.stages = static_cast<std::int32_t>(rule.stages * rule.chunks);
  schedule.chunks = static_cast<std::int32_t>(rule.chunks);
  schedule.micro_batches = static_cast<std::int32_t>(rule.micro_batches);
  schedule.orders.resize(static_cast<std::size_t>(rule.stages));
  return schedule;
}

Order one_f_one_b_order(std::int64_t stage, std::int64_t ahead, std::int64_t micro_batches) {
  Order order;
  order.reserve(static_cast<std::size_t>(2 * micro_batches + 2));
  for (std::int64_t i = 0; i < micro_batches + ahead; ++i) {
    if (i < micro_batches) order.push_back(pass(ActionKind::forward, stage, i));
    if (i >= ahead) order.push_back(pass(ActionKind::backward, stage, i - ahead));
  }
  return order;
}

void add_updates(Schedule& schedule, bool early) {
  for (Order& order : schedule.orders) {
    Order completed;
    completed.reserve(order.size() + 4);
    // Read backwards: the last gradient of a stage is met first.
    std::vector<std::int32_t> done;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      const bool gradient =
          at->kind == ActionKind::backward || at->kind == ActionKind::weight_gradient;
      if (gradient && std::find(done.begin(), done.end(), at->stage) == done.end()) {
        done.push_back(at->stage);
        if (early) completed.push_back(pass(ActionKind::reduce, at->stage, 0, at->pipeline));
      }
      completed.push_back(*at);
    }
    std::reverse(completed.begin(), completed.end());
    std::sort(done.rbegin(), done.rend());
    if (!early) {
      for (const std::int32_t stage : done) completed.push_back(pass(ActionKind::reduce, stage, 0));
    }
    for (const std::int32_t stage : done) {
      completed.push_back(pass(ActionKind::update, stage, 0));
      completed.back().version = 1;
    }
    order = std::move(completed);
  }
}

void drop_micro_batches(Schedule& schedule, std::int64_t from) {
  for (Order& order : schedule.orders)
    std::erase_if(order, [&](const Action& action) { return action.micro_batch >= from; });
}

}  // namespace foretrace
