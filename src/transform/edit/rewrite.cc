#include "transform/edit/rewrite.h"

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <queue>
#include <set>

#include "foretrace/error.h"

namespace foretrace {
namespace {

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

struct Candidate {
  Nanoseconds cost;
  std::uint64_t number;  ///< Counts candidates as they are found; breaks ties between equal costs.
  std::vector<RewrittenKernel> line;
};
struct MoreExpensive {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return a.cost != b.cost ? a.cost > b.cost : a.number > b.number;
  }
};

Nanoseconds cost_of(const std::vector<RewrittenKernel>& line) {
  Nanoseconds cost(0);
  for (const RewrittenKernel& kernel : line) {
    cost += std::min(kernel.duration, Nanoseconds::max() - cost);
  }
  return cost;
}

/// Returns a key: lines with the same text can be rewritten in the same ways.
std::string search_key(const std::vector<RewrittenKernel>& line) {
  std::string text;
  for (const RewrittenKernel& kernel : line) {
    text += kernel.removed ? "-" : kernel.name;
    text +=
        '@' + std::to_string(kernel.begin) + ':' + std::to_string(kernel.duration.count()) + '\n';
  }
  return text;
}

/// Returns the places of the kernels that no rule has deleted.
std::vector<std::size_t> remaining_kernels(const std::vector<RewrittenKernel>& line) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!line[i].removed) places.push_back(i);
  }
  return places;
}

/// Returns `line` with the rule applied to rule.length() living kernels from places[at] on. Deleted
/// kernels in between become part of the kernel it makes.
std::vector<RewrittenKernel> rewritten(const std::vector<RewrittenKernel>& line,
                                       const std::vector<std::size_t>& places, std::size_t at,
                                       const RewriteRule& rule) {
  const std::size_t first = places[at];
  const std::size_t last = places[at + rule.length() - 1];
  std::vector<RewrittenKernel> matched;
  for (std::size_t i = 0; i < rule.length(); ++i) matched.push_back(line[places[at + i]]);
  std::vector<RewrittenKernel> result(line.begin(),
                                      line.begin() + static_cast<std::ptrdiff_t>(first));
  RewrittenKernel made = rule.apply(matched.data());
  made.begin = line[first].begin;
  made.end = line[last].end;
  result.push_back(made);
  result.insert(result.end(), line.begin() + static_cast<std::ptrdiff_t>(last) + 1, line.end());
  return result;
}

}  // namespace

RewriteRule::RewriteRule(const std::string& text) {
  const std::size_t arrow = text.find("=>");
  if (arrow == std::string::npos)
    throw Error(
        fmt::format("must be a rule such as \"conv ; relu => conv_relu : max\", got \"{}\"", text));
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (;;) {
    const std::size_t end = left.find(';');
    const std::string pattern = trimmed(left.substr(0, end));
    if (pattern.empty()) throw Error("each pattern must be a part of a kernel's name");
    patterns_.emplace_back(pattern);
    if (end == std::string_view::npos) break;
    left.remove_prefix(end + 1);
  }
  const std::string right = trimmed(std::string_view(text).substr(arrow + 2));
  if (right == "nothing") return;
  const std::size_t colon = right.find(" : ");
  name_ = trimmed(right.substr(0, colon));
  if (name_.empty()) throw Error("must name what it makes, or \"nothing\"");
  if (colon != std::string::npos) read_duration(trimmed(right.substr(colon + 3)));
}

void RewriteRule::read_duration(std::string text) {
  const std::size_t star = text.find('*');
  if (star != std::string::npos) {
    const std::string factor = trimmed(text.substr(0, star));
    const char* end = factor.data() + factor.size();
    const auto read = std::from_chars(factor.data(), end, factor_);
    if (read.ec != std::errc() || read.ptr != end || !(factor_ >= 0) || factor_ > 1e6)
      throw Error(fmt::format("the factor must be a number from 0 to 1000000, got \"{}\"", factor));
    text = trimmed(text.substr(star + 1));
  }
  if (text == "sum" || text == "max" || text == "first" || text == "last") {
    of_ = text;
    return;
  }
  of_ = "time";
  try {
    time_ = parse_time(text);
  } catch (const Error&) {
    throw Error(
        fmt::format("the duration must be sum, max, first, last or a time, got \"{}\"", text));
  }
  if (time_ < Nanoseconds(0) || time_ > std::chrono::hours(1000))
    throw Error(fmt::format("the duration must be from 0s to 1000h, got \"{}\"", text));
}

bool RewriteRule::matches(std::size_t place, std::string_view name) const {
  return patterns_[place].matches(name);
}

RewrittenKernel RewriteRule::apply(const RewrittenKernel* kernels) const {
  RewrittenKernel made{.name = name_, .changed = true, .removed = name_.empty()};
  if (made.removed) return made;
  Nanoseconds sum(0), most(0);
  for (std::size_t i = 0; i < length(); ++i) {
    sum += std::min(kernels[i].duration, Nanoseconds::max() - sum);
    most = std::max(most, kernels[i].duration);
  }
  const Nanoseconds of = of_ == "sum"     ? sum
                         : of_ == "max"   ? most
                         : of_ == "first" ? kernels[0].duration
                         : of_ == "last"  ? kernels[length() - 1].duration
                                          : time_;
  made.duration = scaled(of, factor_);
  return made;
}

std::vector<RewrittenKernel> cheapest(const std::vector<RewrittenKernel>& line,
                                      const std::vector<RewriteRule>& rules,
                                      const RewriteSearch& search, std::size_t& exhausted) {
  std::priority_queue<Candidate, std::vector<Candidate>, MoreExpensive> queue;
  std::set<std::string> seen{search_key(line)};
  Candidate best{cost_of(line), 0, line};
  std::uint64_t found = 0;
  queue.push(best);
  for (std::size_t looked = 0; !queue.empty(); ++looked) {
    if (looked >= search.most) {
      ++exhausted;
      break;
    }
    const Candidate candidate = queue.top();
    queue.pop();
    if (candidate.cost < best.cost) best = candidate;
    if (static_cast<double>(candidate.cost.count()) >
        search.alpha * static_cast<double>(best.cost.count()))
      continue;
    const std::vector<std::size_t> places = remaining_kernels(candidate.line);
    for (const RewriteRule& rule : rules) {
      for (std::size_t at = 0; at + rule.length() <= places.size(); ++at) {
        bool fits = true;
        for (std::size_t i = 0; fits && i < rule.length(); ++i) {
          fits = rule.matches(i, candidate.line[places[at + i]].name);
        }
        if (!fits) continue;
        std::vector<RewrittenKernel> next = rewritten(candidate.line, places, at, rule);
        if (!seen.insert(search_key(next)).second) continue;
        const Nanoseconds cost = cost_of(next);
        if (static_cast<double>(cost.count()) <=
            search.alpha * static_cast<double>(best.cost.count()))
          queue.push({cost, ++found, std::move(next)});
      }
    }
  }
  return best.line;
}

}  // namespace foretrace
