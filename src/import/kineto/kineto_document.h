#pragma once

// Reads the text of a Chrome trace: an object with "traceEvents" and facts about the machine, in
// any order, or a bare list of events.

#include <string>
#include <utility>
#include <vector>

#include "foretrace/trace.h"
#include "import/kineto/kineto_records.h"
#include "import/kineto/merged_ranks.h"
#include "import/scan/text_window.h"

namespace foretrace {

class KinetoDocument {
 public:
  explicit KinetoDocument(PeekedSource& bytes, std::size_t window = TextWindow::kSize,
                          MergedRank rank = {})
      : bytes_(bytes),
        window_(bytes, window),
        at_(window_.end()),
        records_(trace_),
        rank_(std::move(rank)) {}

  /// Throws TraceError if the text is not JSON or contains no event that a trace has a place for.
  Trace read();

 private:
  /// The next character after white space; 0 at the end. Reads more of the file if necessary.
  char peek();
  bool slide() { return window_.slide(at_); }
  JsonCursor cursor() const { return {at_, window_.end()}; }
  std::int64_t offset() const { return window_.offset(at_); }

  void read_object();
  bool read_member();
  void read_events();
  bool read_event();
  bool leave_out_event(bool unfinished);
  bool parse_event(const char*& start, JsonCursor& cursor);
  bool skip_to_next_event();
  bool read_value(JsonValue& value, std::string& text);
  bool skip_value();
  void note_metadata(const std::string& key, const JsonValue& value);
  void note_rest();
  void note_cut(std::string_view where, std::int64_t at);
  void note_cut(std::string_view where) { note_cut(where, offset()); }
  void write_notes();
  [[noreturn]] void refuse() const;
  /// Throws TraceError if values nest too deeply.
  void check_depth(bool too_deep) const { foretrace::check_depth(too_deep, offset()); }

  Source& bytes_;
  TextWindow window_;
  const char* at_;
  Trace trace_;
  KinetoRecords records_;
  MergedRank rank_;
  KinetoEvent event_;
  JsonOddities odd_;
  std::string odd_example_;
  std::vector<std::string> keys_;  ///< Keys of the object, for an error message.
  std::int64_t base_ns_ = 0;
  std::int64_t damaged_ = 0;
  std::string damaged_example_;
  std::int64_t elements_ = 0;
  std::int64_t commas_missing_ = 0;
  bool is_list_ = false;
  bool has_events_ = false;
  std::int64_t unfinished_ = 0;  ///< Events whose end was not found.
  bool expects_comma_ = false;
  bool cut_ = false;
};

/// Read the top-level values "deviceProperties" and "distributedInfo". Invalid JSON becomes a note.
void read_device_properties(const std::string& json, Trace& trace);
void read_distributed_info(const std::string& json, Trace& trace);

}  // namespace foretrace
