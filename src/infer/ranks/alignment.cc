// Two ranks of a group run the same collectives in the same order, but their recordings may begin
// and end at different places:
//
//     rank 0    a b c a b c a b
//     rank 1        c a b c a b c       shift 2
//
// If steps repeat, several shifts make them agree. The names of their steps decide first, then how
// evenly the ends differ, then how little.

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/align.h"
#include "base/statistics.h"
#include "infer/ranks/groups.h"

namespace foretrace::infer_detail {
namespace {

/// Greatest shift that is tried. Chosen.
constexpr std::int64_t kMaxShift = 2000;
/// Number of pairs whose times are compared. Chosen.
constexpr std::int64_t kMaxCompared = 1000;
/// The ends of one collective differ by some microseconds between ranks (measured: 2.5 to 22 us);
/// in ns.
constexpr std::int64_t kNoise = 5000;
/// Clocks of one host, or of hosts with synchronized clocks, differ by less than this, in ns.
/// Chosen.
constexpr std::int64_t kOneClock = 1'000'000;
/// Share of collectives that may have no partner if no shift explains all. Chosen.
constexpr double kMaxLost = 0.1;

/// Position in the reference = position in the line + shift.
struct Alignment {
  std::int64_t shift = 0, overlap = 0;
  double same_steps = 1;
  /// Median of the differences between ends, and of their distances from it.
  std::int64_t difference = 0, scatter = 0;
};

class AlignmentFinder {
 public:
  AlignmentFinder(const GroupLine& line, const GroupLine& reference)
      : line_(line.all),
        reference_(reference.all),
        size_(static_cast<std::int64_t>(line_.size())),
        most_(static_cast<std::int64_t>(reference_.size())) {}

  std::optional<Alignment> find() {
    const std::int64_t least = std::max<std::int64_t>((std::min(size_, most_) + 1) / 2, 1);
    std::vector<Alignment> found;
    for (std::int64_t shift = std::max(-size_, -kMaxShift); shift <= std::min(most_, kMaxShift);
         ++shift) {
      const std::int64_t overlap = overlap_of(shift);
      if (overlap >= least && agrees(shift)) found.push_back(measured(shift, overlap));
    }
    if (found.empty()) return {};
    keep(
        found, [&](const Alignment& a) { return -a.same_steps; }, 0.01);
    const auto least_scatter =
        std::min_element(found.begin(), found.end(), [](const Alignment& a, const Alignment& b) {
          return a.scatter < b.scatter;
        })->scatter;
    std::erase_if(found,
                  [&](const Alignment& a) { return a.scatter > 2 * least_scatter + kNoise; });
    const auto key = [](const Alignment& a) {
      const std::int64_t far = std::abs(a.difference);
      return far <= kOneClock ? std::tuple(0, far, -a.overlap) : std::tuple(1, -a.overlap, far);
    };
    return *std::min_element(
        found.begin(), found.end(),
        [&](const Alignment& a, const Alignment& b) { return key(a) < key(b); });
  }

  /// Returns the first position in the line where the best shift does not agree.
  std::size_t first_difference() const {
    std::int64_t best = -1, at = 0;
    for (std::int64_t shift = std::max(-size_, -kMaxShift); shift <= std::min(most_, kMaxShift);
         ++shift) {
      std::int64_t same = 0, first = -1;
      for (std::int64_t i = std::max<std::int64_t>(0, -shift); i < std::min(size_, most_ - shift);
           ++i) {
        if (is_same(i, shift))
          ++same;
        else if (first < 0)
          first = i;
      }
      if (same > best) best = same, at = std::max<std::int64_t>(first, 0);
    }
    return static_cast<std::size_t>(at);
  }

 private:
  template <class Value>
  static void keep(std::vector<Alignment>& found, const Value& value, double slack) {
    double least = value(found.front());
    for (const Alignment& candidate : found) least = std::min(least, value(candidate));
    std::erase_if(found,
                  [&](const Alignment& candidate) { return value(candidate) > least + slack; });
  }

  std::int64_t overlap_of(std::int64_t shift) const {
    return std::min(size_, most_ - shift) - std::max<std::int64_t>(0, -shift);
  }
  const Occurrence& own(std::int64_t i) const { return line_[static_cast<std::size_t>(i)]; }
  const Occurrence& other(std::int64_t i) const { return reference_[static_cast<std::size_t>(i)]; }
  bool is_same(std::int64_t i, std::int64_t shift) const {
    return own(i).key == other(i + shift).key;
  }

  bool agrees(std::int64_t shift) const {
    for (std::int64_t i = std::max<std::int64_t>(0, -shift); i < std::min(size_, most_ - shift);
         ++i) {
      if (!is_same(i, shift)) return false;
    }
    return true;
  }

  Alignment measured(std::int64_t shift, std::int64_t overlap) const {
    Alignment found{.shift = shift, .overlap = overlap};
    const std::int64_t begin = std::max<std::int64_t>(0, -shift);
    const std::int64_t stride = std::max<std::int64_t>(overlap / kMaxCompared, 1);
    std::vector<std::int64_t> differences;
    std::int64_t known = 0, same = 0;
    for (std::int64_t i = begin; i < begin + overlap; i += stride) {
      const Occurrence& a = own(i);
      const Occurrence& b = other(i + shift);
      differences.push_back(b.finish - a.finish);
      if (a.step == 0 || b.step == 0) continue;
      ++known;
      same += a.step == b.step ? 1 : 0;
    }
    if (known > 0) found.same_steps = static_cast<double>(same) / static_cast<double>(known);
    found.difference = median(differences);
    for (std::int64_t& difference : differences)
      difference = std::abs(difference - found.difference);
    found.scatter = median(std::move(differences));
    return found;
  }

  const std::vector<Occurrence>& line_;
  const std::vector<Occurrence>& reference_;
  std::int64_t size_, most_;
};

std::vector<std::uint64_t> keys_of(const GroupLine& line) {
  std::vector<std::uint64_t> keys;
  for (const Occurrence& occurrence : line.all) keys.push_back(occurrence.key);
  return keys;
}

}  // namespace

std::vector<std::int64_t> positions_in(const GroupLine& line, const GroupLine& reference,
                                       std::size_t& differs) {
  std::vector<std::int64_t> positions;
  if (&line == &reference) {
    for (std::size_t i = 0; i < line.all.size(); ++i)
      positions.push_back(static_cast<std::int64_t>(i));
    return positions;
  }
  AlignmentFinder finder(line, reference);
  if (const std::optional<Alignment> alignment = finder.find()) {
    for (std::size_t i = 0; i < line.all.size(); ++i)
      positions.push_back(static_cast<std::int64_t>(i) + alignment->shift);
    return positions;
  }
  const std::size_t shorter = std::min(line.all.size(), reference.all.size());
  const std::size_t lost = static_cast<std::size_t>(kMaxLost * static_cast<double>(shorter)) +
                           std::max(line.all.size(), reference.all.size()) - shorter;
  const auto pairs = align(keys_of(line), keys_of(reference), 2 * lost);
  differs = finder.first_difference();
  if (!pairs || pairs->size() * 10 < shorter * 9) return {};
  positions.assign(line.all.size(), kNoPosition);
  for (const auto& [own, other] : *pairs) positions[own] = other;
  return positions;
}

}  // namespace foretrace::infer_detail
