#include "trace/source_frame.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace foretrace {
namespace {

constexpr std::string_view kInstalled[] = {"site-packages/", "dist-packages/"};
constexpr std::string_view kNotebookCell = "<notebook cell>";

/// Modules of the standard library that appear on stacks of training programs, sorted.
constexpr std::string_view kStandard[] = {"__future__",
                                          "_collections_abc",
                                          "_weakrefset",
                                          "abc",
                                          "argparse",
                                          "ast",
                                          "asyncio",
                                          "bdb",
                                          "bz2",
                                          "codecs",
                                          "collections",
                                          "concurrent",
                                          "contextlib",
                                          "contextvars",
                                          "copy",
                                          "copyreg",
                                          "csv",
                                          "ctypes",
                                          "dataclasses",
                                          "datetime",
                                          "dis",
                                          "encodings",
                                          "enum",
                                          "fnmatch",
                                          "functools",
                                          "genericpath",
                                          "glob",
                                          "gzip",
                                          "hashlib",
                                          "heapq",
                                          "hmac",
                                          "http",
                                          "importlib",
                                          "inspect",
                                          "io",
                                          "json",
                                          "linecache",
                                          "locale",
                                          "logging",
                                          "lzma",
                                          "multiprocessing",
                                          "ntpath",
                                          "numbers",
                                          "opcode",
                                          "operator",
                                          "os",
                                          "pathlib",
                                          "pickle",
                                          "pkgutil",
                                          "posixpath",
                                          "pprint",
                                          "queue",
                                          "random",
                                          "re",
                                          "reprlib",
                                          "runpy",
                                          "selectors",
                                          "shutil",
                                          "socket",
                                          "socketserver",
                                          "sre_compile",
                                          "sre_parse",
                                          "ssl",
                                          "stat",
                                          "string",
                                          "struct",
                                          "subprocess",
                                          "sysconfig",
                                          "tarfile",
                                          "tempfile",
                                          "textwrap",
                                          "threading",
                                          "tokenize",
                                          "traceback",
                                          "types",
                                          "typing",
                                          "unittest",
                                          "urllib",
                                          "uuid",
                                          "warnings",
                                          "weakref",
                                          "xml",
                                          "zipfile",
                                          "zoneinfo"};

/// Packages that training programs import, sorted.
constexpr std::string_view kPackages[] = {"PIL",          "accelerate",
                                          "apex",         "bitsandbytes",
                                          "cv2",          "datasets",
                                          "deepspeed",    "detectron2",
                                          "diffusers",    "dill",
                                          "dlrm",         "einops",
                                          "fairscale",    "fairseq",
                                          "flash_attn",   "fsspec",
                                          "horovod",      "huggingface_hub",
                                          "hydra",        "ignite",
                                          "ipykernel",    "jax",
                                          "joblib",       "keras",
                                          "lightning",    "lightning_fabric",
                                          "matplotlib",   "megatron",
                                          "mmcv",         "mmengine",
                                          "monai",        "numba",
                                          "numpy",        "omegaconf",
                                          "packaging",    "pandas",
                                          "peft",         "pyarrow",
                                          "pydantic",     "pytorch_lightning",
                                          "ray",          "safetensors",
                                          "scipy",        "sentencepiece",
                                          "sklearn",      "tensorboard",
                                          "tensorflow",   "timm",
                                          "tokenizers",   "torch_geometric",
                                          "torchaudio",   "torchdata",
                                          "torchmetrics", "torchrec",
                                          "torchtext",    "torchvision",
                                          "tqdm",         "transformer_engine",
                                          "transformers", "triton",
                                          "trl",          "vllm",
                                          "wandb",        "webdataset",
                                          "xformers"};

constexpr std::string_view kFramework[] = {"functorch", "torch", "torchgen"};

template <std::size_t size>
bool is_among(std::string_view name, const std::string_view (&names)[size]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Returns "torch" for "torch/nn/modules/linear.py" and "typing" for "typing.py".
std::string_view top_package(std::string_view file) {
  const std::string_view first = file.substr(0, file.find('/'));
  return first.ends_with(".py") ? first.substr(0, first.size() - 3) : first;
}

/// The part after "site-packages/" or "dist-packages/"; empty if there is none.
std::string_view installed_part(std::string_view file) {
  for (const std::string_view folder : kInstalled) {
    const std::size_t at = file.rfind(folder);
    if (at != std::string_view::npos) return file.substr(at + folder.size());
  }
  return {};
}

/// The part after "/lib/python3.11/"; empty if there is none.
std::string_view standard_part(std::string_view file) {
  constexpr std::string_view kFolder = "/python";
  for (std::size_t at = file.find(kFolder); at != std::string_view::npos;
       at = file.find(kFolder, at + 1)) {
    const std::size_t end = file.find('/', at + 1);
    if (end == std::string_view::npos) return {};
    const std::string_view version = file.substr(at + kFolder.size(), end - at - kFolder.size());
    const std::string_view front = file.substr(0, at);
    const bool of_python =
        version.size() > 1 && version[1] == '.' && (version[0] == '3' || version[0] == '2');
    if (of_python && (front.ends_with("lib") || front.ends_with("lib64")))
      return file.substr(end + 1);
  }
  return {};
}

bool is_absolute(std::string_view file) {
  return file.starts_with('/') || (file.size() > 2 && file[1] == ':');
}

bool is_notebook_cell(std::string_view file) {
  return file.starts_with("<ipython-input") || file.find("/ipykernel_") != std::string_view::npos;
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || value < 0) return {};
  return value;
}

}  // namespace

std::optional<SourceFrame> source_frame(std::string_view text) {
  const bool cell = is_notebook_cell(text);
  for (const std::string_view sign : {".py(", ".py:", ">("}) {
    if (sign == ">(" && !cell) continue;
    const std::size_t at = text.find(sign);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = text.substr(at + sign.size());
    const std::optional<int> line = number(rest);
    if (!line) continue;
    const std::size_t digits = rest.find_first_not_of("0123456789");
    std::string_view function = digits == std::string_view::npos ? "" : rest.substr(digits);
    function.remove_prefix(std::min(function.find_first_not_of("): "), function.size()));
    return SourceFrame{text.substr(0, at + sign.size() - 1), function, *line};
  }
  return {};
}

CodeOrigin code_origin(std::string_view file) {
  if (is_notebook_cell(file)) return CodeOrigin::user;
  if (file.starts_with('<')) return CodeOrigin::standard;
  const std::string_view installed = installed_part(file);
  if (!installed.empty()) {
    return is_among(top_package(installed), kFramework) ? CodeOrigin::framework
                                                        : CodeOrigin::package;
  }
  if (!standard_part(file).empty()) return CodeOrigin::standard;
  if (is_absolute(file)) {
    return file.find("/torch/") == std::string_view::npos ? CodeOrigin::user
                                                          : CodeOrigin::framework;
  }
  const std::string_view package = top_package(file);
  if (is_among(package, kFramework)) return CodeOrigin::framework;
  if (is_among(package, kStandard)) return CodeOrigin::standard;
  return is_among(package, kPackages) ? CodeOrigin::package : CodeOrigin::user;
}

std::string portable_file(std::string_view file) {
  if (is_notebook_cell(file)) return std::string(kNotebookCell);
  const std::string_view installed = installed_part(file);
  if (!installed.empty()) return std::string(installed);
  const std::string_view standard = standard_part(file);
  return std::string(standard.empty() ? file : standard);
}

}  // namespace foretrace
