// Replaces kernels by others, according to rules, where that pays; rewrite.h has the rules and the
// search. Kernels that no pattern matches, and waits, cut a stream into lines; equal lines are
// searched once. Costs are sums of kernel times, as in MetaFlow.
//
//     "rules": ["conv ; relu => conv_relu : first", "conv_relu ; conv_relu => pair : 0.8 * sum"]
//
// Ignored: memory of intermediate results that are no longer made.

#include <fmt/core.h>
#include <limits>
#include <map>

#include "foretrace/error.h"
#include "transform/edit/chains.h"
#include "transform/edit/fuse.h"
#include "transform/edit/registered.h"
#include "transform/edit/rewrite.h"

namespace foretrace {
namespace {

class Substitute final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("where", where_, "The kernels that rules may touch");
    fields.texts(
        "rules", rules_,
        "Such as \"conv ; relu => conv_relu : 0.9 * sum\": names in this order on a stream, what "
        "replaces them, and its time (sum, max, first, last or a time); or \"relu => nothing\"");
    fields.number("alpha", alpha_,
                  "Candidates up to this many times the best are followed (1: greedy; 1.05 in "
                  "MetaFlow and TASO)",
                  1, 100);
    fields.integer("most", most_, "Candidates examined for one line of kernels", 1, 1'000'000);
    fields.integer("longest", longest_, "Kernels in a line", 1, 1000);
  }

  Effect apply(Graph& graph, const Context&) const override {
    std::vector<RewriteRule> rules;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      within(fmt::format("rules: [{}]", i), [&] { rules.emplace_back(rules_[i]); });
    }
    if (rules.empty())
      throw Error("rules: must be given, such as [\"conv ; relu => conv_relu : max\"]");
    const std::vector<TaskId> tasks = where_.select_some(graph);
    const Launches launches(graph);
    const std::vector<Group> lines = find_lines(graph, launches, tasks, rules);
    Tally tally;
    std::vector<Fusion> fusions;
    std::vector<TaskId> removed;
    std::map<std::vector<std::pair<NameId, std::int64_t>>, std::vector<RewrittenKernel>> known;
    for (const Group& line : lines) {
      std::vector<std::pair<NameId, std::int64_t>> key;
      for (const TaskId task : line) {
        key.emplace_back(graph.task(task).name, graph.task(task).duration.count());
      }
      const auto [found, added] = known.try_emplace(std::move(key));
      if (added) found->second = search(graph, line, rules, tally.exhausted);
      take(graph, line, found->second, fusions, removed, tally);
    }
    if (tally.made + tally.removed == 0) {
      throw Error(
          fmt::format("rules: none pays, or none matches kernels of \"where\" ({}) that directly "
                      "follow each other",
                      where_.to_text()));
    }
    const FusionCount fused = fuse(graph, fusions, NameId{}, true);
    const Launches left(graph);
    for (const TaskId task : removed) graph.remove(task);
    const std::size_t calls = fused.launches + remove_launches_of(graph, left, removed);
    return effect_of(tally, calls);
  }

 private:
  struct Tally {
    std::size_t from = 0, made = 0, removed = 0, exhausted = 0;
    Nanoseconds before{0}, after{0};
  };

  /// Returns lines of consecutive kernels that some pattern matches, each with at most `longest`
  /// kernels.
  std::vector<Group> find_lines(const Graph& graph, const Launches& launches,
                                const std::vector<TaskId>& tasks,
                                const std::vector<RewriteRule>& rules) const {
    ChainRule rule;
    rule.longest = std::numeric_limits<std::int64_t>::max();
    rule.any = true;
    std::vector<char> known(graph.names().size(), 2);
    std::vector<Group> lines;
    for (const Group& chain : find_chains(graph, launches, tasks, rule)) {
      bool open = false;
      for (const TaskId task : chain) {
        char& fits = known[static_cast<std::size_t>(graph.task(task).name)];
        if (fits == 2) fits = some_match(rules, graph.name(task)) ? 1 : 0;
        const bool full = open && lines.back().size() >= static_cast<std::size_t>(longest_);
        if (fits == 1 && (!open || full)) lines.emplace_back();
        if (fits == 1) lines.back().push_back(task);
        open = fits == 1;
      }
    }
    return lines;
  }

  static bool some_match(const std::vector<RewriteRule>& rules, std::string_view name) {
    for (const RewriteRule& rule : rules) {
      for (std::size_t place = 0; place < rule.length(); ++place) {
        if (rule.matches(place, name)) return true;
      }
    }
    return false;
  }

  std::vector<RewrittenKernel> search(const Graph& graph, const Group& line,
                                      const std::vector<RewriteRule>& rules,
                                      std::size_t& exhausted) const {
    std::vector<RewrittenKernel> kernels;
    for (std::size_t i = 0; i < line.size(); ++i) {
      kernels.push_back({.name = std::string(graph.name(line[i])),
                         .duration = graph.task(line[i]).duration,
                         .begin = i,
                         .end = i + 1});
    }
    return cheapest(kernels, rules, {alpha_, static_cast<std::size_t>(most_)}, exhausted);
  }

  static void take(Graph& graph, const Group& line, const std::vector<RewrittenKernel>& result,
                   std::vector<Fusion>& fusions, std::vector<TaskId>& removed, Tally& tally) {
    for (const RewrittenKernel& kernel : result) {
      if (!kernel.changed) continue;
      const Group from(line.begin() + static_cast<std::ptrdiff_t>(kernel.begin),
                       line.begin() + static_cast<std::ptrdiff_t>(kernel.end));
      tally.from += from.size();
      tally.before += total_duration(graph, from);
      if (kernel.removed) {
        removed.insert(removed.end(), from.begin(), from.end());
        tally.removed += from.size();
        continue;
      }
      ++tally.made;
      tally.after += kernel.duration;
      fusions.push_back({.tasks = from, .duration = kernel.duration});
      graph.task(from.front()).name = graph.names().intern(kernel.name);
    }
  }

  static Effect effect_of(const Tally& tally, std::size_t calls) {
    Effect effect;
    effect.changed = tally.from;
    effect.summary =
        fmt::format("{} became {}, from {} to {} in all, {} fewer", counted(tally.from, "kernel"),
                    grouped(tally.made), to_text(tally.before), to_text(tally.after),
                    counted(calls, "launch call"));
    effect.figures.push_back({"kernels_replaced", static_cast<double>(tally.from)});
    effect.figures.push_back({"kernels_made", static_cast<double>(tally.made)});
    effect.figures.push_back({"kernels_gone", static_cast<double>(tally.removed)});
    effect.figures.push_back({"device_time_saved", tally.before - tally.after});
    note_count(effect, Severity::info, "lines of kernels whose search ended at \"most\"",
               tally.exhausted);
    effect.assumptions.push_back(
        "the kernels that rules make compute the same result, in the time given");
    effect.assumptions.push_back("memory use stays as recorded");
    return effect;
  }

  Selector where_{"kernel"};
  std::vector<std::string> rules_;
  double alpha_ = 1.05;
  std::int64_t most_ = 200;
  std::int64_t longest_ = 32;
};

}  // namespace

TransformEntry substitute_entry() {
  return {.make = create<Substitute>,
          .assumes =
              "Rules replace consecutive matching kernels on a stream by one kernel or none, as "
              "long as the sum of kernel times falls; the search is that of MetaFlow (SysML 2019) "
              "and TASO (SOSP 2019), within lines that waits, phases and steps cut. The author of "
              "a rule is responsible for its correctness and for the time it gives.",
          .advice = {.why_not = "needs rules: substitute:rules=[...]"}};
}

}  // namespace foretrace
