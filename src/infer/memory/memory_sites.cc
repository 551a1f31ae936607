// The context of an allocator event: the ops and Python frames that were open on its thread.

#include <algorithm>
#include <array>
#include <limits>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {

bool only_allocates(std::string_view op) {
  constexpr std::array<std::string_view, 10> kOps{"aten::empty",
                                                  "aten::empty_strided",
                                                  "aten::empty_like",
                                                  "aten::new_empty",
                                                  "aten::new_empty_strided",
                                                  "aten::resize_",
                                                  "aten::empty_quantized",
                                                  "aten::empty_permuted",
                                                  "aten::resize_as_",
                                                  "aten::set_"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

bool is_backward_call(std::string_view op) {
  if (op.starts_with("autograd::engine::") || op.starts_with("torch::autograd::")) return true;
  while (!op.empty() && op.back() >= '0' && op.back() <= '9') op.remove_suffix(1);
  return op.ends_with("Backward") && op.find_first_of(": /(") == op.npos;
}

bool runs_node(std::string_view op) {
  return op.starts_with("autograd::engine::evaluate_function");
}

NamedOps::NamedOps(const HostTime& host) {
  const Trace& trace = host.trace;
  enum class Kind : std::uint8_t { plain, operation, allocation, backward };
  std::vector<Kind> kinds(trace.names.size(), Kind::plain);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string_view name = trace.names[static_cast<NameId>(i)];
    if (is_backward_call(name)) {
      kinds[i] = Kind::backward;
    } else if (name.find("::") != name.npos) {
      kinds[i] = infer_detail::only_allocates(name) ? Kind::allocation : Kind::operation;
    }
  }
  all_.reserve(host.contexts.size());
  for (const Context& context : host.contexts) {
    EnclosingOps around = context.parent == kNone ? EnclosingOps{} : all_[context.parent];
    const bool has_op = context.op != kNone &&
                        (context.parent == kNone || host.contexts[context.parent].op != context.op);
    if (has_op) {
      const HostRecord& op = trace.hosts[context.op];
      const Kind kind = kinds[static_cast<std::size_t>(op.name)];
      around.innermost = context.op;
      if (kind == Kind::plain) around.plain = context.op;
      if (kind == Kind::operation && around.op == kNone) around.op = context.op;
      // A node may run a backward pass of its own, as a checkpoint does; each node of that pass
      // comes with a call of the engine.
      const bool is_call = kind == Kind::backward && runs_node(trace.names[op.name]);
      if (context.phase == Phase::backward && (around.node == kNone || is_call)) {
        around.node = context.op;
      }
      if (op.details != kNone && trace.op_details[op.details].stack != NameId{}) {
        around.stack = trace.op_details[op.details].stack;
      }
    }
    all_.push_back(around);
  }
}

std::uint32_t NamedOps::name(std::uint32_t context) const {
  const EnclosingOps& around = all_[context];
  if (around.op != kNone) return around.op;
  return around.plain != kNone ? around.plain : around.innermost;
}

void PhaseTimes::sort() {
  for (std::vector<std::int64_t>& begins : begins_) std::sort(begins.begin(), begins.end());
}

std::int64_t PhaseTimes::next(Phase phase, std::int64_t after) const {
  const std::vector<std::int64_t>& begins = begins_[static_cast<std::size_t>(phase)];
  const auto behind = std::upper_bound(begins.begin(), begins.end(), after);
  return behind == begins.end() ? std::numeric_limits<std::int64_t>::max() : *behind;
}

bool PhaseTimes::began(Phase phase, std::int64_t after, std::int64_t until) const {
  return next(phase, after) <= until;
}

SiteFinder::SiteFinder(const HostTime& host, Names& names)
    : host_(host), names_(names), ops_(host) {
  const Trace& trace = host.trace;
  allocates_.resize(trace.names.size());
  for (std::size_t i = 0; i < allocates_.size(); ++i) {
    allocates_[i] = infer_detail::only_allocates(trace.names[static_cast<NameId>(i)]);
  }
  runs_backward_.resize(host.segments.size());
  for (std::size_t i = 0; i < runs_backward_.size(); ++i) {
    std::size_t backward = 0, all = 0;
    for (const Segment& segment : host.segments[i]) {
      if (segment.context == kNone) continue;
      ++all;
      if (host.contexts[segment.context].phase == Phase::backward) ++backward;
    }
    // A thread of autograd does little else, so nearly all of its ops must be backward. Chosen.
    runs_backward_[i] = backward * 10 > all * 9;
  }
}

bool SiteFinder::only_allocates(std::uint32_t context) const {
  if (context == kNone || host_.contexts[context].op == kNone) return false;
  const HostRecord& op = host_.trace.hosts[host_.contexts[context].op];
  return allocates_[static_cast<std::size_t>(op.name)] != 0;
}

/// Returns the segment of an event. If times are whole microseconds, an allocating op may have
/// ended in the same microsecond as its event; then the event belongs to that op.
const Segment* SiteFinder::segment_at(const MemorySite& site, bool frees) const {
  const std::vector<Segment>& segments = host_.segments[site.thread];
  auto behind =
      std::upper_bound(segments.begin(), segments.end(), site.time,
                       [](std::int64_t t, const Segment& segment) { return t < segment.start; });
  if (behind == segments.begin()) return nullptr;
  const Segment& found = *--behind;
  if (site.time > found.finish) return nullptr;
  if (frees || only_allocates(found.context)) return &found;
  constexpr int kMaxBack = 4;  // Segments of one call. Chosen.
  for (int back = 0; behind != segments.begin() && back < kMaxBack; ++back) {
    --behind;
    if (behind->finish < site.time) break;
    if (only_allocates(behind->context)) return &*behind;
  }
  return &found;
}

MemorySite SiteFinder::at(std::uint32_t record, bool frees) const {
  const MemoryRecord& event = host_.trace.memory[record];
  MemorySite site{.time = event.time_ns, .record = record, .thread = event.thread};
  const Segment* segment = segment_at(site, frees);
  site.context = segment == nullptr ? kNone : segment->context;
  if (site.context == kNone) {
    // Between its ops, the engine frees the values that they saved.
    if (runs_backward_[site.thread]) site.phase = Phase::backward;
    return site;
  }
  site.phase = host_.contexts[site.context].phase;
  site.op = ops_.name(site.context);
  site.node = ops_.node(site.context);
  site.unit = ops_.op(site.context) != kNone ? ops_.op(site.context) : site.node;
  return site;
}

namespace {

/// Converts "train.py(12): step" to "train.py:12 step"; returns empty text for anything but a line
/// of a file.
std::string frame_text(std::string_view frame) {
  const std::size_t open = frame.rfind('(', frame.find("): "));
  const std::size_t close = frame.find("): ");
  if (open == frame.npos || close == frame.npos || open > close || open == 0) return {};
  const std::string_view line = frame.substr(open + 1, close - open - 1);
  if (line.empty() || line.find_first_not_of("0123456789") != line.npos) return {};
  std::string text(frame.substr(0, open));
  text += ':';
  text += line;
  text += ' ';
  text += frame.substr(close + 3);
  std::replace(text.begin(), text.end(), ';', ',');
  return text;
}

}  // namespace

NameId SiteFinder::stack(const MemorySite& site) {
  if (site.context != kNone && ops_.stack(site.context) != NameId{}) {
    return written_stack(ops_.stack(site.context));
  }
  return python_stack(site.thread, site.time);
}

/// Converts frames that are lines of a file to the form of all stacks; keeps others as they are.
NameId SiteFinder::written_stack(NameId recorded) {
  const auto [found, is_new] = stacks_.try_emplace(static_cast<std::uint32_t>(recorded));
  if (!is_new) return found->second;
  std::string text;
  std::string_view rest = host_.trace.names[recorded];
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string line = frame_text(rest.substr(0, end));
    if (!text.empty()) text += ';';
    text += line.empty() ? rest.substr(0, end) : std::string_view(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return found->second = names_.intern(text);
}

void SiteFinder::sort_frames() {
  frames_.resize(host_.segments.size());
  for (std::size_t i = 0; i < host_.trace.hosts.size(); ++i) {
    const HostRecord& host = host_.trace.hosts[i];
    if (host.kind != HostKind::python) continue;
    frames_[host.thread].push_back({.start = host.start_ns,
                                    .finish = host.start_ns + host.duration_ns,
                                    .record = static_cast<std::uint32_t>(i)});
  }
  for (std::vector<Frame>& frames : frames_) {
    std::sort(frames.begin(), frames.end(), [](const Frame& a, const Frame& b) {
      if (a.start != b.start) return a.start < b.start;
      return a.finish != b.finish ? a.finish > b.finish : a.record < b.record;
    });
    std::uint32_t outer = kNone;
    for (std::uint32_t i = 0; i < frames.size(); ++i) {
      while (outer != kNone && frames[outer].finish < frames[i].finish) outer = frames[outer].outer;
      frames[i].outer = outer;
      outer = i;
    }
  }
}

NameId SiteFinder::python_stack(std::uint16_t thread, std::int64_t time) {
  if (frames_.empty()) sort_frames();
  const std::vector<Frame>& frames = frames_[thread];
  const auto behind = std::partition_point(frames.begin(), frames.end(),
                                           [&](const Frame& f) { return f.start <= time; });
  if (behind == frames.begin()) return NameId{};
  auto at = static_cast<std::uint32_t>(behind - frames.begin() - 1);
  while (at != kNone && frames[at].finish < time) at = frames[at].outer;
  return at == kNone ? NameId{} : text_of(thread, at);
}

/// Returns the text of a frame: its own line followed by those of the enclosing frames, up to a
/// number that is useful to a reader.
NameId SiteFinder::text_of(std::uint16_t thread, std::size_t frame) {
  constexpr int kMaxFrames = 24;
  std::vector<Frame>& frames = frames_[thread];
  Frame& inner = frames[frame];
  if (inner.has_text) return inner.text;
  std::string text;
  int count = 0;
  for (auto at = static_cast<std::uint32_t>(frame); at != kNone && count < kMaxFrames;
       at = frames[at].outer) {
    const std::string line = frame_text(host_.name(host_.trace.hosts[frames[at].record]));
    if (line.empty()) continue;
    if (!text.empty()) text += ';';
    text += line;
    ++count;
  }
  inner.has_text = true;
  return inner.text = names_.intern(text);
}

}  // namespace foretrace::infer_detail
