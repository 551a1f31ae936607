#pragma once

// Where the time of a step goes on each of several ranks, a row for each.

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "document/words/table.h"
#include "foretrace/answer/rank_facts.h"
#include "foretrace/timeline.h"
#include "foretrace/trace.h"

namespace foretrace {

/// One rank and where the time of its steps goes.
struct RankShares {
  const Trace* trace = nullptr;      ///< Not owned.
  const StepTimes* steps = nullptr;  ///< Not owned; nullptr if unknown.
  Breakdown breakdown{};             ///< Of a step; the parts are 0 without steps.
  Nanoseconds communication{0};      ///< In which collectives run, hidden or not.
  const RankFacts* among = nullptr;  ///< Not owned; nullptr if it meets no other rank.

  /// The share of communication that kernels hide, from 0 to 1; nullopt without communication.
  std::optional<double> hidden() const;
};

/// Times of a step; communication is what no kernel hides.
Table rank_shares_table(const std::vector<RankShares>& ranks);
/// The records of each rank: numbers of records, length, the kernel with most time.
Table rank_records_table(const std::vector<RankShares>& ranks);
/// A row for each rank. The columns of the devices' time have the names and the meaning that they
/// have in Holistic Trace Analysis (see device_shares()).
void write_rank_shares_csv(const std::vector<RankShares>& ranks, std::ostream& out);
/// Adds "breakdown", "communication_time_ns" and "hidden_communication" to the object of a rank.
void add_rank_shares(const RankShares& rank, nlohmann::json& object);

}  // namespace foretrace
