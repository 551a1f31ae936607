#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "foretrace/job.h"
#include "foretrace/question/advise.h"
#include "foretrace/question/examine.h"
#include "import/files.h"

namespace foretrace {
namespace {

/// A recording whose steps load for `load` us and then compute on the host for 100 us; a fifth of
/// them take five times as long.
std::string loading_steps(int load) {
  std::ostringstream out;
  out << R"({"schemaVersion": 1, "traceEvents": [{"ph": "M", "name": "process_name", "pid": 1})";
  const auto event = [&](const char* category, const std::string& name, int start, int duration) {
    out << R"(, {"ph": "X", "cat": ")" << category << R"(", "name": ")" << name
        << R"(", "pid": 1, "tid": 1, "ts": )" << start << R"(, "dur": )" << duration << "}";
  };
  int time = 1000;
  for (int step = 0; step < 15; ++step) {
    const int times = step % 5 == 2 ? 5 : 1;
    const int all = times * (load + 100);
    event("user_annotation", "ProfilerStep#" + std::to_string(step), time, all);
    event("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", time,
          times * load);
    event("cpu_op", "aten::mm", time + times * load, times * 100);
    time += all;
  }
  out << "]}";
  return out.str();
}

struct Examined {
  explicit Examined(int load) {
    const Folder folder;
    folder.write("trace.json", loading_steps(load));
    const std::string path = folder.path() + "/trace.json";
    input = examine_input(path, {});
    advice = advise(Job(path), {});
  }
  InputReport input;
  Advice advice;
};

TEST(Input, IsTheBottleneckOnlyIfAdviseSaysSo) {
  for (const int load : {40, 400}) {
    SCOPED_TRACE(load);
    const Examined found(load);
    EXPECT_EQ(found.input.bound.part, load == 40 ? PathPart::host : PathPart::input);
    EXPECT_EQ(found.input.bound.part, found.advice.bound.part);
    EXPECT_EQ(found.input.bound.without, found.advice.bound.without);
  }
}

// A worker hands a batch over in 1 ms, and a step then takes 1.1 ms.
TEST(Input, ProposesNoWorkersThatMakeStepsLonger) {
  const Examined found(40);
  EXPECT_EQ(found.input.workers, std::nullopt);
  EXPECT_GT(found.input.with_workers, found.input.replayed);
  EXPECT_EQ(Examined(4000).input.workers, 4);
}

TEST(Input, LosesNoMoreThanAStepTakes) {
  const Examined found(4000);
  const InputStalls::StallTime& loading = found.input.stalls.unknown;
  EXPECT_EQ(found.input.replayed, 4100us);
  EXPECT_EQ(loading.stall + loading.hidden, 4000us);
}

}  // namespace
}  // namespace foretrace
