#include "import/scan/json_scan.h"

#include <gtest/gtest.h>

#include <optional>

#include "import/scan/text_window.h"

namespace foretrace {
namespace {

JsonValue json_number(const std::string& text) {
  return {.begin = text.data(),
          .size = static_cast<std::uint32_t>(text.size()),
          .kind = ValueKind::number};
}

std::optional<std::int64_t> nanoseconds(const std::string& text) {
  ExactTime time;
  if (!to_nanoseconds(json_number(text), 4'000'000'000'000'000'000, time)) return std::nullopt;
  return time.ns;
}

TEST(Nanoseconds, AreExact) {
  const std::pair<const char*, std::int64_t> cases[] = {
      {"0", 0},
      {"1", 1000},
      {"-3", -3000},
      {"1669783687464181", 1669783687464181000},
      {"1712195495520871.001", 1712195495520871001},
      {"4.123999999999967", 4124},
      {"0.5319999999999254", 532},
      {"434.706", 434706},
      {"1e3", 1000000},
      {"1.5e-3", 2},
      {"1.4e-3", 1},
      {"2.5E+2", 250000},
      {"0.0004999999999999999999999", 0},
      {"0.00051", 1},
      {"1e-400", 0},
      {"0e400", 0},
      {"00012", 12000},
      {"3999999999999999.999", 3999999999999999999},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(nanoseconds(text), expected) << text;
}

TEST(Nanoseconds, ThatAreNoneOrTooMany) {
  for (const char* text : {"", "-", ".", "1.2.3", "1e", "1e+", "x", "1x", "5000000000000000",
                           "1e300", "99999999999999999999", "1e99999999999999999999"}) {
    EXPECT_EQ(nanoseconds(text), std::nullopt) << text;
  }
}

TEST(Integers, WrapAround) {
  EXPECT_EQ(to_integer(json_number("-7")), -7);
  EXPECT_EQ(to_integer(json_number("7.9")), 7);
  EXPECT_EQ(to_integer(json_number("18446744073709551615")), -1);
  EXPECT_EQ(to_integer(json_number("-9223372036854775808")),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_FALSE(is_integer(json_number("x")));
  EXPECT_FALSE(is_integer(json_number("")));
}

std::string scanned(std::string text) {
  const std::size_t size = text.size();
  text.resize(size + TextWindow::kPadding, '\0');
  JsonCursor cursor(text.data(), text.data() + size);
  JsonValue value;
  if (!cursor.scan_value(value)) return cursor.ran_out ? "ran out" : "bad";
  return std::string(value.view()) + "|" +
         std::string(cursor.at, static_cast<std::size_t>(cursor.end - cursor.at));
}

TEST(JsonCursor, FindsTheEndOfAValue) {
  EXPECT_EQ(scanned(R"( "a\"b" ,1)"), R"(a\"b| ,1)");
  EXPECT_EQ(scanned("12.5e3,"), "12.5e3|,");
  EXPECT_EQ(scanned("true}"), "true|}");
  EXPECT_EQ(scanned(R"([1, {"a]": "}"}, []] x)"), R"([1, {"a]": "}"}, []]| x)");
  EXPECT_EQ(scanned("\"" + std::string(100, 'x') + "\"!"), std::string(100, 'x') + "|!");
}

TEST(JsonCursor, SaysWhereMoreTextWouldHelp) {
  for (const char* text :
       {"", "  ", "\"abc", "\"abc\\", "\"abc\\\"", "[1, 2", "[\"]", "12", "{\"a\": [}"}) {
    EXPECT_EQ(scanned(text), "ran out") << text;
  }
  for (const char* text : {",", "}", ":"}) EXPECT_EQ(scanned(text), "bad") << text;
}

std::string decoded(const std::string& text, std::int64_t expected_invalid = 0) {
  std::int64_t invalid = 0;
  JsonValue value = json_number(text);
  value.kind = ValueKind::text;
  const std::string result = decode_text(value, invalid);
  EXPECT_EQ(invalid, expected_invalid) << text;
  return result;
}

TEST(DecodeText, UndoesEscapes) {
  EXPECT_EQ(decoded(R"(\b\f\n\r\t\"\\\/)"), "\b\f\n\r\t\"\\/");
  EXPECT_EQ(decoded(R"(\u00e9\u20ac\ud83d\ude00)"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(decoded(R"(\ud83d)"), "\xef\xbf\xbd");
  EXPECT_EQ(decoded(R"(\ud83dx\u12)"),
            "\xef\xbf\xbdx\xef\xbf\xbd"
            "12");
}

TEST(DecodeText, ReplacesInvalidBytes) {
  const std::string replacement = "\xef\xbf\xbd";
  EXPECT_EQ(decoded("\xff", 1), replacement);
  EXPECT_EQ(decoded("a\x80z", 1), "a" + replacement + "z");
  EXPECT_EQ(decoded("\xed\xa0\x80", 1), replacement + replacement + replacement);
  EXPECT_EQ(decoded("\xc0\xaf", 1), replacement + replacement);
  EXPECT_EQ(decoded("\xf0\x9f\x98", 1), replacement + replacement + replacement);
  EXPECT_EQ(decoded("\xf4\x8f\xbf\xbf"), "\xf4\x8f\xbf\xbf");
}

}  // namespace
}  // namespace foretrace
