// If a gradient already exists, autograd's last node adds the new gradient to it and frees the new
// one:
//
//     AccumulateGrad  [ aten::add_(gradient, new) ]   frees `new`
//
// So `new` is a gradient, and a gradient and a parameter of its size persist from step to step.
// This needs no shapes. If several gradients are one tensor, or views of one, nothing is freed, and
// nothing is inferred.

#include <algorithm>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {

GradientSums::GradientSums(const HostTime& host) {
  const Trace& trace = host.trace;
  const NameId node_name = trace.names.find("torch::autograd::AccumulateGrad");
  const NameId add = trace.names.find("aten::add_");
  adds_.resize(trace.hosts.size(), 0);
  // By context: context of the surrounding node.
  std::vector<std::uint32_t> node(host.contexts.size(), kNone);
  for (std::uint32_t i = 0; i < host.contexts.size(); ++i) {
    const Context& context = host.contexts[i];
    if (context.parent != kNone) node[i] = node[context.parent];
    if (context.op == kNone) continue;
    const HostRecord& op = trace.hosts[context.op];
    if (context.phase == Phase::forward) begins_.push_back(op.start_ns);
    if (op.name == NameId{}) continue;
    if (op.name == node_name) node[i] = i;
    if (op.name != add || node[i] == kNone) continue;
    const Context& around = host.contexts[node[i]];
    adds_[around.op] = 1;
    if (around.parent == kNone || host.contexts[around.parent].op == kNone) continue;
    const std::uint32_t call = host.contexts[around.parent].op;
    if (runs_node(host.name(trace.hosts[call]))) adds_[call] = 1;
  }
  std::sort(begins_.begin(), begins_.end());
}

bool GradientSums::frees(const BlockSites& sites) const {
  return sites.made.exists() && sites.freed.exists() && sites.made.phase == Phase::backward &&
         sites.freed.node != kNone && adds_[sites.freed.node] != 0;
}

std::vector<std::vector<std::uint32_t>> GradientSums::passes(
    const std::vector<BlockSites>& sites) const {
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t i = 0; i < sites.size(); ++i) {
    if (frees(sites[i])) blocks.push_back(i);
  }
  std::stable_sort(blocks.begin(), blocks.end(), [&](std::uint32_t a, std::uint32_t b) {
    return sites[a].freed.time < sites[b].freed.time;
  });
  std::vector<std::vector<std::uint32_t>> found;
  std::ptrdiff_t pass = -1;
  for (const std::uint32_t block : blocks) {
    const auto begun =
        std::upper_bound(begins_.begin(), begins_.end(), sites[block].freed.time) - begins_.begin();
    if (begun != pass) found.emplace_back();
    pass = begun;
    found.back().push_back(block);
  }
  return found;
}

}  // namespace foretrace::infer_detail
