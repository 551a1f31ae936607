// The CSV of torch.distributed.pipelining (_PipelineScheduleRuntime): one line per rank; an action
// is stage, kind and micro-batch: 2F0, 2B0, 2I0, 2W0, 2SEND_F0, 2RECV_B0, 2UNSHARD, 2REDUCE_GRAD.
// PyTorch 2.5 wrote BW for a whole backward pass, and B for the input gradient before a W.

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <set>

#include "foretrace/error.h"
#include "schedule/schedule.h"

namespace foretrace {
namespace {

constexpr std::string_view kOverlap = "OVERLAP_F_B";
/// Actions that have no effect on the order of the work and are skipped.
constexpr std::string_view kSkippedKinds[] = {"SEND_F", "RECV_F",  "SEND_B",
                                              "RECV_B", "UNSHARD", "RESHARD"};
/// 2^20: more than any real pipeline needs, and tables of stages by micro-batches still fit in
/// memory.
constexpr std::int32_t kMaxNumber = 1 << 20;

std::string_view letter_of(ActionKind kind) {
  constexpr std::string_view kLetters[] = {"F", "B", "I", "W", "REDUCE_GRAD", "UPDATE"};
  return kLetters[static_cast<std::size_t>(kind)];
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Removes the number at the front of `text` and returns it; -1 if there is none or it is too
/// large.
std::int32_t take_number(std::string_view& text) {
  std::int32_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number > kMaxNumber || number < 0) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

[[noreturn]] void refuse(std::string_view text) {
  throw Error(
      fmt::format("must be a stage, F, B, I or W, and a micro-batch, as in 2F0, got '{}'", text));
}

/// Returns nullopt for an action that is skipped.
std::optional<Action> read_action(std::string_view text) {
  const std::string_view whole = text;
  Action action;
  action.stage = take_number(text);
  if (action.stage < 0) refuse(whole);
  const std::size_t word = std::min(text.find_first_of("0123456789"), text.size());
  const std::string_view kind = text.substr(0, word);
  text.remove_prefix(word);
  const std::int32_t number = text.empty() ? -1 : take_number(text);
  if (!text.empty()) refuse(whole);
  if (std::find(std::begin(kSkippedKinds), std::end(kSkippedKinds), kind) !=
      std::end(kSkippedKinds))
    return std::nullopt;
  if (kind == "BW" && number >= 0) {
    action.kind = ActionKind::backward;
    action.micro_batch = number;
    return action;
  }
  for (const ActionKind one :
       {ActionKind::forward, ActionKind::backward, ActionKind::input_gradient,
        ActionKind::weight_gradient, ActionKind::reduce}) {
    if (kind != letter_of(one)) continue;
    action.kind = one;
    if (one != ActionKind::reduce && number < 0) refuse(whole);
    action.micro_batch = one == ActionKind::reduce ? 0 : number;
    return action;
  }
  refuse(whole);
}

void read_cell(std::string_view cell, std::vector<Action>& order) {
  if (cell.empty()) return;
  if (cell.front() != '(') {
    if (const auto action = read_action(cell)) order.push_back(*action);
    return;
  }
  const std::size_t close = cell.find(')'), between = cell.find(';');
  if (close == std::string_view::npos || between > close || cell.substr(close + 1) != kOverlap)
    throw Error(fmt::format("must be a pair as in (0F4;3B2)OVERLAP_F_B, got '{}'", cell));
  const auto first = read_action(trimmed(cell.substr(1, between - 1)));
  const auto second = read_action(trimmed(cell.substr(between + 1, close - between - 1)));
  if (!first || !second) refuse(cell);
  order.push_back(*first);
  order.back().overlaps_next = order.back().sends_late = true;
  order.push_back(*second);
}

void read_line(std::string_view line, std::vector<Action>& order) {
  for (std::size_t column = 1;; ++column) {
    const std::size_t comma = std::min(line.find(','), line.size());
    within("column " + std::to_string(column),
           [&] { read_cell(trimmed(line.substr(0, comma)), order); });
    if (comma == line.size()) return;
    line.remove_prefix(comma + 1);
  }
}

/// Turns a B into an input gradient if the same stage and micro-batch also has a W.
void split_old_backward(Schedule& schedule) {
  std::set<std::pair<std::int32_t, std::int32_t>> weights;
  for (const auto& order : schedule.orders) {
    for (const Action& action : order) {
      if (action.kind == ActionKind::weight_gradient)
        weights.emplace(action.stage, action.micro_batch);
    }
  }
  for (auto& order : schedule.orders) {
    for (Action& action : order) {
      if (action.kind == ActionKind::backward &&
          weights.contains({action.stage, action.micro_batch}))
        action.kind = ActionKind::input_gradient;
    }
  }
}

}  // namespace

std::string to_string(const Action& action) {
  std::string text = std::to_string(action.stage) + std::string(letter_of(action.kind));
  if (is_pass(action)) text += std::to_string(action.micro_batch);
  if (action.half > 0) text += action.half == 1 ? "a" : "b";
  return text;
}

std::string schedule_to_csv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& order : schedule.orders) {
    std::string line;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Action& action = order[i];
      if (action.pipeline != 0 || action.half != 0)
        throw Error(
            fmt::format("PyTorch's CSV cannot express {}, whose stages are on several ranks or "
                        "whose passes are halved",
                        schedule.name));
      if (!is_pass(action)) continue;
      if (!line.empty()) line += ',';
      if (!action.overlaps_next || i + 1 == order.size()) {
        line += to_string(action);
        continue;
      }
      line += fmt::format("({};{}){}", to_string(action), to_string(order[i + 1]), kOverlap);
      ++i;
    }
    text += line + "\n";
  }
  return text;
}

Schedule schedule_from_csv(std::string_view text) {
  Schedule schedule;
  schedule.name = "csv";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() && text.empty()) break;
    auto& order = schedule.orders.emplace_back();
    within("line " + std::to_string(schedule.orders.size()), [&] { read_line(line, order); });
    for (const Action& action : order) {
      schedule.stages = std::max(schedule.stages, action.stage + 1);
      schedule.micro_batches = std::max(schedule.micro_batches, action.micro_batch + 1);
      schedule.splits_backward |= action.kind == ActionKind::weight_gradient;
    }
  }
  split_old_backward(schedule);
  schedule.ranks = static_cast<std::int32_t>(schedule.orders.size());
  if (schedule.stages == 0) throw Error("must have a line of actions for each rank, got none");
  if (std::int64_t{schedule.stages} * schedule.micro_batches > kMaxNumber)
    throw Error("must have at most a million passes in all");
  schedule.chunks = std::max(1, (schedule.stages + schedule.ranks - 1) / schedule.ranks);
  if (const auto fault = find_fault(schedule)) throw Error(fault->text);
  return schedule;
}

}  // namespace foretrace
