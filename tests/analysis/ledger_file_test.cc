#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "foretrace/error.h"
#include "foretrace/ledger.h"
#include "support/folder.h"

namespace foretrace {
namespace {

/// A file of this name in a folder that the destructor deletes.
class LedgerFile : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(path_) << text; }

  /// The text without the path in front.
  std::string error_of(const std::string& text) const {
    write(text);
    try {
      read_ledger(path_);
      return "no error";
    } catch (const Error& error) {
      return std::string(error.what()).substr(path_.size() + 2);
    }
  }

  Folder folder_;
  std::string path_ = folder_ / "ledger.json";
};

TEST_F(LedgerFile, WhatIsAddedIsRead) {
  append_to_ledger(path_, {outcome_of({"amp"}, 96ms, 100ms, "BERT")});
  append_to_ledger(path_, {outcome_of({"loader:workers=4", "amp"}, 3ms, 2ms)});
  const std::vector<KnownOutcome> read = read_ledger(path_);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_NEAR(read[0].error, -0.04, 1e-12);
  EXPECT_EQ(read[0].note, "BERT");
  EXPECT_EQ(read[1].transforms, (std::vector<std::string>{"loader:workers=4", "amp"}));
  EXPECT_EQ(read[1].measured, 2ms);
}

TEST_F(LedgerFile, WritingPutsANewOneInItsPlace) {
  append_to_ledger(path_, {outcome_of({"amp"}, 96ms, 100ms)});
  write_ledger(path_, {});
  EXPECT_TRUE(read_ledger(path_).empty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1);
}

TEST_F(LedgerFile, AnErrorMayStandAlone) {
  write(R"({"schema": "foretrace.ledger/1", "entries": [{"transforms": ["amp"], "error": 0.25}]})");
  EXPECT_DOUBLE_EQ(read_ledger(path_).at(0).error, 0.25);
}

TEST_F(LedgerFile, NothingIsAddedToWhatIsNoLedger) {
  write("[1, 2]");
  EXPECT_THROW(append_to_ledger(path_, {outcome_of({"amp"}, 96ms, 100ms)}), Error);
  std::ifstream file(path_);
  std::string text;
  std::getline(file, text);
  EXPECT_EQ(text, "[1, 2]");
}

TEST_F(LedgerFile, WhatWouldNotBeReadBackIsNotAdded) {
  write(R"({"schema": "foretrace.ledger/1", "entries": []})");
  EXPECT_THROW(append_to_ledger(path_, {outcome_of({"amp"}, 1000s, 100ms)}), Error);
  EXPECT_THROW(append_to_ledger(path_, {outcome_of({"nonsense"}, 96ms, 100ms)}), Error);
  EXPECT_TRUE(read_ledger(path_).empty());
}

TEST_F(LedgerFile, SaysWhatIsWrong) {
  const auto entry = [](const std::string& text) {
    return R"({"schema": "foretrace.ledger/1", "entries": [)" + text + "]}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"{}", "schema: must be \"foretrace.ledger/1\""},
      {"[]", "must be an object with \"schema\" and \"entries\""},
      {R"({"schema": "foretrace.ledger/1"})", "entries: must be a list"},
      {R"({"schema": "foretrace.ledger/1", "entires": []})",
       "there is no \"entires\" in a ledger; there are schema, entries (did you mean "
       "\"entries\"?)"},
      {entry(R"({"transforms": ["amp"]})"),
       "entries[0]: predicted_ns and measured_ns: both must be above 0 where no error is given"},
      {entry(R"({"transforms": []})"), "entries[0]: transforms: must name at least one"},
      {entry(R"({"transforms": ["apm"], "error": 0})"),
       "entries[0]: transforms: there is no transform \"apm\" (did you mean \"amp\"?)"},
      {entry(R"({"transforms": ["amp"], "error": -1})"),
       "entries[0]: error: must be above -1 and at most 99, as predicted / measured - 1; got "
       "-1.000"},
      {entry(R"({"transforms": ["amp"], "error": 100})"),
       "entries[0]: error: must be above -1 and at most 99, as predicted / measured - 1; got "
       "100.000"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(error_of(text), message) << text;
}

}  // namespace
}  // namespace foretrace
