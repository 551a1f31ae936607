#include <fmt/core.h>

#include "foretrace/error.h"
#include "graph/select.h"
#include "transform/edit/edit.h"
#include "transform/edit/registered.h"

namespace foretrace {
namespace {

constexpr Provenance kProvenances[] = {Provenance::measured, Provenance::structural,
                                       Provenance::inferred, Provenance::assumed};

/// Deletes dependencies for which every given condition holds; the order of lanes stays.
class RemoveDependency final : public Transform {
 public:
  void describe(Fields& fields) override {
    fields.object("from", from_, "Only those that wait for these tasks");
    fields.object("to", to_, "Only those in which these tasks are waited for");
    fields.text("why", why_, "Only those with this text, or /expression/, as their reason");
    fields.choice("provenance", provenance_, provenance_options(),
                  "Only those with this provenance");
  }

  Effect apply(Graph& graph, const Context&) const override {
    const NamePattern why = within("why", [&] { return NamePattern(why_); });
    const std::vector<char> from = marked(graph, from_.select_some(graph, "from"));
    const std::vector<char> to = marked(graph, to_.select_some(graph, "to"));
    const std::size_t dropped = graph.remove_dependencies([&](const Dependency& dependency) {
      return from[index(dependency.before)] != 0 && to[index(dependency.after)] != 0 &&
             (provenance_ == "any" || provenance_ == to_string(dependency.provenance)) &&
             why.matches(to_string(dependency.why, graph.names()));
    });
    if (dropped == 0) throw Error(fmt::format("no dependency matches ({})", asked_for()));
    Effect effect;
    effect.changed = dropped;
    effect.summary = counted(dropped, "dependency") + " dropped";
    return effect;
  }

 private:
  static std::vector<std::string_view> provenance_options() {
    std::vector<std::string_view> options = {"any"};
    for (const Provenance provenance : kProvenances) options.push_back(to_string(provenance));
    return options;
  }

  static std::vector<char> marked(const Graph& graph, const std::vector<TaskId>& tasks) {
    std::vector<char> marks(graph.task_count(), 0);
    for (const TaskId task : tasks) marks[index(task)] = 1;
    return marks;
  }

  std::string asked_for() const {
    std::string text = fmt::format("from {} to {}", from_.to_text(), to_.to_text());
    if (!why_.empty()) text += fmt::format(", why \"{}\"", why_);
    if (provenance_ != "any") text += ", provenance " + provenance_;
    return text;
  }

  Selector from_;
  Selector to_;
  std::string why_;
  std::string provenance_ = "any";
};

}  // namespace

TransformEntry remove_dependency_entry() {
  return {.make = create<RemoveDependency>,
          .assumes =
              "The program is assumed to be correct without waiting there. The order of tasks on a "
              "lane stays: \"move\" changes the lane of a task.",
          .advice = {.why_not = "a manual edit: you choose which waits to delete"}};
}

}  // namespace foretrace
