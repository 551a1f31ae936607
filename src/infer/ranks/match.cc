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
    by_place_.clear();
    const bool numbered = std::all_of(group.lines.begin(), group.lines.end(), is_numbered);
    if (numbered)
      by_number(group);
    else
      by_order(group);
    for (auto& [place, members] : by_place_) {
      if (members.size() < 2) continue;
      std::sort(members.begin(), members.end(),
                [](const auto& a, const auto& b) { return a.rank < b.rank; });
      const std::int64_t sequence = members.front().what.sequence;
      all_.push_back({.group = number,
                      .sequence = numbered ? sequence : place - by_place_.begin()->first,
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
    for (const Occurrence& one : line.all) {
      if (one.sequence <= last) return false;
      last = one.sequence;
    }
    return true;
  }

  void by_number(const RankGroup& group) {
    for (const GroupLine& line : group.lines) {
      for (const Occurrence& one : line.all) {
        by_place_[one.sequence].push_back({line.rank, one, line.rank});
      }
    }
    for (auto& [number, members] : by_place_) {
      const auto odd = std::find_if(members.begin(), members.end(), [&](const Match::Member& one) {
        return one.what.key != members.front().what.key;
      });
      if (odd == members.end()) continue;
      notes_.add(
          Severity::warning,
          "collectives with the same number are different operations on two ranks; they are not "
          "joined",
          fmt::format("{}, number {}: {} and {}", group.name, number,
                      described(*ranks_[members.front().rank], members.front().what),
                      described(*ranks_[odd->rank], odd->what)));
      members.clear();
    }
  }

  void by_order(const RankGroup& group) {
    const GroupLine& reference = *std::max_element(
        group.lines.begin(), group.lines.end(),
        [](const GroupLine& a, const GroupLine& b) { return a.all.size() < b.all.size(); });
    for (const GroupLine& line : group.lines) {
      std::size_t differs = 0;
      const std::vector<std::int64_t> places = places_of(line, reference, differs);
      if (places.empty()) refuse(group, line, reference, differs);
      for (std::size_t i = 0; i < places.size(); ++i) {
        if (places[i] != kUnplaced)
          by_place_[places[i]].push_back({line.rank, line.all[i], line.rank});
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
  /// Members in the current group, by place.
  std::map<std::int64_t, std::vector<Match::Member>> by_place_;
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
