// Advice for programs: JSON with everything, and CSV with one line for each replay.

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/json_values.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/advice.h"
#include "foretrace/version.h"
#include "question/advise/words.h"
#include "question/words/json_parts.h"

namespace foretrace {
namespace {

using Json = nlohmann::json;

/// Converts "host work" to "host_work".
std::string key_of(PathPart part) {
  std::string key(to_string(part));
  for (char& c : key) c = c == ' ' ? '_' : c;
  return key;
}

Json path_json(const PathShares& path) {
  Json object = {{"host_waits", path.host_waits}};
  for (std::size_t i = 0; i < kPathParts; ++i)
    object["parts_ns"][key_of(static_cast<PathPart>(i))] = path.parts[i].count();
  return object;
}

Json ceiling_json(const AdviceCeiling& ceiling) {
  Json object = {{"name", ceiling.name},
                 {"title", ceiling.title},
                 {"assumes", ceiling.assumes},
                 {"there", ceiling.is_present},
                 {"step_time_ns", ceiling.step_time.count()}};
  object["bound_by"] = ceiling.is_present ? Json(key_of(ceiling.bound)) : Json(nullptr);
  return object;
}

Json suggestion_json(const Suggestion& one) {
  Json object = {{"use", one.use},
                 {"goal", one.goal},
                 {"summary", one.summary},
                 {"recommended", one.recommended},
                 {"step_time_ns", one.step_time.count()},
                 {"lower_ns", one.lower.count()},
                 {"upper_ns", one.upper.count()},
                 {"samples_factor", one.samples},
                 {"gain_ns", one.gain.count()},
                 {"peak_allocated_bytes", one.allocated},
                 {"peak_reserved_bytes", one.reserved},
                 {"fits", one.fits},
                 {"confidence", {{"word", one.confidence.word}, {"reason", one.confidence.reason}}},
                 {"critical_path", path_json(one.path)},
                 {"bound_by", key_of(one.path.largest())},
                 {"trust", to_json(one.trust)},
                 {"assumptions", one.assumptions}};
  object["local"] = one.local.lane.empty() ? Json(nullptr)
                                           : Json{{"lane", one.local.lane},
                                                  {"before_ns", one.local.before.count()},
                                                  {"after_ns", one.local.after.count()}};
  if (!one.recommended) object["why_not"] = one.why_not;
  if (!one.instead_of.empty()) object["instead_of"] = one.instead_of;
  return object;
}

Json joint_json(const Advice& advice) {
  if (!advice.joint) return nullptr;
  const JointAdvice& joint = *advice.joint;
  Json members = Json::array(), pairs = Json::array();
  for (std::size_t i = 0; i < joint.members.size(); ++i) {
    members.push_back({{"use", joint.uses[i]},
                       {"alone_ns", joint.alone[i].count()},
                       {"attributed_ns", joint.attributed[i].count()}});
  }
  for (const PairEffect& pair : joint.pairs) {
    pairs.push_back({{"first", joint.uses[pair.first]},
                     {"second", joint.uses[pair.second]},
                     {"gain_ns", pair.gain.count()},
                     {"sum_ns", pair.sum.count()},
                     {"other_order_gain_ns", pair.other_order.count()},
                     {"why", pair.why}});
  }
  return {{"members", members},
          {"step_time_ns", joint.step_time.count()},
          {"lower_ns", joint.lower.count()},
          {"upper_ns", joint.upper.count()},
          {"gain_ns", joint.gain.count()},
          {"sum_of_gains_ns", joint.sum.count()},
          {"other_order_gain_ns", joint.other_order.count()},
          {"pairs", pairs},
          {"critical_path", path_json(joint.path)},
          {"left_out", joint.left_out}};
}

Json speed_up_json(const SpeedUp& one, bool asked) {
  Json object = {{"name", one.name},
                 {"title", one.title},
                 {"graded", one.graded},
                 {"work_ns", one.work.count()},
                 {"step_time_at_best_ns", one.at_best.count()},
                 {"bound_by", key_of(one.bound_by)}};
  object["enough"] = unless_default(one.enough);
  if (!asked) return object;
  object["reachable"] = one.needed.has_value();
  object["needed"] = one.needed && *one.needed > 0 ? Json(*one.needed) : Json(nullptr);
  return object;
}

Json not_tried_json(const std::vector<NotTried>& all) {
  Json list = Json::array();
  for (const NotTried& one : all)
    list.push_back({{"transform", one.transform}, {"reason", one.reason}});
  return list;
}

Json now_json(const Advice& advice) {
  return {{"measured_step_time_ns", advice.measured.count()},
          {"step_time_ns", advice.step_time.count()},
          {"has_steps", advice.has_steps},
          {"replay_error", advice.replay_error},
          {"unexplained_share", advice.unexplained},
          {"noise_share", advice.noise},
          {"spread_share", advice.spread},
          {"breakdown_ns", breakdown_json(advice.breakdown)},
          {"rates", rates_json(advice.rates, advice.breakdown, advice.step_time)},
          {"critical_path", path_json(advice.path)},
          {"bound_by", key_of(advice.bound.part)},
          {"peak_allocated_bytes", advice.allocated},
          {"peak_reserved_bytes", advice.reserved}};
}

Json more_gpus_json(const MoreGpus& more) {
  Json points = Json::array();
  for (const MoreGpus::Point& point : more.points)
    points.push_back({{"gpus", point.gpus},
                      {"times_as_fast", point.times_as_fast},
                      {"each_added", point.each_added}});
  Json object = {{"network", more.network},
                 {"answer", more_gpus_sentence(more)},
                 {"points", std::move(points)}};
  if (!more.refused.empty()) object["refused"] = more.refused;
  return object;
}

std::string joined_uses(const JointAdvice& joint) {
  std::string uses;
  for (const std::string& use : joint.uses) uses += (uses.empty() ? "" : " + ") + use;
  return uses;
}

}  // namespace

Json to_json(const Advice& advice) {
  const AdviceVerdict verdict = advice_verdict(advice);
  Json object = {
      {"schema", "foretrace.advice/1"},
      {"tool", {{"name", "foretrace"}, {"version", kVersion}}},
      {"inputs", inputs_json(advice.inputs)},
      {"now", now_json(advice)},
      {"verdict",
       {{"bound_by", verdict.bound}, {"would_help", verdict.help}, {"at_best", verdict.best}}},
      {"joint", joint_json(advice)},
      {"not_applicable", not_tried_json(advice.not_applicable)},
      {"not_tried", not_tried_json(advice.no_advice)},
      {"first", advice.causes},
      {"trust", to_json(advice.trust)},
      {"notes", notes_json(advice.notes)}};
  if (!advice.rank_choice.empty()) object["rank_choice"] = advice.rank_choice;
  if (!advice.machine.empty()) object["machine"] = advice.machine;
  if (!advice.more_gpus.network.empty()) object["more_gpus"] = more_gpus_json(advice.more_gpus);
  for (const char* list : {"ladder", "suggestions", "speed_ups"}) object[list] = Json::array();
  for (const AdviceCeiling& ceiling : advice.ladder)
    object["ladder"].push_back(ceiling_json(ceiling));
  for (const Suggestion& one : advice.suggestions)
    object["suggestions"].push_back(suggestion_json(one));
  for (const SpeedUp& one : advice.speed_ups)
    object["speed_ups"].push_back(speed_up_json(one, advice.target.has_value()));
  for (const KernelCandidate& one : advice.candidates) {
    object["candidates"].push_back({{"name", one.name},
                                    {"factor", one.factor},
                                    {"line", one.line},
                                    {"work_ns", one.work.count()},
                                    {"step_time_ns", one.step_time.count()},
                                    {"gain_ns", (advice.step_time - one.step_time).count()}});
  }
  if (advice.target) {
    object["target"] = {{"text", advice.target->text},
                        {"step_time_ns", advice.target->step_time.count()},
                        {"holds_now", advice.target->holds_now},
                        {"answer", target_sentence(advice)}};
  }
  if (advice.curve) object["curve"] = to_json(*advice.curve);
  return object;
}

void write_csv(const Advice& advice, std::ostream& out) {
  out << "section,name,step_time_ns,lower_ns,upper_ns,gain_ns,peak_allocated_bytes,bound_by,"
         "confidence,recommended,why\n";
  const auto line = [&](const std::string& section, const std::string& name, Nanoseconds step,
                        const std::string& rest) {
    out << section << ',' << csv_text(name) << ',' << step.count() << ',' << rest << '\n';
  };
  const std::string now = key_of(advice.path.largest());
  line("now", "as recorded", advice.step_time,
       fmt::format(",,0,{},{},,,", advice.allocated ? std::to_string(advice.allocated->count) : "",
                   now));
  for (const AdviceCeiling& ceiling : advice.ladder) {
    line("ladder", ceiling.name, ceiling.step_time,
         fmt::format(",,{},,{},,,{}", (advice.step_time - ceiling.step_time).count(),
                     ceiling.is_present ? key_of(ceiling.bound) : "", csv_text(ceiling.assumes)));
  }
  for (const Suggestion& one : advice.suggestions) {
    line(one.goal, one.use, one.step_time,
         fmt::format("{},{},{},{},{},{},{},{}", one.lower.count(), one.upper.count(),
                     one.gain.count(), one.allocated ? std::to_string(one.allocated->count) : "",
                     key_of(one.path.largest()), one.confidence.word, one.recommended ? 1 : 0,
                     csv_text(one.why_not)));
  }
  if (advice.joint) {
    line("together", joined_uses(*advice.joint), advice.joint->step_time,
         fmt::format("{},{},{},,{},,,", advice.joint->lower.count(), advice.joint->upper.count(),
                     advice.joint->gain.count(), key_of(advice.joint->path.largest())));
  }
  for (const KernelCandidate& one : advice.candidates) {
    line("candidate", one.name, one.step_time,
         fmt::format(",,{},,,,,factor {}", (advice.step_time - one.step_time).count(), one.factor));
  }
  for (const SpeedUp& one : advice.speed_ups) {
    std::string why;
    if (advice.target) why = one.needed ? "needed " + to_text(*one.needed) : "not reachable alone";
    line("faster", one.name, one.at_best,
         fmt::format(",,{},,{},,,{}", (advice.step_time - one.at_best).count(),
                     key_of(one.bound_by), csv_text(why)));
  }
}

}  // namespace foretrace
