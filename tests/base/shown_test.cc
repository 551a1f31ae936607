#include "base/shown.h"

#include <gtest/gtest.h>

#include <sstream>
#include <utility>

namespace foretrace {
namespace {

using namespace std::string_view_literals;
using Cases = std::initializer_list<std::pair<std::string_view, std::string_view>>;

/// The output when `pieces` are written through EscapedOutput.
std::string behind_wall(std::initializer_list<std::string_view> pieces) {
  std::ostringstream out;
  {
    const EscapedOutput wall(out);
    for (const std::string_view piece : pieces) out << piece << std::flush;
  }
  return out.str();
}

TEST(Shown, ControlCharactersBecomeEscapes) {
  const Cases cases = {
      {"a\x1b[31mb", "a\\u001b[31mb"},
      {"a\x07\x08\x7f", "a\\u0007\\u0008\\u007f"},
      {"a\0b"sv, "a\\u0000b"},
      {"two\nlines\r\n", "two\\nlines\\r\\n"},
      {"a\tb", "a\\tb"},
      {"\u009b31m\u0085", "\\u009b31m\\u0085"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(shown(text), expected);
}

TEST(Shown, WhatTurnsOrHidesLettersBecomesAnEscape) {
  const Cases cases = {
      {"\u202egnp.exe", "\\u202egnp.exe"},
      {"a\u2066b\u2069\u200e\u061c", "a\\u2066b\\u2069\\u200e\\u061c"},
      {"a\u2028b\u2029", "a\\u2028b\\u2029"},
      {"a\u200bb\ufeff\u00ad", "a\\u200bb\\ufeff\\u00ad"},
      {"\U000e0041", "\\udb40\\udc41"},
      {"\uffff", "\\uffff"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(shown(text), expected);
}

TEST(Shown, BytesThatAreNoTextAreShownOneByOne) {
  const Cases cases = {
      {"caf\xe9", "caf\\xe9"},
      {"\xe2\x82", "\\xe2\\x82"},
      {"\xe2\x82x", "\\xe2\\x82x"},
      {"\xc0\xaf", "\\xc0\\xaf"},                    // An overlong '/'.
      {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},           // Another overlong one.
      {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           // A surrogate.
      {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},  // Beyond the last character.
      {"\xff\x80", "\\xff\\x80"},
      {"\xf0\x9f\x1b", "\\xf0\\x9f\\u001b"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(shown(text), expected);
}

TEST(Shown, TextOfAllLanguagesStaysAsItIs) {
  for (const std::string_view text :
       {"void at::native::f<4, c10::Half>(int*)", "größer, 中文, עברית, 🚀", "C:\\a\\n", ""}) {
    EXPECT_EQ(shown(text), text);
    EXPECT_EQ(behind_wall({text}), text);
  }
}

TEST(Shown, WhatIsShownAlreadyStaysAsItIs) {
  const std::string once = shown("a\x1b\n\xff\u202e");
  EXPECT_EQ(shown(once), once);
  EXPECT_EQ(behind_wall({once}), once);
}

TEST(EscapedOutput, LinesStayLines) {
  EXPECT_EQ(behind_wall({"a\nb\tc\n"}), "a\nb\tc\n");
  EXPECT_EQ(behind_wall({"a\rb\x1b[2J\n"}), "a\\rb\\u001b[2J\n");
  EXPECT_EQ(shown_lines("a\nb\x1b\n"), "a\nb\\u001b\n");
}

TEST(EscapedOutput, CommandsOfBuildServersAreNone) {
  const Cases cases = {
      {"::error::x", ":\\u003aerror::x"},
      {"a\n  ::set-output name=x::y\n", "a\n  :\\u003aset-output name=x::y\n"},
      {"\t \u00a0\u3000::add-mask::x", "\t \u00a0\u3000:\\u003aadd-mask::x"},
      {":::x", ":\\u003a:x"},
      {"at::native ::f\n", "at::native ::f\n"},
      {"a : :b\n : :c", "a : :b\n : :c"},
      {"x ##[error]y", "x ##\\u005berror]y"},
      {"x ##vso[task.setvariable]y", "x ##vso\\u005btask.setvariable]y"},
      {"###teamcity[a]", "###teamcity\\u005ba]"},
      {"#[a] ## [b] #x[c]", "#[a] ## [b] #x[c]"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(behind_wall({text}), expected);
    EXPECT_EQ(shown_answer(text), expected);
  }
}

TEST(EscapedOutput, APieceMayEndAnywhere) {
  const std::string text = "  ::a ##vso[b] \u202e caf\xc3\xa9 \xff\x1b\n::c\n";
  const std::string whole = behind_wall({text});
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::string_view all = text;
    EXPECT_EQ(behind_wall({all.substr(0, i), all.substr(i)}), whole) << i;
  }
  std::ostringstream out;
  {
    const EscapedOutput wall(out);
    for (const char c : text) out.put(c);
  }
  EXPECT_EQ(out.str(), whole);
}

TEST(EscapedOutput, ACharacterWithoutItsEndIsNotLost) {
  EXPECT_EQ(behind_wall({"a\xe2\x82"}), "a\\xe2\\x82");
}

TEST(EscapedOutput, OurOwnCommandsPassAndHideNothing) {
  std::ostringstream out;
  {
    const EscapedOutput wall(out);
    {
      const CommandPassthrough commands(out);
      out << "::error title=a::b\x1b ##[c]\n";
    }
    out << "::error::c\n";
  }
  out << "::d\n";
  EXPECT_EQ(out.str(), "::error title=a::b\\u001b ##\\u005bc]\n:\\u003aerror::c\n::d\n");
}

TEST(EscapedOutput, AStreamThatFailedHasFailedBehindTheWall) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  {
    const EscapedOutput wall(out);
    EXPECT_TRUE(out.bad());
  }
  EXPECT_TRUE(out.bad());
}

TEST(MarkdownText, ShowsItLiterally) {
  const Cases cases = {
      {"<img src=x>", "&lt;img src=x>"},
      {"<!-- a -->", "&lt;!-- a -->"},
      {"[x](javascript:y)", "\\[x\\](javascript:y)"},
      {"![x](y)", "!\\[x\\](y)"},
      {"a*b`d`~e~$f$", "a\\*b\\`d\\`\\~e\\~\\$f\\$"},
      {"_a_ b_c d__e", "\\_a\\_ b_c d\\_\\_e"},
      {"a|b\\|c", "a\\|b\\\\\\|c"},
      {"&lt;", "&amp;lt;"},
      {"two\n# lines", "two\\\\n# lines"},
      {"# x", "\\# x"},
      {"  # x", "\\# x"},
      {"> x", "\\> x"},
      {"- x", "\\- x"},
      {"---", "\\---"},
      {"12. x", "12\\. x"},
      {"1) x", "1\\) x"},
      {"-5 %, +3 ms, 1.5 s", "-5 %, +3 ms, 1.5 s"},
      {"1 -> 2", "1 -> 2"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(markdown_text(text), expected);
}

TEST(MarkdownText, LinksNothingByItself) {
  const Cases cases = {
      {"@name", "@<!-- -->name"},
      {"a@b.c", "a@<!-- -->b.c"},
      {"a @ b", "a @ b"},
      {"http://a", "http:<!-- -->//a"},
      {"www.a.b", "www.<!-- -->a.b"},
      {"see #12", "see #<!-- -->12"},
      {"(a/b#12)", "(a/b#<!-- -->12)"},
      {"ProfilerStep#12", "ProfilerStep#12"},
      {"at::f", "at::f"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(markdown_text(text), expected);
}

TEST(MarkdownCell, WhatOnlyBeginsABlockStays) {
  for (const std::string_view text : {"-", "+5 %", "1.", "> 3"})
    EXPECT_EQ(markdown_cell(text), text);
}

TEST(CsvCell, IsNoFormula) {
  const Cases cases = {
      {"=1+1", "'=1+1"},
      {"+x", "'+x"},
      {"-x", "'-x"},
      {"@x", "'@x"},
      {"\uff1dx", "'\uff1dx"},
      {"'=x", "''=x"},
      {"-1+1", "'-1+1"},
      {"-inf", "'-inf"},
      {"-5", "-5"},
      {"-1.5e-3", "-1.5e-3"},
      {"a=b", "a=b"},
      {"'a", "'a"},
      {"", ""},
      {"\t=x", "\\t=x"},
      {"a\r\nb", "a\\r\\nb"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(csv_cell(text), expected);
}

TEST(CsvCell, IsReadBackAsTheTextItWas) {
  for (const std::string_view text : {"=1+1", "-5", "'=x", "''-x", "'a", "", "'", "x", "\uff20x"})
    EXPECT_EQ(text_of_csv_cell(csv_cell(text)), text);
}

}  // namespace
}  // namespace foretrace
