#include "import/holds_trace.h"

#include <gtest/gtest.h>

#include "import/files.h"

namespace foretrace {
namespace {

TEST(HoldsTrace, KnowsWhatWouldBeReadInAFolder) {
  const Folder folder;
  EXPECT_TRUE(holds_trace(folder.write("a.json", R"({"schemaVersion": 1, "traceEvents": []})")));
  EXPECT_TRUE(holds_trace(folder.write("b.json", R"([{"ph": "X"}])")));
  EXPECT_TRUE(holds_trace(folder.write("c.json", R"({"distributedInfo": {"rank": 1}, )")));
  EXPECT_TRUE(holds_trace(folder.write("d.pickle", "\x80\x04}.")));
}

TEST(HoldsTrace, AnswersAreNoTraces) {
  const Folder folder;
  EXPECT_FALSE(holds_trace(folder.write("a.txt", "step time 3 ms\n")));
  EXPECT_FALSE(holds_trace(folder.write("b.json", R"({"schema": "foretrace.baseline/1"})")));
  EXPECT_FALSE(holds_trace(folder.write("c.html", "<!DOCTYPE html>")));
  EXPECT_FALSE(holds_trace(folder.write("empty", "")));
  EXPECT_FALSE(holds_trace(folder / "none"));
}

}  // namespace
}  // namespace foretrace
