#include "base/config/config.h"

#include <gtest/gtest.h>

#include "foretrace/error.h"
#include "support/folder.h"

namespace foretrace {
namespace {

Config config_of(const std::string& name, const std::string& text) {
  const Folder folder;
  return read_config(folder.write(name, text));
}

std::string values_of(const std::string& name, const std::string& text) {
  std::string all;
  for (const ConfigValue& value : config_of(name, text).values)
    all += value.key + '=' + value.text + '\n';
  return all;
}

/// The message without the folder of the file.
std::string refused(const std::string& name, const std::string& text) {
  try {
    config_of(name, text);
  } catch (const Error& error) {
    const std::string message = error.what();
    return message.substr(message.find(name));
  }
  return "";
}

TEST(Config, HasTheSameValuesInEveryLanguage) {
  const std::string values =
      "parallel.tp=8\nparallel.kinds.0=full\nparallel.kinds.1=window\nlr=1e-4\n";
  EXPECT_EQ(
      values_of("a.json", R"({"parallel": {"tp": 8, "kinds": ["full", "window"]}, "lr": "1e-4"})"),
      values);
  EXPECT_EQ(values_of("a.yaml", "parallel:\n  tp: 8\n  kinds: [full, 'window']\nlr: 1e-4\n"),
            values);
  EXPECT_EQ(values_of("a.toml", "lr = 1e-4\n[parallel]\ntp = 8\nkinds = ['full', \"window\"]\n"),
            "lr=1e-4\nparallel.tp=8\nparallel.kinds.0=full\nparallel.kinds.1=window\n");
  EXPECT_EQ(values_of("a.yaml", "args:\n  --micro-batch-size: 4\n  none: ~\n"),
            "args.micro_batch_size=4\nargs.none=null\n");
}

TEST(Config, ReadsArgumentsAsAShellDoes) {
  EXPECT_EQ(
      values_of(
          "run.sh",
          "#!/bin/bash\n#SBATCH --nodes=4\nTP=8 # ranks\nexport MBS=${MBS:-2}\nARGS=(\n"
          "  --tensor-model-parallel-size $TP --bf16\n  --micro-batch-size ${MBS}\n"
          "  \"--fp8-format hybrid\"  # --hidden 3\n)\n"
          "torchrun --nproc_per_node=$GPUS x.py \\\n --lr '6e-5' --split \"9 1\" ${ARGS[@]}\n"),
      "nodes=4\ntensor_model_parallel_size=8\nbf16=true\nmicro_batch_size=2\n"
      "fp8_format=hybrid\nnproc_per_node=$GPUS\nlr=6e-5\nsplit=9 1\n");
}

TEST(Config, ReadsALogOfArguments) {
  EXPECT_EQ(values_of("log.txt",
                      "using world size: 8\n  bf16 ............................ True\n"
                      "0: lr .............. 0.0001\n[rank0]: num_query_groups ....... None\n"
                      "  a ...... 1\n  b ... x y \nno setting here\n"),
            "bf16=true\nlr=0.0001\nnum_query_groups=null\na=1\nb=x y\n");
}

TEST(Config, SaysWhatIsWrong) {
  EXPECT_EQ(refused("a.py", "x = 1"),
            "a.py: is a program, which is not run; give the configuration that it prints, as JSON, "
            "YAML or TOML");
  EXPECT_EQ(refused("a.yaml", "a: &x 1\nb: *x"),
            "a.yaml: line 1: must have no anchor (&name); write the values out");
  EXPECT_EQ(refused("a.yaml", "a: 1\nb: *x"),
            "a.yaml: line 2: must have no alias (*name); write the value out");
  EXPECT_EQ(refused("a.yaml", "a: !!python/object:os.system {}"),
            "a.yaml: line 1: must have no tag, got tag:yaml.org,2002:python/object:os.system");
  EXPECT_EQ(refused("a.yaml", "a: 1\na: 2"), "a.yaml: line 2: \"a\" is given twice");
  EXPECT_EQ(refused("a.yaml", "a: [1"),
            "a.yaml: line 2: must be YAML, got did not find expected ',' or ']'");
  EXPECT_EQ(refused("a.yaml", "a: " + std::string(100'000, '[')),
            "a.yaml: line 1: must nest at most 64 deep");
  EXPECT_EQ(refused("a.yaml", "- 1"), "a.yaml: line 1: must be a mapping of names to values");
  EXPECT_EQ(refused("a.json", R"({"a": 1, "a": 2})"), "a.json: \"a\" is given twice in one object");
  EXPECT_EQ(refused("a.json", "[1]"), "a.json: must be an object with settings");
  EXPECT_EQ(refused("a.toml", "a = 1\nb = ").substr(0, 27), "a.toml: line 2: must be TOM");
  EXPECT_EQ(refused("a.sh", ""), "a.sh: has no settings");
}

std::string changed(const std::string& name, const std::string& text,
                    const std::vector<ConfigChange>& changes) {
  return changed_text(config_of(name, text), changes);
}

TEST(Config, ChangesValuesAndNothingElse) {
  const std::vector<ConfigChange> changes = {{"p.tp", "2", "1"},
                                             {"p.pp", "4", "1"},
                                             {"p.cp", "1", "1"},
                                             {"q.mode", "none", "full", true},
                                             {"p.name", "zb", "", true}};
  EXPECT_EQ(changed("a.yaml", "# top\np:\n  tp: 8  # ranks\n  name: 'x'\nlast: 1\n", changes),
            "# top\np:\n  tp: 2  # ranks\n  name: zb\n  pp: 4\nlast: 1\nq:\n  mode: none\n");
  EXPECT_EQ(changed("a.yaml", "p: {tp: 8, name: x}\n", changes),
            "p: {tp: 2, name: zb, pp: 4}\nq:\n  mode: none\n");
  EXPECT_EQ(changed("a.toml", "[p]\ntp = 8  # ranks\nname = \"x\"\n[last]\na = 1\n", changes),
            "[p]\ntp = 2  # ranks\nname = \"zb\"\npp = 4\n[last]\na = 1\n\n[q]\nmode = \"none\"\n");
  EXPECT_EQ(
      changed("a.json", R"({"p": {"tp": 8, "z": 0.5}})", {{"p.tp", "2"}, {"q", "x", "", true}}),
      "{\n  \"p\": {\n    \"tp\": 2,\n    \"z\": 0.5\n  },\n  \"q\": \"x\"\n}\n");
}

TEST(Config, FindsValuesBehindOtherLetters) {
  const std::vector<ConfigChange> changes = {{"p.tp", "2"}, {"p.name", "zb", "", true}};
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(
      changed("a.yaml",
              mark + "# \u00e9\u4e2d\np:\n  \u00fc: \u00e4\n  tp: 8\n  name: '\u00e9'  # \u00df\n",
              changes),
      mark + "# \u00e9\u4e2d\np:\n  \u00fc: \u00e4\n  tp: 2\n  name: zb  # \u00df\n");
  EXPECT_EQ(changed("a.toml", "# \u4e2d\n[p]\nname = \"\u00e9\"  # \u00df\ntp = 8\n", changes),
            "# \u4e2d\n[p]\nname = \"zb\"  # \u00df\ntp = 2\n");
  EXPECT_EQ(changed("a.sh", "# \u4e2d\nrun --p.name \u00e9 --p.tp 8\n", changes),
            "# \u4e2d\nrun --p.name zb --p.tp 2\n");
}

TEST(Config, SaysWhereAValueHasNoPlace) {
  EXPECT_THROW(changed("a.json", R"({"p": true})", {{"p.tp", "2"}}), Error);
}

TEST(Config, ChangesArgumentsAndNothingElse) {
  const std::vector<ConfigChange> changes = {{"tp_size", "2"},
                                             {"pp_size", "4", "1"},
                                             {"bf16", "false", "false"},
                                             {"fp8", "true", "false"},
                                             {"method", "", ""}};
  EXPECT_EQ(changed("a.sh", "TP=8\nrun --tp-size $TP --bf16 x.py --method uniform 2>&1 | tee log\n",
                    changes),
            "TP=8\nrun --tp-size 2 --pp-size 4 --fp8  x.py  2>&1 | tee log\n");
  EXPECT_THROW(changed("a.sh", "run \"--tp-size 8\" --b 1", changes), Error);
  EXPECT_THROW(changed("log.txt", " a ... 1\n b ... 1\n c ... 1\n d ... 1\n e ... 1\n", changes),
               Error);
}

/// A key without sections goes beside those that are there, unless they are in different ones.
TEST(Config, PutsANewValueIntoTheSectionOfItsLike) {
  const std::vector<ConfigChange> changes = {{"tp_size", "2"}, {"pp_size", "4", "1"}};
  EXPECT_EQ(changed("a.yaml", "env:\n  x: 1\nargs:\n  --tp-size: 8\n  --lr: 1\n", changes),
            "env:\n  x: 1\nargs:\n  --tp-size: 2\n  --pp-size: 4\n  --lr: 1\n");
  EXPECT_THROW(changed("a.yaml", "a:\n  tp_size: 8\nb:\n  cp_size: 1\n",
                       {{"tp_size", "2"}, {"cp_size", "2"}, {"pp_size", "4", "1"}}),
               Error);
}

}  // namespace
}  // namespace foretrace
