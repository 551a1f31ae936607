// Allocator programs: one step per line, words separated by blanks; "#" begins a comment.
//
// Steps run one after the other without a clock; the number of a step is its time. Work on a stream
// is done at the next `sync` on it, so a recorded block is held back from its `free` to the next
// `sync` on that stream.

#include <algorithm>
#include <charconv>
#include <fmt/core.h>
#include <istream>
#include <map>
#include <unordered_map>

#include "base/fields/assignments.h"
#include "foretrace/allocator.h"
#include "foretrace/error.h"

namespace foretrace {
namespace {

using Verb = AllocatorStep::Verb;

constexpr std::int64_t kMaxStream = 1'000'000;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kBlanks = " \t\r";
  for (std::size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

class ProgramParser {
 public:
  explicit ProgramParser(const AllocatorSettings& settings) { program_.settings = settings; }

  AllocatorProgram parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      within("line " + std::to_string(line_), [&] { read(words_of(text.substr(0, end))); });
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    within("settings", [&] { const CachingAllocator checked(program_.settings); });
    set_busy_until();
    return std::move(program_);
  }

 private:
  using Words = std::vector<std::string_view>;

  void read(const Words& words) {
    static const std::map<std::string_view, void (ProgramParser::*)(const Words&)> readers = {
        {"conf", &ProgramParser::read_conf},     {"empty_cache", &ProgramParser::read_empty_cache},
        {"free", &ProgramParser::read_free},     {"limit", &ProgramParser::read_limit},
        {"malloc", &ProgramParser::read_malloc}, {"record", &ProgramParser::read_record},
        {"set", &ProgramParser::read_set},       {"sync", &ProgramParser::read_sync},
    };
    if (words.empty()) return;
    const auto reader = readers.find(words[0]);
    if (reader != readers.end()) return (this->*reader->second)(words);
    std::vector<std::string_view> names;
    for (const auto& [name, ignored] : readers) names.push_back(name);
    throw Error(fmt::format("there is no step \"{}\"{}", words[0], did_you_mean(words[0], names)));
  }

  void expect(const Words& words, std::size_t least, std::size_t most, std::string_view form) {
    if (words.size() >= least && words.size() <= most) return;
    throw Error(fmt::format("must be \"{}\", got {} {} after \"{}\"", form, words.size() - 1,
                            words.size() == 2 ? "word" : "words", words[0]));
  }

  static void check_name(std::string_view name) {
    const auto is_shown = [](char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; };
    if (std::all_of(name.begin(), name.end(), is_shown)) return;
    throw Error("a name must consist of printable characters");
  }

  void expect_before_steps(std::string_view word) const {
    if (program_.steps.empty()) return;
    throw Error(fmt::format("\"{}\" must come before the first step, which is in line {}", word,
                            program_.steps.front().line));
  }

  static std::int64_t read_stream(std::string_view word) {
    constexpr std::string_view kName = "stream=";
    std::int64_t stream = -1;
    if (word.starts_with(kName)) {
      const std::string_view number = word.substr(kName.size());
      const char* const end = number.data() + number.size();
      const auto read = std::from_chars(number.data(), end, stream);
      if (read.ec != std::errc{} || read.ptr != end) stream = -1;
    }
    if (stream >= 0 && stream <= kMaxStream) return stream;
    throw Error(fmt::format("must be stream=NUMBER, from 0 to {}, got \"{}\"", kMaxStream, word));
  }

  void read_conf(const Words& words) {
    expect(words, 2, 100, "conf NAME:VALUE,...");
    expect_before_steps(words[0]);
    std::string text;
    for (std::size_t i = 1; i < words.size(); ++i) text += words[i];
    read_alloc_conf(text, program_.settings);
  }
  void read_set(const Words& words) {
    expect(words, 2, 2, "set NAME=VALUE,...");
    expect_before_steps(words[0]);
    read_assigned(words[1], program_.settings);
  }
  void read_limit(const Words& words) {
    expect(words, 2, 2, "limit BYTES");
    expect_before_steps(words[0]);
    program_.settings.limit = parse_bytes(words[1]);
    if (program_.settings.limit <= Bytes{}) throw Error("must be more than 0B");
  }

  void read_malloc(const Words& words) {
    expect(words, 3, 4, "malloc NAME BYTES [stream=NUMBER]");
    check_name(words[1]);
    const auto [used, is_new] = in_use_.try_emplace(words[1], line_);
    if (!is_new) {
      throw Error(fmt::format("\"{}\" is in use since line {}", words[1], used->second));
    }
    const Bytes bytes = parse_bytes(words[2]);
    if (bytes <= Bytes{}) throw Error(fmt::format("must be at least 1B, got \"{}\"", words[2]));
    const std::int64_t stream = words.size() > 3 ? read_stream(words[3]) : 0;
    add({.verb = Verb::malloc, .name = number_of(words[1]), .bytes = bytes, .stream = stream});
  }
  void read_free(const Words& words) {
    expect(words, 2, 2, "free NAME");
    expect_used(words[1]);
    in_use_.erase(words[1]);
    add({.verb = Verb::free, .name = number_of(words[1])});
  }
  void read_record(const Words& words) {
    expect(words, 3, 3, "record NAME stream=NUMBER");
    expect_used(words[1]);
    const std::int64_t stream = read_stream(words[2]);
    add({.verb = Verb::record, .name = number_of(words[1]), .stream = stream});
  }
  void read_sync(const Words& words) {
    expect(words, 1, 2, "sync [stream=NUMBER]");
    add({.verb = Verb::sync, .stream = words.size() > 1 ? read_stream(words[1]) : -1});
  }
  void read_empty_cache(const Words& words) {
    expect(words, 1, 1, "empty_cache");
    add({.verb = Verb::empty_cache});
  }

  void add(AllocatorStep step) {
    step.line = line_;
    program_.steps.push_back(step);
  }

  void expect_used(std::string_view name) const {
    if (in_use_.contains(name)) return;
    std::vector<std::string_view> names;
    for (const auto& [used, ignored] : in_use_) names.push_back(used);
    throw Error(fmt::format("\"{}\" is not in use{}", name, did_you_mean(name, names)));
  }

  std::uint32_t number_of(std::string_view name) {
    const auto [found, is_new] =
        numbers_.try_emplace(name, static_cast<std::uint32_t>(program_.names.size()));
    if (is_new) program_.names.emplace_back(name);
    return found->second;
  }

  /// Finds, from the last step to the first, when each recorded stream is done with its block.
  void set_busy_until() {
    constexpr Nanoseconds kNever = Nanoseconds::max();
    std::map<std::int64_t, std::vector<std::size_t>> syncs;
    for (std::size_t i = 0; i < program_.steps.size(); ++i) {
      const AllocatorStep& step = program_.steps[i];
      if (step.verb == Verb::sync) syncs[step.stream].push_back(i);
    }
    const auto next_sync = [&](std::int64_t stream, std::size_t from) {
      const std::vector<std::size_t>& of_stream = syncs[stream];
      const auto found = std::upper_bound(of_stream.begin(), of_stream.end(), from);
      return found == of_stream.end() ? kNever : Nanoseconds(*found);
    };
    std::unordered_map<std::uint32_t, std::size_t> freed;
    for (std::size_t i = program_.steps.size(); i-- > 0;) {
      AllocatorStep& step = program_.steps[i];
      if (step.verb == Verb::free) freed[step.name] = i;
      if (step.verb == Verb::malloc) freed.erase(step.name);
      if (step.verb != Verb::record) continue;
      const auto at = freed.find(step.name);
      step.busy_until = at == freed.end() ? kNever
                                          : std::min(next_sync(step.stream, at->second),
                                                     next_sync(-1, at->second));
    }
  }

  AllocatorProgram program_;
  std::size_t line_ = 0;
  /// Names in use, with the line of their malloc.
  std::map<std::string_view, std::size_t> in_use_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace

AllocatorProgram parse_allocator_program(std::string_view text, const AllocatorSettings& settings) {
  return ProgramParser(settings).parse(text);
}

AllocatorProgram read_allocator_program(std::istream& in) {
  constexpr std::size_t kMax = std::size_t{64} << 20;
  std::string text;
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk), in.gcount() > 0) {
    text.append(chunk, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMax) throw Error("is more than 64 MiB of text");
  }
  if (in.bad()) throw Error("cannot be read");
  constexpr std::string_view kHelpHint = "; see `foretrace help memory replay`";
  if (text.find('\0') != std::string::npos)
    throw Error(fmt::format("is not text{} for the steps it may contain", kHelpHint));
  AllocatorProgram program = parse_allocator_program(text);
  if (program.steps.empty()) throw Error(fmt::format("has no steps{}", kHelpHint));
  return program;
}

AllocatorOutcome run_allocator_program(const AllocatorProgram& program) {
  CachingAllocator allocator(program.settings);
  AllocatorOutcome outcome;
  for (std::size_t i = 0; i < program.steps.size() && !outcome.out_of_memory; ++i) {
    const AllocatorStep& step = program.steps[i];
    const Nanoseconds now(i);
    switch (step.verb) {
      case Verb::malloc:
        outcome.out_of_memory = allocator.malloc(step.name, step.bytes, step.stream, now);
        if (outcome.out_of_memory) outcome.refused_line = step.line;
        break;
      case Verb::free:
        allocator.free(step.name, now);
        break;
      case Verb::record:
        allocator.record_stream(step.name, step.stream, step.busy_until);
        break;
      case Verb::sync:
        break;
      case Verb::empty_cache:
        allocator.empty_cache();
    }
  }
  outcome.levels = allocator.levels();
  outcome.peaks = allocator.peaks();
  outcome.segments = allocator.segments();
  outcome.driver_mallocs = allocator.driver_mallocs();
  outcome.driver_frees = allocator.driver_frees();
  outcome.retries = allocator.retries();
  return outcome;
}

}  // namespace foretrace
