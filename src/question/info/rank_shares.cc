#include "question/info/rank_shares.h"

#include <algorithm>
#include <array>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "base/json_values.h"
#include "base/wording.h"
#include "document/words/csv_text.h"
#include "foretrace/answer/census.h"
#include "foretrace/answer/device_shares.h"
#include "question/words/json_parts.h"
#include "question/words/wording.h"

namespace foretrace {
namespace {

struct Share {
  const char* name;
  Nanoseconds Breakdown::*time;
  bool is_always_shown;
};
constexpr std::array<Share, 7> kParts = {{{"compute", &Breakdown::compute, true},
                                          {"communication", &Breakdown::communication, true},
                                          {"copies", &Breakdown::copy, true},
                                          {"input", &Breakdown::input, false},
                                          {"host", &Breakdown::host, true},
                                          {"idle", &Breakdown::idle, true},
                                          {"unknown", &Breakdown::unknown, false}}};

bool is_shown(const Share& part, const std::vector<RankShares>& ranks) {
  return part.is_always_shown || std::ranges::any_of(ranks, [&](const RankShares& rank) {
           return rank.breakdown.*part.time > 0ns;
         });
}

std::vector<std::string> cells_of(const RankShares& rank, const std::vector<RankShares>& all) {
  std::vector<std::string> cells = {std::to_string(rank.trace->rank)};
  cells.push_back(rank.steps != nullptr ? to_text(rank.steps->step_time) : "");
  for (const Share& part : kParts) {
    if (is_shown(part, all))
      cells.push_back(rank.steps != nullptr ? to_text(rank.breakdown.*part.time) : "");
  }
  const std::optional<double> hidden = rank.hidden();
  cells.push_back(hidden ? to_share(*hidden) : "");
  if (rank.among != nullptr)
    cells.push_back(fmt::format("{} of {}", rank.among->times_last, rank.among->matched));
  return cells;
}

/// Two decimals, as Holistic Trace Analysis rounds.
std::string percentage(Nanoseconds part, Nanoseconds whole) {
  return to_fixed(100 * (static_cast<double>(part.count()) / static_cast<double>(whole.count())),
                  2);
}

bool any_meets(const std::vector<RankShares>& ranks) {
  return std::ranges::any_of(ranks, [](const RankShares& rank) { return rank.among != nullptr; });
}

/// The cells are empty without device work.
void write_device_cells(const DeviceShares& shares, std::ostream& out) {
  const Nanoseconds parts[] = {shares.idle, shares.compute, shares.non_compute};
  const auto write_share = [&out](Nanoseconds part, Nanoseconds whole) {
    out << ',' << (whole > 0ns ? percentage(part, whole) : "");
  };
  for (const Nanoseconds time : {parts[0], parts[1], parts[2], shares.kernel_time})
    out << ',' << (shares.kernel_time > 0ns ? microseconds_cell(time) : "");
  for (const Nanoseconds part : parts) write_share(part, shares.kernel_time);
  write_share(shares.overlap, shares.communication);
}

}  // namespace

std::optional<double> RankShares::hidden() const {
  if (communication <= 0ns) return std::nullopt;
  const auto exposed = static_cast<double>(breakdown.communication.count());
  return std::clamp(1 - exposed / static_cast<double>(communication.count()), 0.0, 1.0);
}

Table rank_shares_table(const std::vector<RankShares>& ranks) {
  Table table{.heading = {"rank", "step"}, .rows = {}};
  for (const Share& part : kParts) {
    if (is_shown(part, ranks)) table.heading.emplace_back(part.name);
  }
  table.heading.emplace_back("hidden");
  if (any_meets(ranks)) table.heading.emplace_back("enters last");
  for (const RankShares& rank : ranks) table.rows.push_back(cells_of(rank, ranks));
  return table;
}

Table rank_records_table(const std::vector<RankShares>& ranks) {
  Table table{.heading = {"rank", "format", "recorded", "ops", "calls", "kernels", "copies",
                          "memory events", "busy"},
              .rows = {},
              .left = {0, 1}};
  for (const RankShares& rank : ranks) {
    const Census census = take_census(*rank.trace);
    table.rows.push_back({std::to_string(rank.trace->rank), rank.trace->format,
                          rank.trace->has_times ? to_text(Nanoseconds(census.window_ns)) : "",
                          grouped(census.ops), grouped(census.calls), grouped(census.kernels),
                          grouped(census.copies), grouped(rank.trace->memory.size()),
                          to_text(Nanoseconds(census.device_busy_ns))});
  }
  return table;
}

void write_rank_shares_csv(const std::vector<RankShares>& ranks, std::ostream& out) {
  out << "rank,idle_time(us),compute_time(us),non_compute_time(us),kernel_time(us),"
         "idle_time_pctg,compute_time_pctg,non_compute_time_pctg,comp_comm_overlap_pctg,"
         "step_time_ns";
  for (const Share& part : kParts) out << ',' << part.name << "_ns";
  out << ",communication_time_ns,hidden_communication\n";
  for (const RankShares& rank : ranks) {
    out << rank.trace->rank;
    write_device_cells(device_shares(*rank.trace), out);
    out << ',' << (rank.steps != nullptr ? std::to_string(rank.steps->step_time.count()) : "");
    for (const Share& part : kParts)
      out << ','
          << (rank.steps != nullptr ? std::to_string((rank.breakdown.*part.time).count()) : "");
    const std::optional<double> hidden = rank.hidden();
    out << ',' << (rank.steps != nullptr ? std::to_string(rank.communication.count()) : "") << ','
        << (hidden ? to_text(*hidden) : "") << '\n';
  }
}

void add_rank_shares(const RankShares& rank, nlohmann::json& object) {
  if (rank.steps == nullptr) return;
  object["breakdown"] = breakdown_json(rank.breakdown);
  object["communication_time_ns"] = rank.communication.count();
  object["hidden_communication"] = rank.hidden();
}

}  // namespace foretrace
