#include <gtest/gtest.h>

#include "question/sweep/columns.h"

namespace foretrace {
namespace {

using Labels = std::vector<std::string>;

TEST(SweepLabels, SayWhatASettingChanges) {
  SweepHeader header;
  header.settings = {"transforms[0].factor", "transforms[1].factor", "loader.workers",
                     "memory.limit"};
  header.scenario_json = R"({"transforms": [
      {"use": "scale", "factor": 1, "where": {"kind": "kernel", "name": "/softmax/", "phase": "any"}},
      {"use": "scale", "factor": 1, "where": {"kind": "any", "layer": "2-5"}},
      {"use": "loader", "workers": 4}]})";
  EXPECT_EQ(setting_labels(header),
            (Labels{"factor of scale (kernel, /softmax/)", "factor of scale (layer 2-5)",
                    "loader.workers", "memory.limit"}));
}

TEST(SweepLabels, AreTheSettingsWhereTheyTellNothingApart) {
  SweepHeader header;
  header.settings = {"transforms[0].factor", "transforms[1].factor", "transforms[7].factor"};
  header.scenario_json = R"({"transforms": [{"use": "scale"}, {"use": "scale"}]})";
  EXPECT_EQ(setting_labels(header), header.settings);
  header.scenario_json = "broken";
  EXPECT_EQ(setting_labels(header), header.settings);
}

}  // namespace
}  // namespace foretrace
