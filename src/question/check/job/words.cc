#include "question/check/job/words.h"

#include <algorithm>
#include <fmt/core.h>

#include "base/wording.h"

namespace foretrace {
namespace {

std::string brief(std::string_view name) { return shortened(name, 70); }

/// "aten::linear/aten::t/aten::addmm" -> "aten::addmm in aten::linear"
std::string shown_path(std::string_view path) {
  constexpr std::string_view kEngine = "autograd::engine::evaluate_function: ";
  const auto plain = [&](std::string_view op) {
    return op.starts_with(kEngine) ? op.substr(kEngine.size()) : op;
  };
  const std::size_t last = path.rfind('/');
  const std::string_view outer = plain(path.substr(0, path.find('/')));
  const std::string_view inner =
      last == std::string_view::npos ? outer : plain(path.substr(last + 1));
  return inner == outer ? brief(outer) : fmt::format("{} in {}", brief(inner), brief(outer));
}

std::string percent_hidden(Nanoseconds hidden, Nanoseconds work) {
  if (work <= 0ns) return "0 %";
  const double percent =
      100 * static_cast<double>(hidden.count()) / static_cast<double>(work.count());
  return fmt::format("{} %", to_fixed(percent, 0));
}

std::string name_of(const WorkChange& change) {
  const std::string& name = change.after.name;
  if (!name.empty()) return brief(name);
  return change.kind == TaskKind::input ? "loading" : "host work";
}

/// Host work is cut into pieces by calls, so only its sum is meaningful.
bool is_in_pieces(const WorkChange& change) {
  return change.kind == TaskKind::host || change.kind == TaskKind::input;
}

std::string more_words(const WorkChange& change) {
  if (change.before.count == 0) return fmt::format("{} new {}", change.more(), name_of(change));
  // Not all of the work is that of the same tasks, so their number alone may mislead.
  return fmt::format(
      "{} more {} ({} -> {}){}", change.more(), name_of(change), change.before.count,
      change.after.count,
      change.moved && change.kind == TaskKind::kernel
          ? fmt::format(", {} -> {}", to_text(change.before.work), to_text(change.after.work))
          : "");
}

std::string slower_words(const WorkChange& change) {
  if (change.is_moved_wait()) return fmt::format("{} {} moved here", change.came, name_of(change));
  if (change.moved) {
    return fmt::format("{} slower, some of it moved: {} -> {}", name_of(change),
                       to_text(change.before.work), to_text(change.after.work));
  }
  const std::int64_t then = std::max<std::int64_t>(1, change.before.count);
  const std::int64_t now = std::max<std::int64_t>(1, change.after.count);
  // Older baselines do not store the longest task.
  const Nanoseconds was = change.before.longest, is = change.after.longest;
  if (!is_in_pieces(change) && now > 1 && was > 0ns && (is - was) * 10 >= 6 * change.added()) {
    return fmt::format("one of {} {} slower: {} -> {}", now, name_of(change), to_text(was),
                       to_text(is));
  }
  if (is_in_pieces(change) || now == 1) {
    return fmt::format("{} slower: {} -> {}", name_of(change), to_text(change.before.work),
                       to_text(change.after.work));
  }
  return fmt::format("{} slower: {} -> {} x {}", name_of(change),
                     to_text(change.before.work / then), to_text(change.after.work / now), now);
}

std::string copy_words(const WorkChange& change) {
  const JobGroup &then = change.before, &now = change.after;
  if (now.pageable > then.pageable) {
    return fmt::format("{} from or to pageable memory ({} -> {} of {}), {} -> {}", name_of(change),
                       then.pageable, now.pageable, now.count, to_text(then.work),
                       to_text(now.work));
  }
  // If as much time is hidden behind kernels as before, only the new part is exposed: no overlap
  // was lost.
  if (change.exposed() > 0ns && now.hidden < scaled(then.hidden, 0.95)) {
    std::string text =
        fmt::format("lost overlap: {} hidden behind kernels {} -> {}", name_of(change),
                    percent_hidden(then.hidden, then.work), percent_hidden(now.hidden, now.work));
    if (now.aside * then.count < then.aside * now.count)
      text += ", now on the stream of the kernels";
    return text;
  }
  if (change.more() > 0) {
    return more_words(change) +
           (now.bytes.count > 0 ? fmt::format(", {} a step", to_text(now.bytes)) : "");
  }
  if (now.bytes > then.bytes) {
    return fmt::format("{} larger: {} -> {} a step", name_of(change), to_text(then.bytes),
                       to_text(now.bytes));
  }
  return slower_words(change);
}

}  // namespace

bool is_event_wait(const WorkChange& change) {
  return waits_for_event(change.after.name) && change.more() > 0;
}

int significance(const WorkChange& change) {
  if (change.kind == TaskKind::sync) return change.more() > 0 ? 9 : 1;
  if (change.kind == TaskKind::collective) return 8;
  if (is_copy_kind(change.kind)) return 7;
  if (is_event_wait(change)) return 6;
  if (change.kind == TaskKind::kernel) return 5;
  if (change.kind == TaskKind::input) return 4;
  if (change.kind == TaskKind::launch) return change.more() > 0 ? 3 : 1;
  return change.kind == TaskKind::host ? 2 : 1;
}

std::string change_words(const WorkChange& change) {
  if (is_copy_kind(change.kind) && change.replaced.empty()) return copy_words(change);
  if (is_copy_kind(change.kind) && change.after.pageable > change.before.pageable)
    return copy_words(change);
  if (!change.replaced.empty()) {
    return fmt::format("{} in place of {}: {} -> {}", brief(change.after.name),
                       brief(change.replaced), to_text(change.before.work),
                       to_text(change.after.work));
  }
  const bool is_counted = !is_in_pieces(change) || !change.after.name.empty();
  if (!is_counted && change.before.count == 0)
    return fmt::format("new {}: {}", name_of(change), to_text(change.after.work));
  if (is_counted && change.more() > 0) return more_words(change);
  return slower_words(change);
}

std::string general_words(const GeneralChange& general) {
  const auto words = [&](std::string_view work, std::string_view because_of) {
    return fmt::format("{} {} times as long throughout, not in one place: {}", work,
                       to_fixed(general.factor, 2), because_of);
  };
  if (general.kind == TaskKind::kernel)
    return words("kernels take", "the device, its clock or other jobs on the machine");
  if (general.kind == TaskKind::launch)
    return words("launch calls take", "the driver, or a tool that follows its calls");
  return words("host work takes", "the machine, its clock or other programs on it");
}

std::string place_words(const WorkChange& change, int line) {
  std::string text;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  };
  if (!change.file.empty()) {
    const std::string source = line > 0 ? fmt::format("{}:{}", change.file, line) : change.file;
    add(change.function.empty() ? source : fmt::format("{} in {}", source, change.function));
  }
  add(shown_path(change.op));
  if (!change.module.empty()) add("module " + change.module);
  return text;
}

}  // namespace foretrace
