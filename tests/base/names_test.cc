#include "foretrace/names.h"

#include <gtest/gtest.h>

#include <string>

namespace foretrace {
namespace {

TEST(Names, AreNumberedInOrderOfFirstUse) {
  Names names;
  EXPECT_EQ(names.intern(""), NameId{0});
  EXPECT_EQ(names.intern("b"), NameId{1});
  EXPECT_EQ(names.intern("a"), NameId{2});
  EXPECT_EQ(names.intern("b"), NameId{1});
  EXPECT_EQ(names[NameId{2}], "a");
  EXPECT_EQ(names[NameId{0}], "");
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(names.find("a"), NameId{2});
  EXPECT_EQ(names.find("c"), NameId{0});
  EXPECT_EQ(names.size(), 3u);
}

TEST(Names, OfEveryLengthAreToldApart) {
  Names names;
  std::string text;
  for (std::uint32_t length = 1; length < 300; ++length) {
    text.push_back('x');
    EXPECT_EQ(names.intern(text), NameId{length});
    for (std::size_t i = 0; i < text.size(); ++i) {
      std::string other = text;
      other[i] = 'y';
      EXPECT_EQ(names.find(other), NameId{0}) << other;
    }
  }
}

TEST(Names, MayHoldZeroBytes) {
  Names names;
  const NameId one = names.intern(std::string_view("a\0b", 3));
  const NameId other = names.intern(std::string_view("a\0c", 3));
  EXPECT_NE(one, other);
  EXPECT_EQ(names[one], std::string_view("a\0b", 3));
}

TEST(Names, StayWhereTheyAreWhileTheTableGrowsAndMoves) {
  Names names;
  const std::string_view first = names[names.intern("first")];
  const std::string long_text(100'000, 'z');
  const NameId long_id = names.intern(long_text);
  for (int i = 0; i < 100'000; ++i) names.intern("name " + std::to_string(i));
  const Names moved = std::move(names);
  EXPECT_EQ(first, "first");
  EXPECT_EQ(moved[NameId{1}].data(), first.data());
  EXPECT_EQ(moved[long_id], long_text);
  EXPECT_EQ(moved.size(), 100'003u);
  for (std::uint32_t i = 0; i < 100'000; ++i) {
    EXPECT_EQ(moved.find("name " + std::to_string(i)), NameId{i + 3});
  }
}

TEST(Names, CloneHasTheSameNumbers) {
  Names names;
  for (const char* text : {"c", "a", "b"}) names.intern(text);
  const Names copy = names.clone();
  names.intern("d");
  ASSERT_EQ(copy.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(copy[NameId{i}], names[NameId{i}]);
}

}  // namespace
}  // namespace foretrace
