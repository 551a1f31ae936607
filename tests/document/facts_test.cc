#include "document/words/facts.h"

#include <gtest/gtest.h>

#include <optional>
#include <sstream>

namespace foretrace {
namespace {

struct Lap {
  std::string name;
  std::optional<Nanoseconds> time;
  std::string refused;
};

Facts lap_facts(const Lap& lap) {
  Facts times;
  times.fact("best_ns", lap.time).detail("unit", "ns");
  Facts facts;
  facts.fact("name", lap.name).column("words", lap.name.size()).detail("size", Bytes{5});
  facts.when(lap.refused.empty()).object("times", "lap_", times).fact("share", 0.25);
  facts.when(!lap.refused.empty()).fact("refused", lap.refused);
  return facts;
}

TEST(Facts, AreNamedOnceForJsonAndCsv) {
  const std::vector<Lap> laps = {{"a, \"b\"", 7ns, ""}, {"two\nlines", {}, ""}, {"c", 1ns, "late"}};
  EXPECT_EQ(rows_json(laps, lap_facts),
            nlohmann::json::parse(
                R"([{"name":"a, \"b\"","size":5,"times":{"best_ns":7,"unit":"ns"},"share":0.25},
                    {"name":"two\nlines","size":5,"times":{"best_ns":null,"unit":"ns"},"share":0.25},
                    {"name":"c","size":5,"refused":"late"}])"));
  std::ostringstream out;
  write_rows(laps, lap_facts, out);
  EXPECT_EQ(out.str(),
            "name,words,lap_best_ns,share,refused\n"
            "\"a, \"\"b\"\"\",6,7,0.25,\n"
            "two\\nlines,9,,0.25,\n"
            "c,1,,,late\n");
}

TEST(Facts, HaveAHeadingWithoutRows) {
  std::ostringstream out;
  write_rows(std::vector<Lap>{}, lap_facts, out);
  EXPECT_EQ(out.str(), "name,words,lap_best_ns,share,refused\n");
}

TEST(Facts, AreNullIfTheyAreNotKnown) {
  EXPECT_EQ(unless_default(0.0), nullptr);
  EXPECT_EQ(unless_default(std::string()), nullptr);
  EXPECT_EQ(unless_default(Bytes{3}), 3);
}

}  // namespace
}  // namespace foretrace
