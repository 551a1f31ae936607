// Converts nested records to self time: at each moment a thread's time belongs to the innermost
// open record, so nothing is counted twice. Records that overlap without nesting (clock skew) are
// treated alike: the one that started last owns the time.

#include <algorithm>

#include "infer/passes.h"

namespace foretrace::infer_detail {
namespace {

enum class Role : std::uint8_t { plain, update, input, backward, module };

/// Whether `name` is a node of the autograd graph, such as "CudnnConvolutionBackward" or
/// "AddBackward0". Profilers before PyTorch 1.9 record it without the engine's call around it.
bool is_autograd_node(std::string_view name) {
  if (name.substr(0, 17) == "torch::autograd::") return true;
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.remove_suffix(1);
  return name.ends_with("Backward") && name.find_first_of(": /(") == std::string_view::npos;
}

Role role_of(std::string_view name) {
  if (name.starts_with("Optimizer.")) return Role::update;
  if (name.starts_with("enumerate(DataLoader)")) return Role::input;
  if (name.starts_with("autograd::engine::evaluate_function")) return Role::backward;
  if (name.starts_with("nn.Module: ")) return Role::module;
  if (is_autograd_node(name)) return Role::backward;
  return Role::plain;
}

/// Cuts the time of one thread into segments. `open_` is the stack of records that have begun.
class Cutter {
 public:
  Cutter(const Records& records, const std::vector<Role>& roles, HostTime& host,
         std::vector<Segment>& out, Names& names)
      : records_(records), roles_(roles), host_(host), out_(out), names_(names) {}

  void cut(const std::vector<std::uint32_t>& records) {
    for (const std::uint32_t record : records) {
      const HostRecord& host = records_.trace.hosts[record];
      if (out_.empty() && open_.empty()) now_ = host.start_ns;
      close_until(host.start_ns);
      emit_until(host.start_ns);
      open_.push_back({record, host.start_ns + std::max<std::int64_t>(host.duration_ns, 0),
                       context_for(record, host)});
    }
    close_until(std::numeric_limits<std::int64_t>::max());
  }

 private:
  struct OpenRecord {
    std::uint32_t record;
    std::int64_t finish;
    std::uint32_t context;
    bool emitted = false;
  };

  void close_until(std::int64_t time) {
    while (!open_.empty() && open_.back().finish <= time) {
      emit_until(open_.back().finish);
      OpenRecord& top = open_.back();
      if (!top.emitted && records_.call_of_record[top.record] != kNone) emit(now_);
      open_.pop_back();
    }
  }

  void emit_until(std::int64_t time) {
    if (time > now_) emit(time);
  }

  void emit(std::int64_t until) {
    Segment segment{.start = now_, .finish = until};
    if (!open_.empty()) {
      OpenRecord& top = open_.back();
      top.emitted = true;
      segment.record = top.record;
      segment.context = top.context;
      segment.call = records_.call_of_record[top.record];
    }
    out_.push_back(segment);
    now_ = until;
  }

  std::uint32_t context_for(std::uint32_t record, const HostRecord& host) {
    const std::uint32_t parent = open_.empty() ? kNone : open_.back().context;
    const Role role = roles_[static_cast<std::size_t>(host.name)];
    if (role == Role::plain && host.kind != HostKind::op) return parent;
    Context context;
    if (parent != kNone) context = host_.contexts[parent];
    context.parent = parent;
    if (host.kind == HostKind::op) context.op = record;
    switch (role) {
      case Role::update:
        context.phase = Phase::update;
        break;
      case Role::backward:
        context.phase = Phase::backward;
        break;
      case Role::input:
        context.phase = Phase::input, context.input = true;
        break;
      case Role::module:
        context.module = inner_module(context.module, host.name);
        break;
      case Role::plain:
        break;
    }
    if (context.phase == Phase::none) context.phase = Phase::forward;
    host_.contexts.push_back(context);
    return static_cast<std::uint32_t>(host_.contexts.size() - 1);
  }

  NameId inner_module(NameId outer, NameId frame) {
    std::string path(names_[outer]);
    if (!path.empty()) path += '/';
    path += names_[frame].substr(std::string_view("nn.Module: ").size());
    return names_.intern(path);
  }

  const Records& records_;
  const std::vector<Role>& roles_;
  HostTime& host_;
  std::vector<Segment>& out_;
  Names& names_;
  std::vector<OpenRecord> open_;
  std::int64_t now_ = 0;
};

/// For records with equal times: the call is inside the op, and the op inside the annotation.
int depth_of(HostKind kind) {
  if (kind == HostKind::annotation) return 0;
  if (kind == HostKind::python) return 1;
  return kind == HostKind::op ? 2 : 3;
}

/// Orders outer records first.
bool opens_before(const HostRecord& left, const HostRecord& right) {
  if (left.start_ns != right.start_ns) return left.start_ns < right.start_ns;
  if (left.duration_ns != right.duration_ns) return left.duration_ns > right.duration_ns;
  return depth_of(left.kind) < depth_of(right.kind);
}

std::vector<std::vector<std::uint32_t>> records_by_thread(const Trace& trace) {
  std::vector<std::vector<std::uint32_t>> threads(trace.threads.size());
  for (std::size_t i = 0; i < trace.hosts.size(); ++i) {
    if (trace.hosts[i].kind == HostKind::overhead) continue;
    if (!trace.hosts[i].nests) continue;
    threads[trace.hosts[i].thread].push_back(static_cast<std::uint32_t>(i));
  }
  for (std::vector<std::uint32_t>& records : threads) {
    std::stable_sort(records.begin(), records.end(), [&](std::uint32_t a, std::uint32_t b) {
      return opens_before(trace.hosts[a], trace.hosts[b]);
    });
  }
  return threads;
}

/// Assigns a backward op, and the ops it calls, to the module of the forward op with its sequence
/// number.
void carry_modules_to_backward(HostTime& host) {
  const Trace& trace = host.trace;
  std::unordered_map<std::int64_t, NameId> module_of;
  const auto sequence_of = [&](const Context& context) -> std::int64_t {
    if (context.op == kNone || trace.hosts[context.op].details == kNone) return -1;
    return trace.op_details[trace.hosts[context.op].details].sequence;
  };
  for (const Context& context : host.contexts) {
    if (context.phase == Phase::backward || context.module == NameId{}) continue;
    const std::int64_t sequence = sequence_of(context);
    if (sequence >= 0) module_of.try_emplace(sequence, context.module);
  }
  for (Context& context : host.contexts) {
    if (context.phase != Phase::backward || context.module != NameId{}) continue;
    const auto found = module_of.find(sequence_of(context));
    if (found != module_of.end()) {
      context.module = found->second;
    } else if (context.parent != kNone) {
      context.module = host.contexts[context.parent].module;
    }
  }
}

/// Numbers the layers: modules that run ops, in the order in which they first do so.
void number_layers(std::vector<Context>& contexts) {
  std::unordered_map<std::uint32_t, std::int32_t> layers;
  for (const bool backward : {false, true}) {
    for (Context& context : contexts) {
      if (context.module == NameId{} || (context.phase == Phase::backward) != backward) continue;
      if (context.op == kNone) continue;
      context.layer = layers
                          .try_emplace(static_cast<std::uint32_t>(context.module),
                                       static_cast<std::int32_t>(layers.size()))
                          .first->second;
    }
  }
}

}  // namespace

HostTime cut_host_time(const Records& records, Names& names) {
  const Trace& trace = records.trace;
  std::vector<Role> roles(trace.names.size());
  for (std::size_t i = 0; i < roles.size(); ++i) {
    roles[i] = role_of(trace.names[static_cast<NameId>(i)]);
  }
  const std::vector<std::vector<std::uint32_t>> threads = records_by_thread(trace);
  HostTime host{.trace = trace};
  host.segments.resize(threads.size());
  for (std::size_t i = 0; i < threads.size(); ++i) {
    host.segments[i].reserve(threads[i].size() * 2);
    Cutter(records, roles, host, host.segments[i], names).cut(threads[i]);
  }
  carry_modules_to_backward(host);
  number_layers(host.contexts);
  return host;
}

}  // namespace foretrace::infer_detail
