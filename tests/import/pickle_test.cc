#include "import/torch_memory/pickle.h"

#include <gtest/gtest.h>

#include <limits>

#include "import/files.h"
#include "import/plain_pickle.h"
#include "import/torch_memory/pickle_numbers.h"
#include "import/torch_memory/torch_memory.h"

namespace foretrace {
namespace {

using namespace std::string_literals;

/// The content of a pickle as JSON, or the reason why it is refused.
std::string shown(const std::string& pickle) {
  try {
    const PlainData data = read_pickle(pickle);
    return to_json_text(data, data.root, 10000);
  } catch (const TraceError& error) {
    return error.what();
  }
}

TEST(Pickle, ReadsNumbersOfAllWidths) {
  EXPECT_EQ(shown("(I1\nI-7\nI00\nI01\nL12345678901L\nL-3L\nF2.5\nl."),
            "[1,-7,false,true,12345678901,-3,2.5]");
  EXPECT_EQ(shown("(K\xff"
                  "M\x00\x01J\xff\xff\xff\xff"
                  "G\x3f\xe0\0\0\0\0\0\0"s +
                  "t."s),
            "[255,256,-1,0.5]");
  EXPECT_EQ(
      shown(
          "\x80\x02(\x8a\x00\x8a\x01\xff\x8a\x02\x00\x80\x8a\x06\x00\x00\x00\x00\x00\x40\x88\x89Nt."s),
      "[0,-1,-32768,70368744177664,true,false,null]");
  EXPECT_EQ(shown("\x80\x02\x8b\x08\0\0\0\0\0\0\0\0\0\0\x01."s), "72057594037927936");
}

TEST(Pickle, KeepsAddressesOfSixtyFourBits) {
  const PlainData data = read_pickle("\x80\x02\x8a\x09\x00\x00\x00\x00\x00\x00\x00\xff\x00."s);
  EXPECT_EQ(static_cast<std::uint64_t>(*data.integer(data.root)), 0xff00000000000000U);
  EXPECT_EQ(shown("\x80\x02\x8a\x0a\0\0\0\0\0\0\0\0\0\x01."s), "4.722366482869645e+21");
}

TEST(Pickle, ReadsTextsOfAllProtocols) {
  EXPECT_EQ(shown("(S'a\\n\\x41'\nVa\\u00e9\nt."), "[\"a\\nA\",\"a\u00e9\"]");
  EXPECT_EQ(shown("(U\x02hiT\x02\0\0\0hoX\x01\0\0\0xt."s), "[\"hi\",\"ho\",\"x\"]");
  EXPECT_EQ(shown("\x80\x04(\x8c\x01"
                  "a\x8d\x01\0\0\0\0\0\0\0"
                  "bt."s),
            "[\"a\",\"b\"]");
}

TEST(Pickle, ReadsContainersHoweverTheyAreBuilt) {
  EXPECT_EQ(shown("(lp0\nI1\naI2\na."), "[1,2]");
  EXPECT_EQ(shown("(dp0\nS'k'\nI1\ns."), "{\"k\":1}");
  EXPECT_EQ(shown("(I1\nI2\nl."), "[1,2]");
  EXPECT_EQ(shown("(S'k'\nI1\nd."), "{\"k\":1}");
  EXPECT_EQ(shown("\x80\x02](K\x01K\x02"
                  "e."),
            "[1,2]");
  EXPECT_EQ(shown("\x80\x02K\x01\x85."), "[1]");
  EXPECT_EQ(shown("\x80\x02K\x01K\x02\x86."), "[1,2]");
  EXPECT_EQ(shown("\x80\x02K\x01K\x02K\x03\x87."), "[1,2,3]");
  EXPECT_EQ(shown("\x80\x04\x8f(K\x01K\x02\x90."), "[1,2]");
  EXPECT_EQ(shown("\x80\x04(K\x05\x91."), "[5]");
}

TEST(Pickle, UsesTheMemo) {
  EXPECT_EQ(shown("\x80\x02(](K\x01"
                  "eq\x00h\x00t."s),
            "[[1],[1]]");
  EXPECT_EQ(shown("\x80\x04(\x8c\x01"
                  "a\x94h\x00t."s),
            "[\"a\",\"a\"]");
  EXPECT_EQ(shown("(lp5\nI1\nag5\n0."), "[1]");
  EXPECT_EQ(shown("\x80\x02]h\x00."s),
            "the pickle takes slot 0 of its memo, which is empty, at byte 3");
  EXPECT_EQ(shown("\x80\x02]r\xff\xff\xff\x7f."),
            "the pickle names slot 2147483647 of its memo, at byte 3");
}

TEST(Pickle, UnderstandsOrderedDictAsDict) {
  EXPECT_EQ(shown("\x80\x02"
                  "ccollections\nOrderedDict\n)R(X\x01\0\0\0kK\x01u."s),
            "{\"k\":1}");
  EXPECT_EQ(shown("\x80\x04\x8c\x0b"
                  "collections\x8c\x0b"
                  "defaultdict\x93\x8c\x08"
                  "builtins\x8c\x04"
                  "list\x93\x85R(\x8c\x01kK\x01u."s),
            "{\"k\":1}");
  EXPECT_EQ(shown("\x80\x02"
                  "c__builtin__\nset\n](K\x01"
                  "e\x85R."s),
            "[1]");
}

TEST(Pickle, NeverCallsAnything) {
  const std::string refused = "must be a pickle of plain data, but it wants to call ";
  EXPECT_EQ(shown("cos\nsystem\n(S'rm -rf ~'\ntR."),
            refused + "os.system, which is never done, at byte 0");
  EXPECT_EQ(shown("\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R."s),
            refused + "posix.system, which is never done, at byte 17");
  EXPECT_EQ(shown("(S'id'\nios\nsystem\n."), refused + "os.system, which is never done, at byte 7");
  EXPECT_EQ(shown("\x80\x02"
                  "cbuiltins\neval\n."),
            refused + "builtins.eval, which is never done, at byte 2");
  for (const std::string& bad :
       {"(o."s, "\x80\x02)\x81."s, "\x80\x02}b."s, "\x80\x02NQ."s, "Pid\n."s, "\x80\x02\x82\x01."s,
        "\x80\x02"
        "ccollections\nOrderedDict\n](](K\x01K\x02"
        "ee\x85R."s,
        "\x80\x02"
        "cbuiltins\nlist\n)R."s})
    EXPECT_TRUE(shown(bad).starts_with(refused)) << shown(bad);
  EXPECT_EQ(shown("\x80\x02"
                  "cbuiltins\nlist\n."),
            "the pickle holds a class, at byte 17");
}

TEST(Pickle, SaysWhereItIsCutOff) {
  const std::string whole = pickled::file(pickled::dict({{"a", pickled::number(5)}}));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string message = shown(whole.substr(0, size));
    EXPECT_TRUE(message.starts_with("the pickle is cut off") ||
                message.starts_with("the pickle must hold"))
        << message;
  }
  EXPECT_EQ(shown("\x80\x04\x8b\xff\xff\xff\x7fzz."),
            "the pickle is cut off: it needs 2147483647 more bytes and has 3, at byte 2");
  EXPECT_EQ(shown("\x80\x04\x95\xff\0\0\0\0\0\0\0N."s),
            "the pickle is cut off: a frame of 255 bytes has only 2, at byte 2");
  EXPECT_EQ(shown("\x80\x06N."), "the pickle must be of protocol 0 to 5, but is of 6, at byte 0");
}

TEST(Pickle, RefusesWhatDoesNotFitTogether) {
  for (const char* bad : {".", "a.", "t.", "u.", "(u.",
                          "K\x01(K\x02"
                          "e.",
                          "}(K\x01u.", "\x86.", "(K\x01\x86.", "1.", "2.", "0.", "I12x\n.",
                          "S'abc\n.", "Vabc\\u12\n.", "\xff."})
    EXPECT_TRUE(shown(bad).starts_with("the pickle ")) << shown(bad);
}

TEST(Pickle, SurvivesDeepNestingAndCycles) {
  std::string deep = "\x80\x04" + std::string(1'000'000, ']') + std::string(999'999, 'a') + ".";
  EXPECT_NO_THROW(read_pickle(deep));
  EXPECT_EQ(shown(deep), "");  // Nested more deeply than any real pickle.
  std::string marks = "\x80\x04" + std::string(1'000'000, '(') + ".";
  EXPECT_TRUE(shown(marks).starts_with("the pickle "));
  EXPECT_EQ(shown("\x80\x02]q\x00h\x00"
                  "a."s),
            "");  // A list that contains itself.
}

TEST(Pickle, CostsWhatItsBytesCostHoweverMuchIsShared) {
  // Each list contains the previous one twice: written out, 2^200 elements.
  std::string laughs = "\x80\x04]\x94";
  for (int i = 0; i < 200; ++i) {
    const std::string get = "h" + std::string(1, static_cast<char>(i));
    laughs += "](" + get + get + "e\x94";
  }
  const PlainData data = read_pickle(laughs + ".");
  EXPECT_EQ(data.container_count(), 201U);
  EXPECT_EQ(to_json_text(data, data.root, 1000), "");
}

TEST(Pickle, LooksOnlyAtTheLastKeysOfAHugeDict) {
  std::string many = "\x80\x04}(";
  for (int i = 0; i < 1000; ++i) many += pickled::text("k" + std::to_string(i)) + "K\x01";
  many += pickled::text("k999") + "K\x02";
  const PlainData data = read_pickle(many + "u.");
  EXPECT_EQ(data.integer(data.find(data.root, "k999")), 2);
  EXPECT_TRUE(data.find(data.root, "k1").is_none());
}

TEST(Pickle, JsonGivesTheSameValues) {
  const std::string text = R"({"a":[1,-2,1.5,true,null,"x"],"b":{"c":18446744073709551615}})";
  const PlainData data = read_plain_json(text);
  EXPECT_EQ(to_json_text(data, data.root, 1000), R"({"a":[1,-2,1.5,true,null,"x"],"b":{"c":-1}})");
  EXPECT_EQ(failure([] { read_plain_json("{\"a\":"); }), "must be JSON, but is not at byte 6");
}

}  // namespace
}  // namespace foretrace
