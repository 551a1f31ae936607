#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "base/contains.h"
#include "cli/command_line.h"

namespace foretrace {
namespace {

constexpr auto kLoaderSample = "traces/resnet18-v100-loader0.pt.trace.json.gz";

/// The error message: exactly one line on stderr that begins with the name of the program, and
/// nothing on stdout.
std::string complaint(const Outcome& outcome) {
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("foretrace: ")) << outcome.err;
  return outcome.err.substr(0, outcome.err.find('\n'));
}

TEST(CommandLine, HelpAndVersionAreAnswers) {
  EXPECT_EQ(foretrace_run("--version").out, "foretrace 0.2.0\n");
  for (const char* arguments :
       {"--help", "help", "predict --help", "help predict", "help transform scale", "help scale",
        "list", "list transforms", "list devices", "list machines", "list machines dgx-1v",
        "schema machine", "schema scenario", "schema predict"}) {
    const Outcome outcome = foretrace_run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << arguments;
    EXPECT_FALSE(outcome.out.empty()) << arguments;
    EXPECT_EQ(outcome.err, "") << arguments;
  }
}

TEST(CommandLine, AloneItSaysWhatToTry) {
  for (const char* alone : {"", "help"}) {
    const Outcome outcome = foretrace_run(alone);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.out.find("foretrace advise job.json.gz"), std::string::npos);
  }
}

/// Words of first questions lead to the command that answers them.
TEST(CommandLine, WordsLeadToTheAnswer) {
  const std::pair<const char*, const char*> words[] = {
      {"gpu", "--machine rtx-4090"},
      {"utilization", "foretrace advise"},
      {"hotspots", "foretrace kernels"},
      {"top", "foretrace kernels"},
      {"cost", "--prices"},
      {"fit", "--memory-limit 24GB"},
      {"ranks", "advise FOLDER"},
      {"power", "--power FILE"},
      {"GPU-idle", "foretrace advise"},
      {"critical_path", "--explain"},
      {"carbon", "not predicted"},
      {"fp8", "foretrace predict TRACE --with quantize:to=fp8"},
      {"bottleneck", "\"advise\""},
      {"oom", "\"memory\""},
  };
  for (const auto& [word, led_to] : words) {
    const Outcome outcome = foretrace_run(std::string(word) + " job.json");
    EXPECT_EQ(outcome.exit_code, 2) << word;
    EXPECT_NE(outcome.err.find(led_to), std::string::npos) << outcome.err;
  }
}

TEST(CommandLine, TheWholeTrainingHasATime) {
  const std::string asked = "predict traces/gpt-a100-gpu-bound.pt.trace.json.gz --total-steps ";
  EXPECT_NE(foretrace_run(asked + "100k").out.find("Training      250 min, between "),
            std::string::npos);
  for (const char* wrong : {"0", "many", "-5", "1e19", "10kk"})
    EXPECT_EQ(foretrace_run(asked + wrong).exit_code, 2) << wrong;
}

TEST(CommandLine, DevicesHaveShortNamesAndMemories) {
  const std::string trace = "traces/gpt-a100-gpu-bound.pt.trace.json.gz";
  EXPECT_EQ(foretrace_run("predict " + trace + " --machine 4090 --format json").exit_code, 0);
  EXPECT_NE(foretrace_run("predict " + trace + " --machine rtx-30").err.find("rtx-3090"),
            std::string::npos);
  EXPECT_EQ(foretrace_run("memory " + trace + " --memory-limit rtx-4090").out,
            foretrace_run("memory " + trace + " --memory-limit 25769803776B").out);
  EXPECT_EQ(foretrace_run("memory " + trace + " --memory-limit rtx-3080").exit_code, 1);
}

TEST(CommandLine, WrongUseIsOneLineAndExitCode2) {
  const std::pair<std::string, std::string> cases[] = {
      {"predcit",
       "foretrace: there is no command 'predcit' (did you mean \"predict\"?); `foretrace list "
       "commands` shows all"},
      {"help bff16", "foretrace: there is no command or transform 'bff16'"},
      {"README.md",
       "foretrace: which command? `foretrace advise README.md` shows what limits the job and what "
       "would help; `foretrace list commands` shows all"},
      {"compare a b",
       "foretrace: there is no command 'compare' (did you mean \"diff\"?); `foretrace list "
       "commands` shows all"},
      {"memory x 8GB",
       "foretrace: memory: '8GB' is an unexpected argument; give memory as --memory-limit 8GB; see "
       "`foretrace help memory`"},
      {"predict x README.md",
       "foretrace: predict: 'README.md' is an unexpected argument; `foretrace diff A B` compares "
       "two recordings; see `foretrace help predict`"},
      {"README.md LICENSE",
       "foretrace: which command? `foretrace diff README.md LICENSE` shows which is faster and "
       "why; `foretrace list commands` shows all"},
      {"rank LICENSE",
       "foretrace: there is no command 'rank': ask `foretrace info FOLDER` on the folder of all "
       "ranks, which shows where the time of each goes, and `foretrace advise FOLDER`, which names "
       "the rank that the others wait for; `foretrace list commands` shows all"},
      {"top LICENSE",
       "foretrace: there is no command 'top': ask `foretrace kernels LICENSE`, by op and shape; "
       "`foretrace list commands` shows all"},
      {"predict x --gpu 4090",
       "foretrace: predict: there is no option '--gpu'; give changes as --with "
       "faster_device:to=4090; see `foretrace help predict`"},
      {"memory x --gpu-memory 8GB",
       "foretrace: memory: there is no option '--gpu-memory' (did you mean \"--memory-limit\"?); "
       "see `foretrace help memory`"},
      {"advise x --samples 8",
       "foretrace: advise: there is no option '--samples' (did you mean \"--samples-per-step\"?); "
       "see `foretrace help advise`"},
      {"predict x --steps-total 8",
       "foretrace: predict: there is no option '--steps-total' (did you mean \"--total-steps\"?); "
       "see `foretrace help predict`"},
      {"memory x --memory-limit",
       "foretrace: memory: --memory-limit needs a value, BYTES|NAME; see `foretrace help memory`"},
      {"4090 LICENSE",
       "foretrace: there is no command '4090': ask `foretrace predict LICENSE --with STEP`, where "
       "STEP is faster_device:to=rtx-4090; `foretrace list commands` shows all"},
      {"info x --critical-path",
       "foretrace: info: there is no option '--critical-path': ask `foretrace predict TRACE "
       "--explain`, which shows what the critical path works on and waits for; see `foretrace help "
       "info`"},
      {"serve x --gpus 8",
       "foretrace: serve: there is no option '--gpus', which is one of generate, plan, scale; see "
       "`foretrace help serve`"},
      {"generate --model x",
       "foretrace: generate: there is no option '--model'; give MODEL without it; see `foretrace "
       "help generate`"},
      {"check x",
       "foretrace: check: --baseline is required (The committed baseline to compare the trace "
       "with; --bless writes it); see `foretrace help check`"},
      {"memory x --limit 8GB",
       "foretrace: memory: there is no option '--limit' (did you mean \"--memory-limit\"?); see "
       "`foretrace help memory`"},
      {"predict x --num-workers 4",
       "foretrace: predict: there is no option '--num-workers'; give changes as --with "
       "loader:workers=4; see `foretrace help predict`"},
      {"help transform anp",
       "foretrace: there is no transform \"anp\" (did you mean \"amp\"?); `foretrace list "
       "transforms` shows all"},
      {"list transform",
       "foretrace: list: WHAT: must be one of collectives, commands, devices, exporters, "
       "importers, "
       "machines, models, reports, schedules, synonyms, transforms, got \"transform\" (did you "
       "mean \"transforms\"?)"},
      {"predict",
       "foretrace: predict: which TRACE? Give it on the command line or in the scenario"},
      {"predict x --wiht amp",
       "foretrace: predict: there is no option '--wiht' (did you mean \"--with\"?); see `foretrace "
       "help predict`"},
      {"predict a b",
       "foretrace: predict: 'b' is an unexpected argument; see `foretrace help predict`"},
      {"schema", "foretrace: schema: WHAT is required; see `foretrace help schema`"},
      {"schema scenarios",
       "foretrace: schema: WHAT: must be one of advise, check, collective, diff, doctor, generate, "
       "info, input, kernels, machine, memory, memory_replay, plan, plan_allocate, plan_serve, "
       "plan_show, plan_size, plan_system, predict, scale, scenario, serve, sweep, validate, "
       "verify, got \"scenarios\" (did you mean \"scenario\"?)"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = foretrace_run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_EQ(complaint(outcome), message);
  }
  const std::string form = complaint(foretrace_run("predict x --format jsn"));
  EXPECT_TRUE(form.starts_with("foretrace: --format: must be one of text, ")) << form;
  EXPECT_TRUE(form.ends_with(", got 'jsn' (did you mean \"json\"?)")) << form;
  for (const char* arguments : {"predict --unknown", "validate --against x", "info a b"}) {
    const Outcome outcome = foretrace_run(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    complaint(outcome);
  }
}

TEST(CommandLine, WrongStepsAreOneLineAndExitCode2) {
  for (const char* step :
       {"anp", "scale:factr=2", "scale:factor=x", "scale:factor=-1", "prefetch:buffers=0",
        "set_duration:duration=5", "scale:where.name=nothing_has_this_name,factor=2"}) {
    const Outcome outcome =
        foretrace_run(std::string("predict ") + kLoaderSample + " --with " + step);
    EXPECT_EQ(outcome.exit_code, 2) << step;
    complaint(outcome);
  }
}

TEST(CommandLine, NumbersThatCannotBeAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {"scale:factor=nan",
       "foretrace: --with scale:factor=nan: scale: factor: must be a finite number"},
      {"scale:factor=inf",
       "foretrace: --with scale:factor=inf: scale: factor: must be a finite number"},
      {"scale:factor=1e300",
       "foretrace: scale:factor=1e300: makes tasks take more than 292 years in all; use a smaller "
       "factor or time"},
      {"set_duration:duration=1000h",
       "foretrace: set_duration:duration=1000h: makes tasks take more than 292 years in all; use a "
       "smaller factor or time"},
  };
  for (const auto& [step, message] : cases) {
    const Outcome outcome =
        foretrace_run(std::string("predict ") + kLoaderSample + " --with " + step);
    EXPECT_EQ(outcome.exit_code, 2) << step;
    EXPECT_EQ(complaint(outcome), message);
  }
}

TEST(CommandLine, NamesMayHoldAnyBytes) {
  const Folder folder;
  const std::string path =
      folder.write("caf\xe9.pt.trace.json.gz",
                   contents_of(FORETRACE_SOURCE_DIR + ("/" + std::string(kLoaderSample))));
  for (const char* format : {"text", "json", "csv", "markdown"}) {
    const Outcome outcome = foretrace_run(
        "predict '" + path + "' --with 'insert:name=\xff,duration=1ms' " + "--format " + format);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
}

TEST(CommandLine, ADiskThatIsFullIsOneLine) {
  for (const char* option : {"--output", "--perfetto", "--html", "--format json --output"}) {
    const Outcome outcome =
        foretrace_run(std::string("predict ") + kLoaderSample + " " + option + " /dev/full");
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_EQ(complaint(outcome), "foretrace: cannot write '/dev/full': No space left on device");
  }
}

TEST(CommandLine, AssertionsDecideTheExitCode) {
  const Folder folder;
  const auto exit_code = [&](const char* demand) {
    const std::string path =
        folder.write("scenario.json",
                     std::string(R"({"version": 1, "transforms": [], "assert": [{"step_time": ")") +
                         demand + "\"}]}");
    return foretrace_run(std::string("predict ") + kLoaderSample + " --scenario '" + path + "'")
        .exit_code;
  };
  EXPECT_EQ(exit_code("< 1s"), 0);
  EXPECT_EQ(exit_code("< 1ms"), 1);
  const nlohmann::json answer = nlohmann::json::parse(
      foretrace_run(std::string("predict ") + kLoaderSample + " --format json").out);
  EXPECT_EQ(
      exit_code(
          ("< " + std::to_string(answer["predicted"]["step_time_ns"].get<std::int64_t>()) + "ns")
              .c_str()),
      4);
}

TEST(CommandLine, TheGateDecidesTheExitCode) {
  const Folder folder;
  const std::string path = folder / "baseline.json";
  const std::string check = std::string("check ") + kLoaderSample + " --baseline '" + path + "'";
  ASSERT_EQ(foretrace_run(check + " --bless").exit_code, 0);
  const nlohmann::json blessed = nlohmann::json::parse(contents_of(path));
  const auto code_after = [&](const char* metric, const nlohmann::json& value) {
    nlohmann::json changed = blessed;
    changed["metrics"][metric] = value;
    folder.write("baseline.json", changed.dump());
    return foretrace_run(check).exit_code;
  };
  nlohmann::json syncs = blessed["metrics"]["syncs"];
  EXPECT_EQ(code_after("syncs", syncs), 0);
  for (nlohmann::json& step : syncs["steps"]) step = step.get<int>() - 1;
  EXPECT_EQ(code_after("syncs", syncs), 1);
  // The sample does not record memory.
  EXPECT_EQ(code_after("peak_reserved", {{"steps", {1'000'000'000}}, {"fail", "5%"}}), 4);
}

// The best of several points counts.
TEST(CommandLine, LatenciesThatMustHoldDecideHowServeEnds) {
  const auto code_after = [](const std::string& arguments) {
    const std::string load = " --load concurrency=8,input=512,output=64,requests=40";
    return foretrace_run("serve llama3-8b --machine dgx-h100" + load + arguments).exit_code;
  };
  const auto limit_of = [](const char* end) {
    const Outcome outcome = foretrace_run(
        "serve llama3-8b --machine dgx-h100 --load concurrency=8,input=512,output=64,requests=40 "
        "--format json");
    return std::to_string(
               nlohmann::json::parse(outcome.out)["points"][0]["ttft"][end].get<std::int64_t>()) +
           "ns";
  };
  EXPECT_EQ(code_after(" --slo ttft_mean=" + limit_of("upper_ns")), 0);
  EXPECT_EQ(code_after(" --slo ttft_mean=" + limit_of("mean_ns")), 4);
  EXPECT_EQ(code_after(" --slo ttft_mean=" + limit_of("lower_ns")), 1);
  EXPECT_EQ(code_after(" --vary tensor=1,8 --slo tpot_p99=7ms"), 0);
  EXPECT_EQ(code_after(" --slo tpot_p99=7ms"), 1);
}

TEST(CommandLine, APredictionThatDidNotComeTrueEndsWithOne) {
  const Folder folder;
  const std::string path = folder / "prediction.json";
  const std::string question = std::string("predict ") + kLoaderSample + " --format json -o '";
  ASSERT_EQ(foretrace_run(question + path + "'").exit_code, 0);
  const std::string verify = "verify '" + path + "' " + kLoaderSample;
  EXPECT_EQ(foretrace_run(verify).exit_code, 0);
  nlohmann::json prediction = nlohmann::json::parse(contents_of(path));
  prediction["predicted"]["lower_ns"] = 1;
  prediction["predicted"]["upper_ns"] = 2;
  folder.write("prediction.json", prediction.dump());
  EXPECT_EQ(foretrace_run(verify).exit_code, 1);
}

TEST(CommandLine, ATargetOutOfReachEndsWithOne) {
  const std::string until = std::string("advise ") + kLoaderSample + " --until 'step_time <= ";
  EXPECT_EQ(foretrace_run(until + "80ms'").exit_code, 0);
  EXPECT_EQ(foretrace_run(until + "1us'").exit_code, 1);
}

TEST(CommandLine, ResultsCanGoToAFile) {
  const Folder folder;
  const std::string path = folder / "answer.json";
  const Outcome outcome = foretrace_run(std::string("predict ") + kLoaderSample +
                                        " --format json --output '" + path + "'");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(nlohmann::json::parse(contents_of(path))["schema"], "foretrace.prediction/1");
  EXPECT_EQ(foretrace_run(std::string("predict ") + kLoaderSample + " --output /nowhere/at/all")
                .exit_code,
            2);
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  return at == text.npos ? text : text.replace(at, what.size(), by);
}

/// The commands between backquotes in a hint: whole commands, or steps for --with, which become
/// predictions.
std::vector<std::string> commands_in(const std::string& hint) {
  constexpr std::string_view kRecorded = "traces/gpt-a100-gpu-bound.pt.trace.json.gz";
  // The recording has one GPU; hints about recorded communication need a job that communicates.
  constexpr std::string_view kManyGpus = "data_parallel:gpus=8,machine=dgx-a100,gradient_bytes=1MB";
  static const std::regex kCommand("`([^`]*)`");
  std::vector<std::string> commands;
  for (std::sregex_iterator at(hint.begin(), hint.end(), kCommand), end; at != end; ++at) {
    std::string command = replaced((*at)[1], "TRACE", kRecorded);
    command = replaced(command, "trace=OTHER", "trace=" + std::string(kRecorded));
    const bool communicates = contains(command, "collective") || contains(command, "network:");
    if (command.starts_with("--with"))
      command = "predict " + std::string(kRecorded) + " " +
                (communicates ? "--with " + std::string(kManyGpus) + " " : "") + command;
    if (command.starts_with("--")) continue;  // An option that the user adds to a command.
    commands.push_back(replaced(command, "foretrace ", ""));
  }
  return commands;
}

TEST(CommandLine, WhatHintsProposeIsAccepted) {
#define WORDS(...) \
  {}
#define SYNONYM(transform, words, settings, value)
#define ALTERNATIVE(words, text) text,
#define ELSEWHERE(words, text)
  const std::vector<std::string> hints = {
#include "transform/synonyms.def"
  };
#undef ELSEWHERE
#undef ALTERNATIVE
#undef SYNONYM
#undef WORDS
  std::size_t run = 0;
  for (const std::string& hint : hints) {
    for (const std::string& command : commands_in(hint)) {
      const Outcome outcome = foretrace_run(command);
      EXPECT_EQ(outcome.exit_code, 0) << command << '\n' << outcome.err;
      ++run;
    }
  }
  EXPECT_GT(run, hints.size());
}

TEST(CommandLine, APredictedTimelineIsATraceAgain) {
  const Folder folder;
  for (const char* name : {"predicted.json.gz", "predicted.pftrace"}) {
    const std::string path = folder / name;
    const Outcome first = foretrace_run(std::string("predict ") + kLoaderSample +
                                        " --with loader --format json --perfetto '" + path + "'");
    ASSERT_EQ(first.exit_code, 0) << first.err;
    const Outcome second = foretrace_run("predict '" + path + "' --format json");
    ASSERT_EQ(second.exit_code, 0) << second.err;
    const nlohmann::json answer = nlohmann::json::parse(second.out);
    const auto predicted =
        nlohmann::json::parse(first.out)["predicted"]["step_time_ns"].get<double>();
    EXPECT_NEAR(answer["measured"]["step_time_ns"].get<double>() / predicted, 1, 1e-3) << name;
  }
}

TEST(CommandLine, APageIsTheSameEachTime) {
  const Folder folder;
  const std::string question = std::string("predict ") + kLoaderSample + " --with loader --html '";
  for (const char* name : {"a.html", "b.html"}) {
    const Outcome outcome = foretrace_run(question + (folder / name) + "'");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.substr(0, 7), "What if");
  }
  const std::string page = contents_of(folder / "a.html");
  EXPECT_NE(page.find("<h1>What if: loader</h1>"), std::string::npos);
  EXPECT_EQ(page, contents_of(folder / "b.html"));
}

TEST(CommandLine, ConvertedRecordsGiveTheSameAnswer) {
  const Folder folder;
  const std::string path = folder / "sample.ftrace";
  ASSERT_EQ(foretrace_run(std::string("convert ") + kLoaderSample + " '" + path + "'").exit_code,
            0);
  const auto answer = [](const std::string& trace) {
    nlohmann::json json =
        nlohmann::json::parse(foretrace_run("predict '" + trace + "' --format json").out);
    json.erase("inputs");
    json["scenario"].erase("trace");
    return json;
  };
  EXPECT_EQ(answer(path), answer(kLoaderSample));
}

TEST(CommandLine, SameInputSameBytes) {
  const std::string question =
      std::string("predict ") + kLoaderSample + " --with amp --with loader --explain --format json";
  const Outcome first = foretrace_run(question);
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(foretrace_run(question).out, first.out);
  EXPECT_EQ(foretrace_run(question, "taskset 1").out, first.out);
}

TEST(CommandLine, TheCacheChangesNoAnswer) {
  const Folder folder;
  const std::string question = std::string("predict ") + kLoaderSample +
                               " --format json --cache-dir '" + (folder / "kept") + "'";
  const Outcome cold = foretrace_run(question);
  const Outcome warm = foretrace_run(question);
  const Outcome none =
      foretrace_run(std::string("predict ") + kLoaderSample + " --format json --no-cache");
  EXPECT_EQ(cold.exit_code, 0) << cold.err;
  EXPECT_EQ(warm.out, cold.out);
  EXPECT_EQ(none.out, cold.out);
}

TEST(CommandLine, FoldersOfRanksAnswerWithTheSlowest) {
  const Folder folder;
  const auto rank = [&](int number, int kernel_us) {
    const std::string dur = std::to_string(kernel_us);
    folder.write("rank" + std::to_string(number) + ".json",
                 R"({"distributedInfo": {"rank": )" + std::to_string(number) +
                     R"(, "world_size": 2}, "traceEvents": [
                 {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 0, "dur": )" +
                     dur + R"(, "args": {"device": 0, "stream": 7}}]})");
  };
  rank(0, 10);
  rank(1, 30);
  const Outcome outcome = foretrace_run("predict '" + (folder / "") + "' --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["predicted"]["step_time_ns"], 30000);
  EXPECT_EQ(json["inputs"].size(), 2U);
  EXPECT_EQ(json["notes"].back()["text"],
            "each rank was predicted alone; the answer is the slowest, rank 1");
  EXPECT_EQ(json["notes"].back()["example"], "rank 0: 10 us, rank 1: 30 us");

  folder.write("cut.json", R"({"traceEvents": [{"ph")");
  EXPECT_EQ(foretrace_run("predict '" + (folder / "") + "' --strict").exit_code, 3);
}

// Times in a snapshot are positions in its history: none is slower than another.
TEST(CommandLine, SnapshotsOfSeveralRanksHaveNoSlowestOne) {
  const Folder folder;
  for (const char* rank : {"rank0.pickle", "rank1.pickle"})
    foretrace_run("convert traces/gpt-a100-gpu-bound.pt.trace.json.gz '" + (folder / rank) + "'");
  const Outcome outcome = foretrace_run("predict '" + (folder / "") + "' --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["notes"].back()["text"],
            "each snapshot was replayed alone; each peak is the highest of them all");
}

}  // namespace
}  // namespace foretrace
