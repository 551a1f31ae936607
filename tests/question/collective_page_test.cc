// The picture of `collective`: bandwidth over size, and where the algorithm changes.

#include <gtest/gtest.h>

#include <string>

#include "foretrace/answer/collective.h"
#include "support/page.h"

namespace foretrace {
namespace {

CollectiveRow row_of(std::int64_t bytes, const std::string& algorithm, double bandwidth) {
  CollectiveRow row;
  row.operation = "all_reduce", row.ranks = 8, row.bytes = Bytes{bytes}, row.algorithm = algorithm;
  row.time = row.lower = row.upper = 10us, row.bus_bandwidth = bandwidth;
  return row;
}

TEST(CollectivePage, MarksTheFirstSizeOfEachAlgorithm) {
  CollectiveReport report;
  report.rows = {row_of(1 << 10, "Tree LL", 1e9), row_of(1 << 14, "Tree LL", 2e9),
                 row_of(1 << 18, "Ring", 4e9)};
  const std::string page = html_of(report);
  for (const char* drawn :
       {"<title>Tree LL from 1 KiB on</title>", "<title>Ring from 256 KiB on</title>",
        ">Tree LL</text>", ">Ring</text>", ">1 KiB</text>", ">16 KiB</text>", ">256 KiB</text>"})
    EXPECT_NE(page.find(drawn), page.npos) << drawn;
  EXPECT_EQ(page.find("from 16 KiB on"), page.npos);
  EXPECT_EQ(page.find("measured"), page.npos);
}

TEST(CollectivePage, TheBandIsTheIntervalOfTheTime) {
  CollectiveReport report;
  report.rows = {row_of(1 << 10, "Ring", 4e9), row_of(1 << 14, "Ring", 4e9)};
  for (CollectiveRow& row : report.rows) row.lower = 5us, row.upper = 20us;
  // Half to twice the time: 8 to 2 GB/s around 4 GB/s, at the ends and the middle of the axis.
  const std::string page = html_of(report);
  EXPECT_NE(page.find("points=\"0.0,0.0 1000.0,0.0 1000.0,1000.0 0.0,1000.0 \""), page.npos);
  EXPECT_NE(page.find("points=\"0.0,500.0 1000.0,500.0 \""), page.npos);
}

}  // namespace
}  // namespace foretrace
