#!/usr/bin/env python3
"""Checks that each header includes what it uses, itself or through other headers of this repository.

Only the text is read, so that all headers take about a second. It finds uses of
  * names and macros of C++ and C, by the table below: one of the headers behind a name must be included;
  * other libraries, by their namespaces and prefixes;
  * types, constants and functions that another header of this repository declares in the first column,
    where the formatter puts what belongs to a namespace.
It also finds headers that are included inside a table of entries. It does not find uses of types that are declared but
not defined, of variables, members and operators, nor of a name that an included header gives to something else.
scripts/check_headers.sh compiles the headers to find some of these.

    check_includes.py [ROOT]         prints one line per violation; exit status 1 if there is any
    check_includes.py --units OUT    writes one source file per module to the folder OUT, which includes
                                     the headers of the module
"""

import functools
import pathlib
import re
import sys

import check_layers
import violations

CONTAINERS = "array deque map queue set span string string_view unordered_map unordered_set vector"
# {headers, of which one is enough: names in std:: and macros}
STANDARD = {
    "algorithm": """any_of all_of none_of clamp copy count count_if equal fill find find_if lower_bound upper_bound max min minmax
        max_element min_element nth_element sort stable_sort transform unique make_heap push_heap pop_heap""",
    "array": "array",
    "atomic": "atomic memory_order memory_order_relaxed memory_order_acquire memory_order_release memory_order_acq_rel",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero endian popcount",
    "cassert": "assert",
    "cerrno": "errno",
    "charconv": "from_chars to_chars",
    "chrono": "chrono chrono_literals",
    "climits linux/limits.h": "PATH_MAX",
    "climits": "INT_MAX INT_MIN CHAR_BIT LLONG_MAX",
    "cmath": "abs ceil cbrt erf erfc exp floor fmod frexp hypot isfinite isnan ldexp llround log log2 lround pow round sqrt",
    "compare": "strong_ordering weak_ordering partial_ordering",
    "concepts": "integral floating_point same_as convertible_to invocable",
    "condition_variable": "condition_variable",
    "csignal": "SIGINT SIGTERM sig_atomic_t",
    f"cstddef {CONTAINERS} cstring cstdlib cstdio ctime": "size_t",
    "cstddef": "byte max_align_t nullptr_t offsetof ptrdiff_t",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t INT64_MAX UINT32_MAX UINT64_MAX",
    "cstring": "memchr memcmp memcpy memmove memset strcmp strlen",
    "deque": "deque",
    "exception": "current_exception exception exception_ptr rethrow_exception terminate",
    "filesystem": "filesystem",
    "functional": "function hash plus",
    "functional map set queue unordered_map unordered_set": "less greater equal_to",
    "future": "future packaged_task promise async",
    f"initializer_list {CONTAINERS}": "initializer_list",
    "ios iosfwd ostream istream streambuf iostream": "streamsize",
    "iosfwd ostream iostream fstream sstream": "ostream",
    "iosfwd istream iostream fstream sstream": "istream",
    "iosfwd fstream": "ofstream ifstream",
    "iosfwd sstream": "ostringstream istringstream",
    "iterator": "back_inserter inserter next prev",
    f"iterator {CONTAINERS}": "begin distance end size ssize",
    f"{CONTAINERS}": "erase_if",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr default_delete enable_shared_from_this",
    "mutex": "lock_guard mutex once_flag call_once scoped_lock unique_lock",
    "new": "bad_alloc launder",
    "numeric": "accumulate exclusive_scan gcd iota lcm midpoint partial_sum",
    "optional": "nullopt nullopt_t optional",
    "queue": "priority_queue queue",
    "random": "minstd_rand",
    "ranges": "ranges views",
    "set": "multiset set",
    "span": "dynamic_extent span",
    "stdexcept": "domain_error invalid_argument length_error logic_error out_of_range runtime_error",
    "streambuf": "streambuf",
    "string": "getline stod stoll string to_string",
    "string_view": "string_view",
    "system_error charconv": "errc",
    "system_error": "error_code system_error",
    "thread": "jthread this_thread thread",
    "tuple": "apply forward_as_tuple make_tuple tie tuple tuple_size_v",
    "type_traits": """conditional_t decay_t enable_if_t invoke_result_t is_aggregate_v is_arithmetic_v is_constant_evaluated is_enum_v is_same_v
        is_standard_layout_v is_trivially_copyable_v remove_cvref_t remove_const_t underlying_type_t""",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set",
    "utility map unordered_map": "make_pair pair",
    f"utility memory {CONTAINERS}": "move",
    "utility": "as_const declval exchange forward in_range index_sequence make_index_sequence swap cmp_less to_underlying",
    "vector": "vector",
    "variant": "get_if holds_alternative monostate variant visit",
}
# {names in other libraries: how their headers begin}
OTHERS = {
    r"(nlohmann)::": "nlohmann/", r"(CLI)::": "CLI/", r"(fmt)::": "fmt/", r"(boost)::": "boost/", r"(pybind11)::": "pybind11/",
    r"(sqlite3\w*)": "sqlite3.h", r"(archive_\w+)\(": "archive", r"(pthread_\w+)": "pthread.h",
}
PLACES = {name: headers.split() for headers, names in STANDARD.items() for name in names.split()}
MACROS = re.compile(r"\b(%s)\b" % "|".join(name for name in PLACES if name.isupper() or name in ("assert", "errno", "offsetof")))

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]', re.MULTILINE)
NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'""", re.DOTALL)
STD_NAME = re.compile(r"\bstd::(\w+)")
TYPE = r"(?:struct|class|enum class|enum|union|concept)\s+(?:[A-Z_]+\s+)?(\w+)"
ALIAS = r"using\s+(\w+)\s*="
CONSTANT = r"(?:inline |static |extern )*const(?:expr|init)?\s[^;(]*?\b(k[A-Z]\w*)"
FUNCTION = r"(?:template\s*<.*>\s*)?(?:\[\[\w+\]\]\s*)?[\w:][\w:<>,*&\s]*?[\s*&](\w+)\("
# Declarations in the first column, where `struct X;` alone does not make a header the home of X.
HOMES = [re.compile("^(?:template.*>\n?)?" + TYPE + r"[^;{]*\{", re.MULTILINE), re.compile("^(?:template.*>\n?)?" + ALIAS, re.MULTILINE),
         re.compile("^" + CONSTANT, re.MULTILINE), re.compile("^" + FUNCTION, re.MULTILINE)]
# Declarations anywhere, parameters of templates among them.
DECLARED = [re.compile(r"\b" + TYPE), re.compile(r"\b" + ALIAS), re.compile(r"\btypename(?:\.\.\.)?\s+(\w+)"),
            re.compile(r"\bnamespace\s+(\w+)"), re.compile(r"\bclass(?:\.\.\.)?\s+(\w+)"), re.compile(r"\b(k[A-Z]\w*)\s*[={\[]"),
            re.compile(r"(?:\w|(?<! )>|\])(?<!\breturn)(?<!\bthrow)(?<!\belse)[*&]*\s+(\w+)\(")]
# Names of types and constants, and of functions that are called: what comes before is no type.
TYPE_USE = re.compile(r"(?<![\w.])(?<!->)((?:[A-Z]|k[A-Z])\w*[a-z]\w*)\b")
CALL = re.compile(r"(?:[(,={;!?+*/<|&]|\breturn|(?<!:):|^)\s*([a-z]\w*)(?=\()", re.MULTILINE)


class Header:
    """What a header says: its includes, what it declares, and what it uses."""

    def __init__(self, text):
        self.includes = INCLUDE.findall(text)
        code = NO_CODE.sub(lambda match: " " if match.group().startswith("/") else '""', text)
        code = re.sub(r"^\s*#\s*include.*$", "", code, flags=re.MULTILINE)
        self.homes = set().union(*(pattern.findall(code) for pattern in HOMES))
        self.declared = self.homes.union(*(pattern.findall(code) for pattern in DECLARED))
        self.standard = set(STD_NAME.findall(code)) | set(MACROS.findall(code))
        self.others = {(name, place) for names, place in OTHERS.items() for name in re.findall(r"\b" + names, code)}
        self.used = set(TYPE_USE.findall(code)) | set(CALL.findall(code))


class Tree:
    """All headers of a tree, by the names that #include gives them."""

    def __init__(self, root):
        self.headers = {}
        for place in ("include", "src"):
            for path in sorted((root / place).rglob("*.h")):
                # Headers of another compiler (wasm) stand for those of libraries.
                if "explorer/wasm/headers" not in path.as_posix():
                    name = path.relative_to(root / place).as_posix()
                    self.headers[name] = (f"{place}/{name}", Header(path.read_text(encoding="utf-8")))

    @functools.cache
    def reached(self, name):
        """(headers of this repository, other headers) that a header includes, directly or not, itself among them."""
        ours, others, left = set(), set(), [name]
        while left:
            name = left.pop()
            if name not in self.headers:
                others.add(name)
            elif name not in ours:
                ours.add(name)
                left.extend(self.headers[name][1].includes)
        return ours, others


def check_places(root):
    """Headers inside a table are nothing if they were included before, as they often are in units of several files."""
    for path in sorted((root / "src").rglob("*.cc")):
        rest = path.read_text(encoding="utf-8").partition("\n  static const ")[2]
        for header in re.findall(r'^#include "(.*\.h)"', rest, re.MULTILINE):
            yield f"{path.relative_to(root)}: includes {header} inside a body"


def check(root):
    yield from check_places(root)
    tree = Tree(root)
    homes = {}
    for path, header in tree.headers.values():
        for name in header.homes:
            homes.setdefault(name, []).append(path)
    # A template finds what several headers declare by the type it is made for.
    homes = {name: paths[0] for name, paths in homes.items() if len(paths) == 1}
    for name, (path, header) in tree.headers.items():
        ours, others = tree.reached(name)
        for used in sorted(header.standard):
            if used not in PLACES:
                yield f"{path}: uses std::{used}, which the table of scripts/check_includes.py does not have"
            elif others.isdisjoint(PLACES[used]):
                yield f"{path}: uses {used} without including <{PLACES[used][0]}>"
        known = set().union(*(tree.headers[other][1].declared for other in ours))
        for used, place in sorted(header.others):
            if used not in known and not any(other.startswith(place) for other in others):
                yield f"{path}: uses {used} without including <{place}...>"
        for used in sorted((header.used & homes.keys()) - known):
            yield f"{path}: uses {used} without including {homes[used]}"


def write_units(root, out):
    """Headers that reach the fewest others come first, so that little precedes them which could hide a missing
    include. Each is included twice, because a second inclusion must change nothing.
    """
    tree = Tree(root)
    layers = check_layers.Layers((root / "src" / "LAYERS").read_text(encoding="utf-8"))
    modules = {}
    for name in sorted(tree.headers, key=lambda name: (sum(map(len, tree.reached(name))), name)):
        folder, _, rest = name.partition("/")
        module = layers.owner[rest] if folder == "foretrace" else folder
        if name == "foretrace/collect.h":  # Declares a function that has the name of the module's namespace.
            module = "collect_public"
        modules.setdefault(module, []).append(f'#include "{name}"\n')
    for module, lines in modules.items():
        (out / f"{module}.cc").write_text("".join(2 * lines), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--units"]:
        write_units(pathlib.Path(__file__).resolve().parent.parent, pathlib.Path(sys.argv[2]))
        sys.exit()
    sys.exit(violations.main(check))
