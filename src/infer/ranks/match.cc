#include "infer/ranks/match.h"

#include <algorithm>
#include <fmt/core.h>
#include <map>

#include "foretrace/error.h"

namespace foretrace::infer_detail {
namespace {

class Matcher {
 public:
  Matcher(std::span<const Inference* const> ranks, std::span<const std::string> labels,
          Notes& notes)
      : ranks_(ranks), labels_(labels), notes_(notes) {}

  void add(const RankGroup& group, std::uint32_t number) {
    if (group.lines.size() < 2) return;
    by_position_.clear();
    const bool numbered = std::all_of(group.lines.begin(), group.lines.end(), is_numbered);
    if (numbered)
      by_number(group);
    else
      by_order(group);
    for (auto& [position, members] : by_position_) {
      if (members.size() < 2) continue;
      std::sort(members.begin(), members.end(),
                [](const auto& a, const auto& b) { return a.rank < b.rank; });
      const std::int64_t sequence = members.front().occurrence.sequence;
      all_.push_back({.group = number,
                      .sequence = numbered ? sequence : position - by_position_.begin()->first,
                      .provenance = numbered ? Provenance::measured : Provenance::inferred,
                      .members = std::move(members)});
    }
  }

  std::vector<Match> take() { return std::move(all_); }

 private:
  /// Whether the sequence numbers are usable. Numbers that do not increase, as for halves of one
  /// collective, are ignored.
  static bool is_numbered(const GroupLine& line) {
    std::int64_t last = -1;
    for (const Occurrence& occurrence : line.all) {
      if (occurrence.sequence <= last) return false;
      last = occurrence.sequence;
    }
    return true;
  }

  void by_number(const RankGroup& group) {
    for (const GroupLine& line : group.lines) {
      for (const Occurrence& occurrence : line.all) {
        by_position_[occurrence.sequence].push_back({line.rank, occurrence, line.rank});
      }
    }
    for (auto& [number, members] : by_position_) {
      const auto mismatch = std::find_if(
          members.begin(), members.end(), [&members = members](const Match::Member& member) {
            return member.occurrence.key != members.front().occurrence.key;
          });
      if (mismatch == members.end()) continue;
      notes_.add(
          Severity::warning,
          "collectives with the same number are different operations on two ranks; they are not "
          "joined",
          fmt::format("{}, number {}: {} and {}", group.name, number,
                      described(*ranks_[members.front().rank], members.front().occurrence),
                      described(*ranks_[mismatch->rank], mismatch->occurrence)));
      members.clear();
    }
  }

  void by_order(const RankGroup& group) {
    const GroupLine& reference = *std::max_element(
        group.lines.begin(), group.lines.end(),
        [](const GroupLine& a, const GroupLine& b) { return a.all.size() < b.all.size(); });
    for (const GroupLine& line : group.lines) {
      std::size_t differs = 0;
      const std::vector<std::int64_t> positions = positions_in(line, reference, differs);
      if (positions.empty()) refuse(group, line, reference, differs);
      for (std::size_t i = 0; i < positions.size(); ++i) {
        if (positions[i] != kNoPosition)
          by_position_[positions[i]].push_back({line.rank, line.all[i], line.rank});
      }
    }
  }

  [[noreturn]] void refuse(const RankGroup& group, const GroupLine& line,
                           const GroupLine& reference, std::size_t differs) const {
    throw TraceError(fmt::format(
        "{}: its {} collectives of {} are not in the same order as the {} of {}, wherever "
        "recording began; the first difference is number {}, {}",
        labels_[line.rank], line.all.size(), group.name, reference.all.size(),
        labels_[reference.rank], differs, described(*ranks_[line.rank], line.all[differs])));
  }

  std::span<const Inference* const> ranks_;
  std::span<const std::string> labels_;
  Notes& notes_;
  /// Members in the current group, by position.
  std::map<std::int64_t, std::vector<Match::Member>> by_position_;
  std::vector<Match> all_;
};

}  // namespace

std::vector<Match> matches_in(const std::vector<RankGroup>& groups,
                              std::span<const Inference* const> ranks,
                              std::span<const std::string> labels, Notes& notes) {
  Matcher matcher(ranks, labels, notes);
  for (std::uint32_t i = 0; i < groups.size(); ++i) matcher.add(groups[i], i);
  return matcher.take();
}

}  // namespace foretrace::infer_detail
