// An execution trace has the arguments and results of ops. A storage is the block of its size that
// was made inside the op that first returned it.

#include <algorithm>
#include <map>

#include "infer/memory/memory.h"

namespace foretrace::infer_detail {
namespace {

using Uses = std::vector<std::uint32_t>;

class StorageMatcher {
 public:
  StorageMatcher(const HostTime& host, const std::vector<BlockSites>& sites,
                 const std::vector<Allocation>& blocks)
      : host_(host), sites_(sites), blocks_(blocks) {}

  std::vector<MeasuredUses> match() {
    const std::vector<TensorRecord>& tensors = host_.trace.tensors;
    for (std::uint32_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].storage != 0 && tensors[i].device >= 0)
        storages_[tensors[i].storage].push_back(i);
    }
    for (auto& [storage, uses] : storages_) {
      std::stable_sort(uses.begin(), uses.end(), [&](std::uint32_t a, std::uint32_t b) {
        return host_.trace.hosts[tensors[a].host].start_ns <
               host_.trace.hosts[tensors[b].host].start_ns;
      });
      if (tensors[uses.front()].is_output) outputs_[tensors[uses.front()].host].push_back(&uses);
    }
    std::vector<MeasuredUses> found;
    for (std::uint32_t block = 0; block < sites_.size(); ++block) {
      if (!sites_[block].made.exists()) continue;
      if (const Uses* uses = storage_of(block)) found.push_back({block, *uses});
    }
    return found;
  }

 private:
  const Uses* storage_of(std::uint32_t block) {
    constexpr int kMaxDepth = 64;
    int depth = 0;
    for (std::uint32_t at = sites_[block].made.context; at != kNone && depth < kMaxDepth;
         at = host_.contexts[at].parent, ++depth) {
      const auto found = outputs_.find(host_.contexts[at].op);
      if (found == outputs_.end()) continue;
      // An op returns few tensors.
      constexpr std::size_t kMaxTried = 64;
      const auto end = found->second.begin() +
                       static_cast<std::ptrdiff_t>(std::min(kMaxTried, found->second.size()));
      const auto match = std::find_if(found->second.begin(), end,
                                      [&](const Uses* uses) { return has_size_of(block, *uses); });
      if (match == end) continue;
      const Uses* uses = *match;
      found->second.erase(match);
      return uses;
    }
    return nullptr;
  }

  bool has_size_of(std::uint32_t block, const Uses& uses) const {
    const TensorRecord& tensor = host_.trace.tensors[uses.front()];
    return in_blocks(tensor.offset_bytes + tensor.bytes) == blocks_[block].bytes.count;
  }

  const HostTime& host_;
  const std::vector<BlockSites>& sites_;
  const std::vector<Allocation>& blocks_;
  std::map<std::int64_t, Uses> storages_;
  std::map<std::uint32_t, std::vector<const Uses*>> outputs_;  ///< By op.
};

}  // namespace

std::vector<MeasuredUses> measured_uses(const HostTime& host, const std::vector<BlockSites>& sites,
                                        const std::vector<Allocation>& blocks) {
  if (host.trace.tensors.empty()) return {};
  return StorageMatcher(host, sites, blocks).match();
}

}  // namespace foretrace::infer_detail
