// Real traces, if FORETRACE_CORPUS names a folder of them: every file is read or refused, and a
// trace has the numbers of events that an independent count of the JSON gave.

#include "support/corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "foretrace/error.h"
#include "foretrace/import.h"

namespace foretrace {
namespace {

struct Counts {
  const char* file;
  int kernels, copies, fills, runtime, driver, ops_and_annotations, memory, python, links, syncs;
};

constexpr Counts kCounts[] = {
    {"rn50-dl-v100/w0_runA.pt.trace.json.gz", 8772, 12, 312, 11923, 0, 23646, 12838, 0, 0, 0},
    {"rn50-dl-2021jan/w4.pt.trace.json.gz", 9484, 12, 352, 10692, 0, 37434, 0, 0, 0, 0},
    {"rn50-autograd-api/w0.pt.trace.json.gz", 9329, 338, 466, 15754, 0, 33535, 0, 0, 0, 0},
    {"tinylm-ladder/trace_04.json", 1145, 0, 259, 1071, 580, 3175, 0, 0, 20, 0},
    {"tinylm-ladder/trace_06.json", 1081, 0, 130, 145, 0, 1270, 0, 0, 20, 0},
    {"vit-int8/vitl_int8.json.gz", 1470, 5, 0, 62, 0, 55, 0, 0, 0, 0},
    {"pinned-copy/pageable_sync.json", 0, 20, 0, 51, 0, 170, 0, 0, 0, 0},
    {"nanogpt-8rank/rank0.json.gz", 2917, 542, 353, 3023, 2236, 9040, 0, 0, 8, 0},
    {"torchrec-straggler/nosleep_rank2.json", 598, 33, 66, 1618, 0, 4449, 0, 0, 114, 0},
    {"megatron-tp2/kineto_1.pt.trace.json", 217, 28, 0, 724, 13, 1880, 0, 0, 91, 0},
    {"dlrm-8rank/dlrm_kineto.tar.gz:dlrm_kineto/worker3_step_12.1694128201557.pt.trace.json", 315,
     16, 6, 541, 0, 1673, 0, 0, 0, 0},
    {"param-resnet/resnet_kineto.json.gz", 9628, 123, 362, 25928, 0, 39506, 0, 0, 0, 0},
    {"hta-dlrm-a100/control.json.gz", 8568, 228, 654, 24692, 0, 40794, 0, 0, 0, 0},
    {"hta-resnet-ddp-a100/nccl_data.json.gz", 2700, 960, 114, 8740, 0, 14388, 0, 0, 543, 0},
    {"hta-resnet-v100-ns/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 4350, 1600, 145, 15329, 0,
     23980, 0, 0, 905, 0},
    {"hta-ddp-v100-mem/df_index_resolver.json.gz", 19370, 2040, 880, 42373, 0, 58715, 28010, 0, 0,
     0},
    {"hta-sampled-128/sampled_rank-1.json.gz", 1104, 40, 10, 1154, 0, 2367, 0, 0, 0, 0},
    {"hta-small/simple_add_cp.json.gz", 79, 16, 3, 331, 0, 367, 0, 0, 0, 41},
    {"hta-small/event_sync_multi_stream.json.gz", 3, 0, 3, 39, 0, 6, 0, 0, 0, 5},
    {"hta-small/cpu_only_rank34.json.gz", 0, 0, 0, 0, 0, 7479, 0, 0, 55, 0},
    {"hta-small/mi250_minitoy_train_ROCm6_2_kineto.json.gz", 14, 2, 0, 21, 0, 73, 0, 0, 4, 0},
    {"dev-pair-h100-mi300/qwen05b_h100.json.gz", 1465, 1, 241, 1921, 1, 4187, 2450, 4262, 0, 0},
    {"dev-pair-h100-mi300/qwen05b_mi300.json.gz", 1516, 1, 0, 1707, 0, 4620, 2692, 4266, 0, 0},
    {"mi210-gpu-only/gpu_only_trace.json.gz", 562, 0, 0, 631, 0, 0, 0, 0, 0, 0},
    {"switch-moe-mem/trace.json", 494, 30, 10, 858, 0, 2474, 1070, 4490, 0, 0},
    {"ptf-batch/single_epoch_forward_pass_batch_size_64.json", 549, 16, 0, 758, 2, 2876, 996, 0, 0,
     0},
    {"mini-train-mem/run1_a.json", 48, 0, 0, 109, 0, 285, 126, 758, 0, 0},
    {"legacy-autograd-list/0_trace.json", 0, 0, 0, 0, 0, 1866, 0, 0, 0, 0},
    {"byteps-sample/timeline_worker.json", 0, 0, 0, 0, 0, 986, 0, 0, 0, 0},
};

class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("FORETRACE_CORPUS");
    if (folder == nullptr) GTEST_SKIP() << kNoCorpus;
    folder_ = folder;
  }

  /// Finds plain files that may also be stored compressed. Empty if the corpus has no such file.
  std::string path(const std::string& file) const {
    const std::string path = folder_ + "/" + file;
    for (const std::string& candidate : {path, path + ".gz"}) {
      const std::size_t member = candidate.find(".tar.gz:");
      if (std::filesystem::exists(member == std::string::npos ? candidate
                                                              : candidate.substr(0, member + 7))) {
        return candidate;
      }
    }
    return {};
  }

  std::string folder_;
};

template <class Rows, class Kind>
int number_of(const Rows& rows, Kind kind) {
  return static_cast<int>(
      std::count_if(rows.begin(), rows.end(), [&](const auto& row) { return row.kind == kind; }));
}

TEST_F(Corpus, NumbersOfEventsAreRight) {
  for (const Counts& counts : kCounts) {
    SCOPED_TRACE(counts.file);
    const std::string file = path(counts.file);
    if (file.empty()) continue;
    const Trace trace = import_trace(file);
    EXPECT_EQ(number_of(trace.devices, DeviceKind::kernel), counts.kernels);
    EXPECT_EQ(number_of(trace.devices, DeviceKind::copy), counts.copies);
    EXPECT_EQ(number_of(trace.devices, DeviceKind::fill), counts.fills);
    EXPECT_EQ(number_of(trace.hosts, HostKind::runtime), counts.runtime);
    EXPECT_EQ(number_of(trace.hosts, HostKind::driver), counts.driver);
    EXPECT_EQ(number_of(trace.hosts, HostKind::op) + number_of(trace.hosts, HostKind::annotation),
              counts.ops_and_annotations);
    EXPECT_EQ(number_of(trace.hosts, HostKind::python), counts.python);
    EXPECT_EQ(static_cast<int>(trace.memory.size()), counts.memory);
    EXPECT_EQ(static_cast<int>(trace.links.size()), 2 * counts.links);
    EXPECT_EQ(static_cast<int>(trace.syncs.size()), counts.syncs);
  }
}

TEST_F(Corpus, EveryFileIsReadOrRefused) {
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    try {
      read += static_cast<int>(import_all(entry.path().string()).size());
    } catch (const TraceError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      EXPECT_EQ(message.find(entry.path().string()), 0U) << message;
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace foretrace
