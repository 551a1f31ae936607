#include <gtest/gtest.h>

#include "foretrace/export.h"

namespace foretrace {
namespace {

std::string shown(HostKind kind, std::string_view name, const Anonymization& how) {
  Trace trace;
  trace.threads.push_back({.process = 1, .id = 1, .name = "secret thread"});
  trace.hosts.push_back({.name = trace.names.intern(name), .kind = kind});
  AnonymizedTexts texts;
  const Trace hidden = anonymize(trace, how, texts);
  EXPECT_EQ(hidden.threads[0].name.find("secret"), std::string::npos);
  return std::string(hidden.names[hidden.hosts[0].name]);
}

TEST(Anonymize, PublicWordsStay) {
  for (const char* op :
       {"aten::add_", "ProfilerStep#12", "record_param_comms", "step 7",
        "autograd::engine::evaluate_function: AddmmBackward0", "torch::autograd::AccumulateGrad",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "nccl:all_reduce"}) {
    EXPECT_EQ(shown(HostKind::op, op, {.salt = "s"}), op);
  }
  for (const char* call : {"cudaLaunchKernel", "cuMemAlloc_v2", "hipMemcpyAsync"})
    EXPECT_EQ(shown(HostKind::runtime, call, {.salt = "s"}), call);
}

TEST(Anonymize, TheProgramsOwnWordsGo) {
  const struct {
    HostKind kind;
    const char* name;
    const char* begin;
    const char* gone;
  } cases[] = {
      {HostKind::annotation, "secret forward", "", "secret"},
      {HostKind::op, "autograd::engine::evaluate_function: SecretBackward",
       "autograd::engine::evaluate_function: ", "Secret"},
      {HostKind::annotation, "Optimizer.step#SecretOpt.step", "Optimizer.step#", "Secret"},
      {HostKind::python, "nn.Module: SecretNet_0", "nn.Module: ", "Secret"},
      {HostKind::python, "/home/me/secret/train.py(88): step", "/", "secret"},
      {HostKind::python, "/home/me/train.py(88): secret_step", "/", "secret"},
      {HostKind::python, "/home/me/train.py:88 secret_step", "/", "secret"},
      {HostKind::runtime, "secretLaunchKernel", "", "secret"},
      {HostKind::op, "aten::secret thing", "", "secret"},
  };
  for (const auto& [kind, name, begin, gone] : cases) {
    const std::string text = shown(kind, name, {.salt = "s"});
    EXPECT_TRUE(text.starts_with(begin)) << text;
    EXPECT_EQ(text.find(gone), std::string::npos) << text;
  }
}

TEST(Anonymize, PartsOfPathsAreHiddenEachByItself) {
  const auto frame = [](const char* text) { return shown(HostKind::python, text, {.salt = "s"}); };
  const std::string one = frame("/home/me/train.py(88): step");
  const std::string other = frame("/home/me/train.py(90): loop");
  const std::size_t line = one.find("(88): ");
  ASSERT_NE(line, std::string::npos);
  EXPECT_TRUE(one.substr(0, line).ends_with(".py"));
  EXPECT_EQ(other.substr(0, line), one.substr(0, line));
  const std::string kept =
      shown(HostKind::python, "/home/me/train.py(88): step", {.salt = "s", .keep = {"train.py"}});
  EXPECT_NE(kept.find("/train.py(88): "), std::string::npos) << kept;
}

TEST(Anonymize, TheSaltDecides) {
  const auto with = [](const char* salt) {
    return shown(HostKind::annotation, "secret", {.salt = salt});
  };
  EXPECT_EQ(with("a"), with("a"));
  EXPECT_NE(with("a"), with("b"));
}

TEST(Anonymize, ShapesStayUnlessTheyAreDropped) {
  Trace trace;
  trace.threads.push_back({});
  trace.op_details.push_back({.shapes = trace.names.intern("[[32, 3], []]"),
                              .types = trace.names.intern(R"(["c10::Half", "MyType"])"),
                              .values = trace.names.intern(R"(["", "[1, -1]", "secret", "1e-05"])"),
                              .stack = trace.names.intern("a.py(1): f;b.py(2): g")});
  trace.hosts.push_back({.name = trace.names.intern("aten::mm"), .details = 0});
  AnonymizedTexts texts;
  const Trace hidden = anonymize(trace, {.salt = "s"}, texts);
  const OpDetails& details = hidden.op_details[0];
  EXPECT_EQ(hidden.names[details.shapes], "[[32, 3], []]");
  EXPECT_TRUE(hidden.names[details.types].starts_with(R"(["c10::Half", ")"));
  EXPECT_EQ(hidden.names[details.types].find("MyType"), std::string_view::npos);
  EXPECT_TRUE(hidden.names[details.values].starts_with(R"(["", "[1, -1]", ")"));
  EXPECT_TRUE(hidden.names[details.values].ends_with(R"(", "1e-05"])"));
  EXPECT_EQ(hidden.names[details.values].find("secret"), std::string_view::npos);
  const Trace dropped = anonymize(trace, {.salt = "s", .drop_shapes = true}, texts);
  EXPECT_EQ(dropped.op_details[0].shapes, NameId{});
  EXPECT_EQ(dropped.op_details[0].values, NameId{});
}

TEST(Anonymize, WhenAndWhereAreForgotten) {
  Trace trace;
  trace.origin_ns = 1'700'000'000'000'000'000;
  trace.threads.push_back({});
  trace.metadata = {
      {"host_name", "\"node17\""}, {"cupti_version", "18"}, {"nccl_version", "\"secret\""}};
  trace.memory.push_back({.address = 0x7f1200000200, .bytes = 512, .device = 0});
  trace.memory.push_back({.address = 0x7f1200400400, .bytes = 512, .device = 0});
  AnonymizedTexts texts;
  const Trace hidden = anonymize(trace, {.salt = "s"}, texts);
  EXPECT_EQ(hidden.origin_ns, 0);
  EXPECT_EQ(hidden.metadata, (std::map<std::string, std::string>{{"cupti_version", "18"}}));
  EXPECT_EQ(hidden.memory[1].address - hidden.memory[0].address, 0x400200U);
  EXPECT_LT(hidden.memory[0].address, 0x1000000U);
  EXPECT_EQ(anonymize(trace, {.salt = "s", .keep_time = true}, texts).origin_ns, trace.origin_ns);
}

}  // namespace
}  // namespace foretrace
