#include "infer/memory/memory_stacks.h"

#include <algorithm>
#include <set>

namespace foretrace::infer_detail {
namespace {

struct Frame {
  std::string_view file, function;

  bool is_python() const {
    return file.ends_with(".py") || file.starts_with("<ipython") || file.starts_with("<stdin");
  }
};

/// Parses "path/file.py:12 function"; a C++ frame has "??:0 name" or the like.
Frame read_frame(std::string_view text) {
  // The line is a number between ':' and ' '. C++ functions can contain both characters, so the
  // first match is taken.
  for (std::size_t at = text.find(':'); at != text.npos; at = text.find(':', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (end == at + 1 || end == text.size() || text[end] != ' ') continue;
    return {text.substr(0, at), text.substr(end + 1)};
  }
  return {{}, text};
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == path.npos ? path : path.substr(slash + 1);
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool is_about_optimizers(std::string_view file) { return file.find("optim") != file.npos; }

bool is_update(const Frame& frame) {
  if (!is_about_optimizers(frame.file)) return false;
  if (frame.function.find("step") != frame.function.npos) return true;
  const bool of_torch = frame.file.find("torch/optim/") != frame.file.npos;
  return of_torch && !is_one_of(frame.function, {"__init__", "zero_grad", "add_param_group",
                                                 "load_state_dict", "wrapper", "_use_grad"});
}

bool is_backward(const Frame& frame) {
  if (!frame.is_python())
    return frame.function.find("autograd::Engine::") != std::string_view::npos;
  return is_one_of(frame.function, {"backward", "_engine_run_backward", "unpack_hook"});
}

bool is_forward(const Frame& frame) {
  if (!frame.is_python()) return false;
  if (frame.function == "forward") return true;
  return frame.file.ends_with("torch/nn/modules/module.py") &&
         is_one_of(frame.function, {"_call_impl", "_wrapped_call_impl", "__call__"});
}

bool is_building(const Frame& frame) {
  if (!frame.is_python()) return false;
  if (is_one_of(frame.function,
                {"__init__", "from_pretrained", "load_state_dict", "_load_state_dict"})) {
    return true;
  }
  return frame.file.ends_with("torch/nn/modules/module.py") &&
         is_one_of(frame.function, {"_apply", "convert", "to", "cuda"});
}

/// Whether a function allocates a workspace: handles of cuBLAS and cuDNN keep theirs for as long as
/// the thread lives.
bool names_workspace(std::string_view function) {
  return function.find("Workspace") != function.npos ||
         function.find("BlasHandle") != function.npos;
}

/// Returns the op of "at::_ops::add_Tensor::call(...)"; the part from a capital letter on is the
/// overload.
std::string_view called_op(std::string_view function) {
  constexpr std::string_view kBegin = "at::_ops::";
  constexpr std::string_view kEnd = "::call(";
  const std::size_t end = function.find(kEnd);
  if (!function.starts_with(kBegin) || end == function.npos) return {};
  std::string_view op = function.substr(kBegin.size(), end - kBegin.size());
  for (std::size_t i = 1; i + 1 < op.size(); ++i) {
    if (op[i] == '_' && op[i + 1] >= 'A' && op[i + 1] <= 'Z') return op.substr(0, i);
  }
  return op;
}

}  // namespace

const StackFacts& StackReader::read(NameId stack) {
  const auto [found, is_new] = known_.try_emplace(static_cast<std::uint32_t>(stack));
  if (is_new) found->second = facts_of(std::string(names_[stack]));
  return found->second;
}

StackFacts StackReader::facts_of(std::string_view stack) {
  StackFacts facts;
  facts.is_empty = stack.empty();
  std::string_view op, inner_op;
  std::string place;
  while (!stack.empty()) {
    const std::size_t end = std::min(stack.find(';'), stack.size());
    const std::string_view text = stack.substr(0, end);
    const Frame frame = read_frame(text);
    stack.remove_prefix(std::min(end + 1, stack.size()));
    const bool backward = is_backward(frame);
    facts.has_engine |= backward && !frame.is_python();
    facts.is_workspace |= !frame.is_python() && names_workspace(frame.function);
    facts.builds_model |= is_building(frame);
    facts.of_optimizer |= frame.is_python() && is_about_optimizers(frame.file);
    if (backward && facts.phase != Phase::update) facts.phase = Phase::backward;
    if (facts.phase == Phase::none && frame.is_python()) {
      if (is_forward(frame)) facts.phase = Phase::forward;
      if (is_update(frame)) facts.phase = Phase::update;
    }
    if (const std::string_view called = called_op(frame.function); !called.empty()) {
      if (inner_op.empty()) inner_op = called;
      op = called;
    }
    if (place.empty() && frame.is_python()) {
      place = std::string(base_name(text.substr(0, frame.file.size()))) +
              std::string(text.substr(frame.file.size()));
    }
  }
  facts.moves =
      is_one_of(op, {"to", "to_device", "to_dtype_layout", "to_other", "_to_copy", "cuda"});
  if (!op.empty()) facts.op = names_.intern("aten::" + std::string(op));
  facts.place = names_.intern(place);
  return facts;
}

namespace {

/// Returns the distinct Python parts of the stacks; names of C++ frames vary.
std::set<std::string> python_frames(const std::vector<std::string_view>& stacks) {
  std::set<std::string> found;
  std::set<const char*> seen;  // Names are interned, so equal stacks have the same address.
  for (std::string_view stack : stacks) {
    if (!seen.insert(stack.data()).second) continue;
    std::string frames;
    while (!stack.empty()) {
      const std::string_view frame = stack.substr(0, stack.find(';'));
      stack.remove_prefix(std::min(frame.size() + 1, stack.size()));
      if (frame.find(".py:") != std::string_view::npos) frames.append(";").append(frame);
    }
    found.insert(std::move(frames));
  }
  return found;
}

}  // namespace

bool lie_within_one_call(const std::vector<std::string_view>& repeated,
                         const std::vector<std::string_view>& others) {
  constexpr std::string_view kCall = " _call_impl";  // A frame of a torch.nn.Module call.
  const auto common_end = [](std::string_view a, std::string_view b) {
    const auto [in_a, in_b] = std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend());
    return a.substr(a.size() - static_cast<std::size_t>(in_a - a.rbegin()));
  };
  const std::set<std::string> inner = python_frames(repeated);
  if (inner.empty()) return false;
  std::string_view outer = *inner.begin();  // Outermost frames come last.
  for (const std::string& stack : inner) outer = common_end(outer, stack);
  const std::size_t root = outer.rfind(kCall);
  if (root == std::string_view::npos || outer.find(kCall) == root) return false;
  const std::set<std::string> rest = python_frames(others);
  return std::any_of(rest.begin(), rest.end(), [&](const std::string& stack) {
    const std::size_t shared = common_end(outer, stack).size();
    return shared >= outer.size() - root && shared < outer.size();
  });
}

}  // namespace foretrace::infer_detail
