#include "graph/select.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "foretrace/error.h"

namespace foretrace {
namespace {

constexpr auto kTraining = R"(
    @step first
    cpu: load:input 2 {step=0 phase=input}, L:launch 1 {step=0 phase=forward}
    gpu:  i:copy_in 2 {step=0 phase=input}, gemm_a 4 {step=0 phase=forward layer=0 module=net/fc1}, relu 1 {step=0 phase=forward layer=1 module=net/act}, gemm_b 4 {step=1 phase=backward layer=3 module=net/fc2}
    "nccl stream" [rank=1]: ar:collective 3 {step=1}
)";

/// The names of the selected tasks, or the message of the Error.
std::string selected(const char* settings, std::string_view graph_text = kTraining) {
  try {
    Selector selector;
    read_json(nlohmann::json::parse(settings), selector);
    const Graph graph = parse_graph(graph_text);
    std::string names;
    for (const TaskId task : selector.select_some(graph)) {
      names += (names.empty() ? "" : " ") + std::string(graph.name(task));
    }
    return names;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Selector, WithoutSettingsSelectsEverythingInOrderOfLanes) {
  EXPECT_EQ(selected("{}"), "load L i gemm_a relu gemm_b ar");
}

TEST(Selector, EveryConditionMustHold) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"kind": "kernel"})", "gemm_a relu gemm_b"},
      {R"({"kind": "device"})", "i gemm_a relu gemm_b ar"},
      {R"({"name": "gemm"})", "gemm_a gemm_b"},
      {R"({"name": "/^(relu|i)$/"})", "i relu"},
      {R"({"phase": "forward"})", "L gemm_a relu"},
      {R"({"phase": "forward", "kind": "kernel", "name": "gemm"})", "gemm_a"},
      {R"({"layer": "1"})", "relu"},
      {R"({"layer": "0-1"})", "gemm_a relu"},
      {R"({"module": "net/fc"})", "gemm_a gemm_b"},
      {R"({"module": "/act$/"})", "relu"},
      {R"({"stream": "nccl"})", "ar"},
      {R"({"stream": "/^(cpu|nccl.*)$/"})", "load L ar"},
      {R"({"rank": 1})", "ar"},
      {R"({"step": 1})", "gemm_b ar"},
  };
  for (const auto& [settings, names] : cases) EXPECT_EQ(selected(settings), names) << settings;
}

TEST(Selector, DoesNotSelectWhatWasRemoved) {
  Graph graph = parse_graph("gpu: A 1, B 1, C 1");
  graph.remove(Selector().select(graph)[1]);
  EXPECT_EQ(Selector().select(graph).size(), 2U);
}

TEST(Selector, SaysWhatMatchesNothingAndWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"name": "conv"})", "no task matches \"where\" (name \"conv\")"},
      {R"({"kind": "copy_out", "step": 0})", "no task matches \"where\" (kind copy_out, step 0)"},
      {R"({"step": 7})", "no task matches \"where\" (step 7); this trace has 1 steps"},
  };
  for (const auto& [settings, message] : cases) EXPECT_EQ(selected(settings), message);
  EXPECT_EQ(selected(R"({"phase": "update"})", "gpu: A 1"),
            "no task matches \"where\" (phase update); the phases of this trace are unknown");
  EXPECT_EQ(selected(R"({"layer": "2"})", "gpu: A 1"),
            "no task matches \"where\" (layer 2); the layers of this trace are unknown");
  EXPECT_EQ(selected(R"({"module": "x"})", "gpu: A 1"),
            "no task matches \"where\" (module \"x\"); the modules of this trace are unknown");
}

TEST(Selector, SaysWhatCannotBeRead) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"name": "/(/"})", "name: must be a regular expression, got /(/: a ( without its )"},
      {R"({"module": "/[a/"})",
       "module: must be a regular expression, got /[a/: a [ without its ]"},
      {R"({"stream": "/*/"})",
       "stream: must be a regular expression, got /*/: * + ? or { with nothing to repeat"},
      {R"({"name": "/a)/"})", "name: must be a regular expression, got /a)/: a ) without its ("},
      {R"({"name": "/[z-a]/"})",
       "name: must be a regular expression, got /[z-a]/: a range such as [z-a] that is empty"},
      {R"({"name": "/[[:x:]]/"})",
       "name: must be a regular expression, got /[[:x:]]/: an unknown [: :] class"},
      {R"({"name": "/a{2000}/"})",
       "name: must be a regular expression, got /a{2000}/: more than 1000 repetitions, or none, in "
       "{2000}"},
      {R"({"name": "/(a)\\1/"})",
       "name: must be a regular expression, got /(a)\\1/: back-references are not supported"},
      {R"({"name": "/a(?!b)/"})",
       "name: must be a regular expression, got /a(?!b)/: a group that is not supported, (?! "
       "(there "
       "is no lookahead and no lookbehind)"},
      {R"({"layer": "front"})",
       "layer: must be a number or a range such as \"2-5\", got \"front\""},
      {R"({"layer": "5-2"})", "layer: must be a number or a range such as \"2-5\", got \"5-2\""},
      {R"({"layer": "2-"})", "layer: must be a number or a range such as \"2-5\", got \"2-\""},
      {R"({"rank": -1})", "rank: must be at least 0, got -1"},
  };
  for (const auto& [settings, message] : cases) EXPECT_EQ(selected(settings), message);
}

TEST(NamePattern, PlainTextIsNotAnExpression) {
  EXPECT_TRUE(NamePattern("a.c").matches("xa.cx"));
  EXPECT_FALSE(NamePattern("a.c").matches("abc"));
  EXPECT_TRUE(NamePattern("/a.c/").matches("xabcx"));
  EXPECT_TRUE(NamePattern("/").matches("aten/op"));
  EXPECT_TRUE(NamePattern("").matches(""));
}

TEST(NamePattern, ExpressionsAreThoseOfTheUsualSyntax) {
  EXPECT_TRUE(NamePattern(R"(/^void \w+::\w+<(float|half)>\(/)").matches("void at::x<half>(int)"));
  EXPECT_TRUE(NamePattern(R"(/aten\/op\b/)").matches("aten/op 1"));
  EXPECT_TRUE(NamePattern("/(?i)GEMM/").matches("sgemm"));
  EXPECT_TRUE(NamePattern("/^.$/").matches("\xc3\xa4"));
  EXPECT_TRUE(NamePattern("/b$/").matches("\xff b"));  // Not UTF-8.
  EXPECT_FALSE(NamePattern("/a.b/").matches("a\nb"));
}

TEST(NamePattern, LongNamesAndGreedyExpressionsComeToAnEnd) {
  const std::string name(20'000, 'a');
  EXPECT_FALSE(NamePattern("/(a+)+b/").matches(name.substr(0, 200)));
  EXPECT_TRUE(NamePattern("/^.*a$/").matches(name));
  const std::string many(1'000'000, 'L');
  EXPECT_FALSE(NamePattern("/L+x/").matches(many));
  EXPECT_FALSE(NamePattern("/L*L*L*x$/").matches(many));
  EXPECT_FALSE(NamePattern("/(L|LL)+x/").matches(many));
  EXPECT_THROW(NamePattern("/" + std::string(2000, '(') + "/"), Error);
  EXPECT_THROW(NamePattern("/((a{500}){500}){500}/"), Error);
}

}  // namespace
}  // namespace foretrace
