#include "import/data_frame/data_frame.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "foretrace/error.h"
#include "import/pickled_table.h"
#include "support/folder.h"

namespace foretrace {
namespace {

std::string refusal(const std::string& bytes) {
  const Folder folder;
  const std::string path = folder.write("log.pkl", bytes);
  try {
    read_timed_table(path);
  } catch (const Error& error) {
    return std::string(error.what()).substr(path.size() + 2);
  }
  return "";
}

TEST(DataFrame, IsReadWithItsTimesAndNames) {
  const Folder folder;
  const std::string path = folder.write("log.pkl", pickled::node_table());
  EXPECT_TRUE(may_be_timed_table(path));
  const TimedTable table = read_timed_table(path);
  EXPECT_EQ(table.columns, (std::vector<std::string>{"c05n06", "n2"}));
  EXPECT_EQ(table.times, (std::vector<Nanoseconds>{100s, 130s, 160s}));
  EXPECT_EQ(table.at(0, 0), 1);
  EXPECT_EQ(table.at(2, 0), 0);
  EXPECT_EQ(table.at(2, 1), 1);
  EXPECT_FALSE(may_be_timed_table(folder.write("log.csv", "time_s,joined,left\n")));
}

TEST(DataFrame, OtherPicklesAreRefusedByName) {
  EXPECT_EQ(refusal(pickled::file(pickled::called(pickled::named("os", "system"), "(t"))),
            "must be a pickle of plain data, but it wants to call os.system, which is never done, "
            "at byte 20");
  EXPECT_EQ(refusal(pickled::file("}")),
            "must be a DataFrame with values of one kind and times as its index");
  EXPECT_EQ(refusal(pickled::file(
                pickled::object(pickled::named("pandas.core.frame", "DataFrame"), "}"))),
            "must be a DataFrame with values of one kind and times as its index");
  EXPECT_EQ(refusal(pickled::node_table({1, 0})),
            "must have a value for each of 2 columns and 3 "
            "rows, has 2");
  EXPECT_EQ(refusal(pickled::node_table({1, 0, 0, 0, 0, 1}, {100, 90, 160})),
            "must have times in order, row 2 has not");
  // A pickle that is cut is an error and nothing else.
  const std::string whole = pickled::node_table();
  for (std::size_t size = 2; size < whole.size(); size += 17)
    EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
}

TEST(DataFrame, AFileThatGitDidNotFetchIsNamed) {
  const Folder folder;
  const std::string path =
      folder.write("log.pkl", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  try {
    may_be_timed_table(path);
    FAIL();
  } catch (const TraceError& error) {
    EXPECT_TRUE(std::string_view(error.what()).starts_with(path + ": must be a trace"))
        << error.what();
  }
}

}  // namespace
}  // namespace foretrace
