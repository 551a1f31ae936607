// Shows the state of a caching allocator after a short program of malloc and free.

#include "document/document.h"

#include <algorithm>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "base/json_text.h"
#include "foretrace/allocator.h"
#include "foretrace/answer/memory.h"

namespace foretrace {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kPictureWidth = 64;
constexpr std::size_t kBlocksListed = 12;

/// Returns the size in binary units, which the allocator itself uses.
std::string binary(std::int64_t bytes) {
  constexpr std::string_view kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) value /= 1024, ++unit;
  std::string text = to_fixed(value, 2);
  while (text.ends_with('0') && text.find('.') != std::string::npos) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text + std::string(kUnits[unit]);
}

/// Draws a segment with one character for each `unit` bytes, which shows the block in their middle.
std::string picture_of(const AllocatorSegment& segment, std::int64_t unit,
                       const std::vector<std::string>& names) {
  std::string cells;
  std::size_t at = 0;
  for (std::int64_t begin = 0; begin < segment.bytes; begin += unit) {
    const std::int64_t middle = std::min(begin + unit / 2, segment.bytes - 1);
    const auto end_of = [&](const AllocatorBlock& block) {
      return static_cast<std::int64_t>(block.address - segment.address) + block.bytes;
    };
    while (end_of(segment.blocks[at]) <= middle) ++at;
    const AllocatorBlock& block = segment.blocks[at];
    if (block.handle < 0) {
      cells += '.';
    } else {
      const char first = names[static_cast<std::size_t>(block.handle)].front();
      cells += block.pending ? '~' : (first > 0 ? first : '?');
    }
  }
  return cells;
}

std::string list_of(const AllocatorSegment& segment, const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < segment.blocks.size(); ++i) {
    if (i == kBlocksListed) {
      return fmt::format("{}, and {} more", list, segment.blocks.size() - i);
    }
    const AllocatorBlock& block = segment.blocks[i];
    list += i == 0 ? "" : ", ";
    list += block.handle < 0 ? "free" : names[static_cast<std::size_t>(block.handle)];
    list += ' ' + binary(block.bytes);
    if (block.pending) list += " (waits)";
  }
  return list;
}

void write_segments(const AllocatorProgram& program, const AllocatorOutcome& outcome,
                    std::ostream& out) {
  std::int64_t largest = 0;
  for (const AllocatorSegment& segment : outcome.segments)
    largest = std::max(largest, segment.bytes);
  std::int64_t unit = 512;
  while (largest / unit > static_cast<std::int64_t>(kPictureWidth)) unit *= 2;
  if (outcome.segments.empty()) {
    out << "no segments\n";
    return;
  }
  out << "segments: a character is " << binary(unit)
      << ", \".\" is free, \"~\" waits for a stream\n";
  for (const AllocatorSegment& segment : outcome.segments) {
    const std::string kind =
        fmt::format("{}{}, stream {}", segment.is_expandable ? "expandable " : "",
                    segment.is_small ? "small" : "large", segment.stream);
    out << fmt::format("  {:<16} {:<9} |{}|  {}\n", kind, binary(segment.bytes),
                       picture_of(segment, unit, program.names), list_of(segment, program.names));
  }
}

void write_levels(const AllocatorOutcome& outcome, std::ostream& out) {
  const auto row = [&](std::string_view name, std::int64_t AllocatorLevels::*level) {
    out << fmt::format("{:<15}{:<13}{}\n", name, binary(outcome.levels.*level),
                       binary(outcome.peaks.*level));
  };
  out << fmt::format("\n{:<15}{:<13}{}\n", "", "at the end", "peak");
  row("allocated", &AllocatorLevels::allocated);
  row("active", &AllocatorLevels::active);
  row("requested", &AllocatorLevels::requested);
  row("reserved", &AllocatorLevels::reserved);
  row("inactive split", &AllocatorLevels::inactive_split);
  out << "\nfragmentation  " << to_fixed(100 * outcome.levels.fragmentation(), 1)
      << " % of what is reserved is not allocated\n"
      << "driver calls   " << outcome.driver_mallocs << " to get memory, " << outcome.driver_frees
      << " to return it; " << outcome.retries << " after the whole cache was emptied\n";
}

void write_verdict(const AllocatorProgram& program, const AllocatorOutcome& outcome,
                   std::ostream& out) {
  if (!outcome.out_of_memory) {
    if (program.settings.limit > Bytes{})
      out << "fits           within " << binary(program.settings.limit.count) << '\n';
    return;
  }
  const OutOfMemory& refused = *outcome.out_of_memory;
  out << "out of memory  line " << outcome.refused_line << ": "
      << program.names[static_cast<std::size_t>(refused.handle)] << " asks for "
      << binary(refused.requested) << ", which takes a segment of " << binary(refused.segment)
      << ";\n               " << binary(refused.levels.reserved) << " of "
      << binary(program.settings.limit.count) << " are reserved, "
      << binary(refused.levels.reserved - refused.levels.active)
      << " of them free, in pieces of at most " << binary(refused.largest_free) << '\n';
}

OrderedJson json_of(const AllocatorLevels& levels) {
  return {{"allocated_bytes", levels.allocated},
          {"active_bytes", levels.active},
          {"requested_bytes", levels.requested},
          {"reserved_bytes", levels.reserved},
          {"inactive_split_bytes", levels.inactive_split}};
}

OrderedJson json_of(const AllocatorSegment& segment, const std::vector<std::string>& names) {
  OrderedJson blocks = OrderedJson::array();
  for (const AllocatorBlock& block : segment.blocks) {
    OrderedJson one{{"address", block.address}, {"bytes", block.bytes}};
    one["state"] = block.handle < 0 ? "free" : block.pending ? "pending" : "used";
    if (block.handle >= 0) {
      one["name"] = names[static_cast<std::size_t>(block.handle)];
      one["requested_bytes"] = block.requested;
    }
    blocks.push_back(std::move(one));
  }
  return {{"address", segment.address},
          {"bytes", segment.bytes},
          {"stream", segment.stream},
          {"pool", segment.is_small ? "small" : "large"},
          {"expandable", segment.is_expandable},
          {"blocks", std::move(blocks)}};
}

}  // namespace

nlohmann::ordered_json to_json(const AllocatorProgram& program, const AllocatorOutcome& outcome) {
  AllocatorSettings settings = program.settings;
  OrderedJson json{{"schema", "foretrace.allocator/1"},
                   {"settings", OrderedJson(write_json(settings))},
                   {"fits", !outcome.out_of_memory},
                   {"now", json_of(outcome.levels)},
                   {"peak", json_of(outcome.peaks)},
                   {"fragmentation", outcome.levels.fragmentation()},
                   {"driver_mallocs", outcome.driver_mallocs},
                   {"driver_frees", outcome.driver_frees},
                   {"retries", outcome.retries},
                   {"segments", OrderedJson::array()}};
  for (const AllocatorSegment& segment : outcome.segments) {
    json["segments"].push_back(json_of(segment, program.names));
  }
  if (outcome.out_of_memory) {
    const OutOfMemory& refused = *outcome.out_of_memory;
    json["out_of_memory"] = {{"line", outcome.refused_line},
                             {"name", program.names[static_cast<std::size_t>(refused.handle)]},
                             {"requested_bytes", refused.requested},
                             {"segment_bytes", refused.segment},
                             {"largest_free_bytes", refused.largest_free}};
  }
  return json;
}

Document document_of(const AllocatorProgram& program, const AllocatorOutcome& outcome) {
  std::ostringstream blocks, end;
  write_segments(program, outcome, blocks);
  write_levels(outcome, blocks);
  write_verdict(program, outcome, end);
  std::string verdict = end.str();
  Document document("Allocator", "What the allocator does");
  document.sum_up(verdict.substr(0, verdict.find_last_not_of('\n') + 1));
  document.section("Blocks", Document::Heading::not_in_text)
      .draw({.letters = blocks.str() + verdict});
  return document;
}

}  // namespace foretrace
