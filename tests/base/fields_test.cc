#include "foretrace/fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "foretrace/error.h"

namespace foretrace {
namespace {

struct Where final : Described {
  std::string kind = "copy_in";
  std::string name;

  void describe(Fields& fields) override {
    fields.choice("kind", kind, {kinds}, "Only tasks of this kind");
    fields.text("name", name, "Only tasks with this text in their name");
  }
  std::vector<std::string_view> kinds = {"any", "kernel", "copy_in"};
};

struct Example final : Described {
  Where where;
  std::int64_t buffers = 2;
  double factor = 0.5;
  bool pinned = false;
  std::vector<std::string> modules = {"encoder"};
  Nanoseconds latency = 5us;
  Bytes bucket{25'000'000};
  Bandwidth link{25e9};
  Throughput peak{312e12};
  std::optional<std::int64_t> rank;
  std::optional<double> loss;
  std::optional<Nanoseconds> timeout;

  void describe(Fields& fields) override {
    fields.object("where", where, "The copies to run ahead");
    fields.integer("buffers", buffers, "Inputs that fit on the device at once; 1 hides nothing", 1,
                   64);
    fields.number("factor", factor, "New time over old time", 0.0);
    fields.flag("pinned", pinned, "Whether host memory is page-locked");
    fields.texts("modules", modules, "Only these modules");
    fields.time("latency", latency, "Of one message", 0ns);
    fields.bytes("bucket", bucket, "Sent at once", Bytes{1});
    fields.bandwidth("link", link, "Each way");
    fields.throughput("peak", peak, "Dense");
    fields.optional_integer("rank", rank, "Only this rank", 0);
    fields.optional_number("loss", loss, "Share of packets lost", 0.0);
    fields.optional_time("timeout", timeout, "Before a packet is sent again", 1ns);
  }
};

/// The settings after reading `json`, or the message of the error.
std::string read(const char* json) {
  Example example;
  try {
    read_json(nlohmann::json::parse(json), example);
  } catch (const Error& error) {
    return error.what();
  }
  return write_json(example).dump();
}

std::string assigned(std::string_view text) {
  Example example;
  try {
    const nlohmann::json json = read_assignments(text, example);
    read_json(json, example);
    return json.dump();
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Fields, WriteWhatTheyRead) {
  const char* everything =
      R"({"bucket":"1MiB","buffers":3,"factor":0.25,"latency":"1500us","link":"12.5GB/s",)"
      R"("loss":0.01,"modules":["a","b"],"peak":"19.5TFLOP/s","pinned":true,"rank":7,)"
      R"("timeout":"10ms","where":{"kind":"kernel","name":"/gemm/"}})";
  EXPECT_EQ(read(everything), everything);
}

TEST(Fields, LeaveWhatIsNotMentioned) {
  EXPECT_EQ(read("{}"),
            R"({"bucket":"25MB","buffers":2,"factor":0.5,"latency":"5us","link":"25GB/s",)"
            R"("loss":null,"modules":["encoder"],"peak":"312TFLOP/s","pinned":false,"rank":null,)"
            R"("timeout":null,"where":{"kind":"copy_in","name":""}})");
}

TEST(Fields, NullClearsAnOptionalSetting) {
  Example example;
  example.rank = 3;
  read_json({{"rank", nullptr}}, example);
  EXPECT_EQ(example.rank, std::nullopt);
}

TEST(Fields, AWholeNumberMayBeWrittenWithAPoint) {
  Example example;
  read_json({{"buffers", 3.0}}, example);
  EXPECT_EQ(example.buffers, 3);
}

TEST(Fields, SayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"buffers": 0})", "buffers: must be at least 1, got 0"},
      {R"({"buffers": 65})", "buffers: must be at most 64, got 65"},
      {R"({"buffers": "2"})", "buffers: must be a whole number"},
      {R"({"buffers": 2.5})", "buffers: must be a whole number"},
      {R"({"buffers": null})", "buffers: must be a whole number"},
      {R"({"buffers": 18446744073709551615})",
       "buffers: must be at most 9223372036854775807, got 18446744073709551615"},
      {R"({"factor": -0.5})", "factor: must be at least 0, got -0.5"},
      {R"({"factor": "x"})", "factor: must be a number"},
      {R"({"pinned": 1})", "pinned: must be true or false"},
      {R"({"modules": "a"})", R"(modules: must be a list of strings; one is enough: ["a"])"},
      {R"({"modules": ["a", 1]})", "modules: [1]: must be a string"},
      {R"({"latency": 5})", "latency: must be a string with a unit, such as \"5us\", got 5"},
      {R"({"latency": "5"})",
       "latency: must be a time with its unit (ns, us, ms, s, min or h), got \"5\""},
      {R"({"latency": "-5us"})", "latency: must be at least 0ns, got -5us"},
      {R"({"bucket": "0B"})", "bucket: must be at least 1B, got 0B"},
      {R"({"bucket": [1]})",
       "bucket: must be a string with a unit, such as \"25MB\", got a value of another kind"},
      {R"({"link": "25GB"})",
       "link: must be a bandwidth with its unit (GB/s for bytes, Gb/s for bits ...), got \"25GB\""},
      {R"({"peak": 1})", "peak: must be a string with a unit, such as \"312TFLOP/s\", got 1"},
      {R"({"rank": -1})", "rank: must be at least 0, got -1"},
      {R"({"loss": -1})", "loss: must be at least 0, got -1"},
      {R"({"timeout": "0ns"})", "timeout: must be at least 1ns, got 0ns"},
      {R"({"where": {"kind": "kernels"}})",
       "where: kind: must be one of any, kernel, copy_in, got \"kernels\" (did you mean "
       "\"kernel\"?)"},
      {R"({"where": {"layer": 1}})",
       "where: there is no setting \"layer\"; the settings are kind, name"},
      {R"({"where": 5})", "where: must be an object of settings, such as {\"name\": value}"},
      {R"({"depth": 2})",
       "there is no setting \"depth\"; the settings are bucket, buffers, factor, latency, link, "
       "loss, modules, peak, pinned, rank, timeout, where"},
      {R"({"bufers": 2})",
       "there is no setting \"bufers\"; the settings are bucket, buffers, factor, latency, link, "
       "loss, modules, peak, pinned, rank, timeout, where (did you mean \"buffers\"?)"},
      {R"([])", "must be an object of settings, such as {\"name\": value}"},
  };
  for (const auto& [json, message] : cases) EXPECT_EQ(read(json), message) << json;
}

TEST(Fields, AWrongValueChangesNothing) {
  Example example;
  EXPECT_THROW(read_json({{"buffers", 0}}, example), Error);
  EXPECT_EQ(example.buffers, 2);
}

TEST(Fields, DescribeThemselvesAsASchema) {
  Example example;
  const nlohmann::json schema = json_schema(example);
  EXPECT_EQ(schema.at("additionalProperties"), false);
  const nlohmann::json& properties = schema.at("properties");
  EXPECT_EQ(properties.size(), write_json(example).size());
  EXPECT_EQ(
      properties.at("buffers").dump(),
      R"({"default":2,"description":"Inputs that fit on the device at once; 1 hides nothing",)"
      R"("maximum":64,"minimum":1,"type":"integer"})");
  EXPECT_EQ(properties.at("rank").at("type").dump(), R"(["integer","null"])");
  EXPECT_EQ(properties.at("latency").at("description"), "Of one message (at least 0ns)");
  EXPECT_EQ(properties.at("where").at("properties").at("kind").at("enum").dump(),
            R"(["any","kernel","copy_in"])");
}

TEST(Fields, ExplainThemselves) {
  Example example;
  std::ostringstream out;
  write_help(example, out);
  EXPECT_EQ("\n" + out.str(), R"(
  where.kind  copy_in      Only tasks of this kind (one of any, kernel, copy_in)
  where.name  ""           Only tasks with this text in their name
  buffers     2            Inputs that fit on the device at once; 1 hides nothing (1 to 64)
  factor      0.5          New time over old time (at least 0)
  pinned      false        Whether host memory is page-locked
  modules     ["encoder"]  Only these modules
  latency     5us          Of one message (at least 0ns)
  bucket      25MB         Sent at once (at least 1B)
  link        25GB/s       Each way
  peak        312TFLOP/s   Dense
  rank        -            Only this rank (at least 0)
  loss        -            Share of packets lost (at least 0)
  timeout     -            Before a packet is sent again (at least 1ns)
)");
}

TEST(Assignments, BecomeJsonOfTheRightKind) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "{}"},
      {"buffers=3", R"({"buffers":3})"},
      {"buffers=3,factor=1e-1,pinned=true", R"({"buffers":3,"factor":0.1,"pinned":true})"},
      {"where.name=5", R"({"where":{"name":"5"}})"},
      {"where.name=a=b", R"({"where":{"name":"a=b"}})"},
      {"where.name=,buffers=3", R"({"buffers":3,"where":{"name":""}})"},
      {"where.name=/a,b/,where.kind=kernel", R"({"where":{"kind":"kernel","name":"/a,b/"}})"},
      {"where.name=/a/b,buffers=3", R"({"buffers":3,"where":{"name":"/a/b"}})"},
      {R"(where.name=/a\/,b/)", R"({"where":{"name":"/a\\/,b/"}})"},
      {R"(where.name="a,b",buffers=3)", R"({"buffers":3,"where":{"name":"a,b"}})"},
      {R"(where={"name":"x,y","kind":"any"},buffers=3)",
       R"({"buffers":3,"where":{"kind":"any","name":"x,y"}})"},
      {"modules=[a,b],buffers=3", R"({"buffers":3,"modules":["a","b"]})"},
      {R"(modules=["a,b","]"])", R"({"modules":["a,b","]"]})"},
      {"modules=a", R"({"modules":["a"]})"},
      {"rank=3,loss=null", R"({"loss":null,"rank":3})"},
      {"link=25GB/s,latency=5us", R"({"latency":"5us","link":"25GB/s"})"},
  };
  for (const auto& [text, json] : cases) EXPECT_EQ(assigned(text), json) << text;
}

TEST(Assignments, SayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"buffers", "must be setting=value, got \"buffers\""},
      {"buffers,factor=2", "must be setting=value, got \"buffers\""},
      {"=3", "must be setting=value, got \"=3\""},
      {"buffers=3,", "must be setting=value after the last comma, got nothing"},
      {"buffers=3,buffers=4", "buffers: is given twice"},
      {"buffers=x", "buffers: must be a whole number"},
      {"buffers=0", "buffers: must be at least 1, got 0"},
      {"buffers=99999999999999999999", "buffers: must be a whole number"},
      {"pinned=yes", "pinned: must be true or false"},
      {"latency=5", "latency: must be a time with its unit (ns, us, ms, s, min or h), got \"5\""},
      {"where.nam=x",
       "where: there is no setting \"nam\"; the settings are kind, name (did you mean \"name\"?)"},
      {"where=x", "where: is a group of settings; give them one by one, as in group.name=value"},
      {"buffers.size=1", "buffers: has no settings of its own, got \"size\""},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(assigned(text), message) << text;
}

TEST(Assignments, SurviveUnclosedBrackets) {
  for (const char* text : {"where.name=[", "where.name=\"", "where.name=/", "where.name=[[\"]",
                           "where={", "modules=[", "modules=[\"", "where.=1", ".=1", "a.b.c=,,"}) {
    EXPECT_NE(assigned(text), "") << text;
  }
}

}  // namespace
}  // namespace foretrace
