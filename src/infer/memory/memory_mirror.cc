// A compiled program has one op for a whole forward pass, and one autograd node for its backward
// pass. The backward pass runs in reverse order:
//
//     forward     a   relu  b   tanh  c        k-th from the front
//     backward    c' tanh_backward b' relu_backward a'        k-th from the end
//
// Ops whose names match are paired if both passes have equally many of them; ops
// between two pairs are spread evenly. Sources: PyTorch's naming of backward ops
// (aten::X_backward); the autograd engine runs nodes in the reverse order of their creation, and
// compilers trace exactly that.

#include <algorithm>
#include <map>
#include <string>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {
namespace {

/// Returns the forward op of a backward op: aten::sigmoid for "aten::sigmoid_backward",
/// aten::_softmax for "aten::_softmax_backward_data".
std::string_view forward_of(std::string_view op) {
  if (op.starts_with("aten::threshold_backward")) return "aten::relu";
  const std::size_t at = op.rfind("_backward");
  return at == op.npos ? std::string_view{} : op.substr(0, at);
}

struct WorkPair {
  std::uint32_t forward = 0, backward = 0;
};

class Mirror {
 public:
  Mirror(const HostTime& host, const LaunchedWork& work, const WorkRange& forward,
         const WorkRange& backward)
      : host_(host), work_(work), forward_(forward), backward_(backward) {}

  std::vector<std::uint32_t> find() const {
    const std::vector<WorkPair> pairs = in_opposite_order(matching_pairs());
    std::vector<std::uint32_t> mirrored;
    WorkPair from{forward_.first, backward_.last - 1};
    std::size_t next = 0;
    for (std::uint32_t i = forward_.first; i < forward_.last; ++i) {
      while (next < pairs.size() && pairs[next].forward <= i) from = pairs[next++];
      const WorkPair to =
          next < pairs.size() ? pairs[next] : WorkPair{forward_.last, backward_.first};
      const std::uint64_t gone = i - from.forward, way = to.forward - from.forward;
      const auto back = static_cast<std::uint64_t>(from.backward - to.backward) * gone / way;
      mirrored.push_back(from.backward - static_cast<std::uint32_t>(back));
    }
    return mirrored;
  }

 private:
  std::vector<WorkPair> matching_pairs() const {
    std::map<std::string, std::vector<std::uint32_t>, std::less<>> backward;
    for (std::uint32_t i = backward_.first; i < backward_.last; ++i) {
      for_each_op(backward_.thread, i, [&](std::string_view op) {
        const std::string_view forward = forward_of(op);
        if (!forward.empty()) add(backward[std::string(forward)], i);
      });
    }
    std::map<std::string, std::vector<std::uint32_t>, std::less<>> forward;
    for (std::uint32_t i = forward_.first; i < forward_.last; ++i) {
      for_each_op(forward_.thread, i, [&](std::string_view op) {
        if (op.ends_with('_') && !op.ends_with("__")) op.remove_suffix(1);
        if (const auto found = backward.find(op); found != backward.end())
          add(forward[found->first], i);
      });
    }
    std::vector<WorkPair> pairs;
    for (const auto& [op, works] : forward) {
      const std::vector<std::uint32_t>& others = backward.find(op)->second;
      if (works.size() != others.size()) continue;
      for (std::size_t k = 0; k < works.size(); ++k) {
        pairs.push_back({works[k], others[others.size() - 1 - k]});
      }
    }
    return pairs;
  }

  static void add(std::vector<std::uint32_t>& works, std::uint32_t work) {
    if (works.empty() || works.back() != work) works.push_back(work);
  }

  void for_each_op(std::uint16_t thread, std::uint32_t number,
                   const std::function<void(std::string_view)>& visit) const {
    // Depth of nested ops below the op that represents the whole pass.
    constexpr int kMaxDepth = 8;
    int depth = 0;
    for (std::uint32_t at = work_.works(thread)[number].context; at != kNone && depth < kMaxDepth;
         at = host_.contexts[at].parent, ++depth) {
      if (host_.contexts[at].op == kNone) break;
      visit(host_.name(host_.trace.hosts[host_.contexts[at].op]));
    }
  }

  /// Returns the largest set of pairs whose order in the forward pass is the reverse of that in the
  /// backward pass.
  static std::vector<WorkPair> in_opposite_order(std::vector<WorkPair> pairs) {
    std::sort(pairs.begin(), pairs.end(), [](const WorkPair& a, const WorkPair& b) {
      return a.forward != b.forward ? a.forward < b.forward : a.backward < b.backward;
    });
    constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
    // `ends` is by length of the chain.
    std::vector<std::size_t> ends, before(pairs.size(), kNobody);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const auto at = std::partition_point(ends.begin(), ends.end(), [&](std::size_t end) {
        return pairs[end].backward > pairs[i].backward;
      });
      if (at != ends.begin()) before[i] = *std::prev(at);
      if (at == ends.end()) {
        ends.push_back(i);
      } else {
        *at = i;
      }
    }
    std::vector<WorkPair> chain;
    for (std::size_t i = ends.empty() ? kNobody : ends.back(); i != kNobody; i = before[i]) {
      chain.push_back(pairs[i]);
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  const HostTime& host_;
  const LaunchedWork& work_;
  const WorkRange& forward_;
  const WorkRange& backward_;
};

}  // namespace

std::vector<std::uint32_t> mirror_works(const HostTime& host, const LaunchedWork& work,
                                        const WorkRange& forward, const WorkRange& backward) {
  if (forward.first >= forward.last || backward.first >= backward.last) return {};
  return Mirror(host, work, forward, backward).find();
}

bool runs_passes(const HostTime& host, const LaunchedWork& work, const WorkRange& backward) {
  constexpr int kMaxDepth = 64;
  for (std::uint32_t i = backward.first; i < backward.last; ++i) {
    int calls = 0, depth = 0;
    for (std::uint32_t at = work.works(backward.thread)[i].context;
         at != kNone && depth < kMaxDepth; at = host.contexts[at].parent, ++depth) {
      const std::uint32_t op = host.contexts[at].op;
      if (op == kNone || !runs_node(host.name(host.trace.hosts[op]))) continue;
      // Several nested contexts may have the same op; it counts once.
      const std::uint32_t parent = host.contexts[at].parent;
      if (parent == kNone || host.contexts[parent].op != op) ++calls;
    }
    if (calls > 1) return true;
  }
  return false;
}

}  // namespace foretrace::infer_detail
