#include "foretrace/notes.h"

#include <gtest/gtest.h>

namespace foretrace {
namespace {

TEST(Notes, CountAndKeepTheFirstExample) {
  Notes notes;
  EXPECT_TRUE(notes.empty());
  notes.add(Severity::info, "kernels without a launch record");
  notes.add(Severity::warning, "negative durations", "line 3");
  notes.add(Severity::info, "kernels without a launch record", "gemm at 5 us", 4);
  notes.add(Severity::info, "kernels without a launch record", "relu at 7 us");
  ASSERT_EQ(notes.all().size(), 2u);
  EXPECT_EQ(notes.all()[0].text, "kernels without a launch record");
  EXPECT_EQ(notes.all()[0].count, 6);
  EXPECT_EQ(notes.all()[0].example, "gemm at 5 us");
  EXPECT_EQ(notes.count("negative durations"), 1);
  EXPECT_EQ(notes.count("something else"), 0);
}

TEST(Notes, MergeAddsCounts) {
  Notes notes, other;
  notes.add(Severity::info, "a", "first", 2);
  other.add(Severity::warning, "b", "second", 3);
  other.add(Severity::warning, "a", "third", 5);
  notes.merge(other);
  EXPECT_EQ(notes.count("a"), 7);
  EXPECT_EQ(notes.count("b"), 3);
  EXPECT_EQ(notes.all()[0].example, "first");
  EXPECT_EQ(notes.all()[0].severity, Severity::warning);
}

}  // namespace
}  // namespace foretrace
