// Converts between JSON and plain data. Some tools store snapshots as JSON, and the metadata of a
// trace is JSON.

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "foretrace/error.h"
#include "import/torch_memory/torch_memory.h"

namespace foretrace {

namespace {

using nlohmann::json;

/// Builds values from the events of nlohmann's parser, without recursion.
class PlainDataBuilder : public nlohmann::json_sax<json> {
 public:
  PlainDataBuilder(PlainData& data, std::size_t size) : data_(data), size_(size) {}

  bool null() override { return add(data_.make(PlainKind::none)); }
  bool boolean(bool value) override { return add(data_.make(PlainKind::boolean, value ? 1 : 0)); }
  bool number_integer(number_integer_t value) override { return add(data_.make_integer(value)); }
  bool number_unsigned(number_unsigned_t value) override {
    return add(data_.make_integer(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add(data_.make_real(value));
  }
  bool string(string_t& value) override { return add(data_.make_copied_text(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(PlainKind::dict); }
  bool start_array(std::size_t) override { return open(PlainKind::list); }
  bool key(string_t& value) override { return add(data_.make_copied_text(value)); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t at, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw TraceError("must be JSON, but is not at byte " + std::to_string(at));
  }

 private:
  bool add(PlainValue value) {
    data_.check_size(size_);
    if (open_.empty()) {
      data_.root = value;
    } else {
      data_.append(open_.back(), value);
    }
    return true;
  }
  bool open(PlainKind kind) {
    if (open_.size() >= kMaxNesting)
      throw TraceError(fmt::format("values nest deeper than {} levels", kMaxNesting));
    const PlainValue container = data_.make_container(kind);
    add(container);
    open_.push_back(container);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  PlainData& data_;
  std::size_t size_;  ///< Bytes of the text.
  std::vector<PlainValue> open_;
};

class Writer {
 public:
  Writer(const PlainData& data, std::size_t most) : data_(data), most_(most) {}

  bool write(PlainValue value, int depth = 0) {
    if (depth > kMaxNesting) return false;
    switch (value.kind()) {
      case PlainKind::none:
      case PlainKind::callable:
        return put("null");
      case PlainKind::boolean:
        return put(value.index() != 0 ? "true" : "false");
      case PlainKind::integer:
      case PlainKind::big_integer:
        return put(std::to_string(*data_.integer(value)));
      case PlainKind::real:
        return put(json_line(json(data_.real(value))));
      case PlainKind::bytes:
        return put("\"\"");
      case PlainKind::text:
        return put_text(data_.text(value));
      case PlainKind::list:
      case PlainKind::dict:
        return put_items(value, depth);
    }
    return false;
  }

  std::string take() { return std::move(out_); }

 private:
  bool put(std::string_view text) {
    out_ += text;
    return out_.size() <= most_;
  }
  bool put_text(std::string_view text) {
    if (text.size() > most_) return false;
    return put(json_line(json(text)));
  }
  /// Writes a key of a dict as text, because JSON allows no other keys.
  bool put_key(PlainValue key) {
    if (key.kind() == PlainKind::text) return put_text(data_.text(key));
    if (const auto number = data_.integer(key)) return put_text(std::to_string(*number));
    return put("\"?\"");
  }
  bool put_items(PlainValue value, int depth) {
    const auto items = data_.items(value);
    const bool is_dict = value.is_dict();
    put(is_dict ? "{" : "[");
    for (std::size_t i = 0; i < items.size(); ++i) {
      const bool is_key = is_dict && i % 2 == 0;
      if (i > 0) put(is_dict && !is_key ? ":" : ",");
      if (!(is_key ? put_key(items[i]) : write(items[i], depth + 1))) return false;
    }
    return put(is_dict ? "}" : "]");
  }

  const PlainData& data_;
  std::size_t most_;
  std::string out_;
};

}  // namespace

PlainData read_plain_json(std::string text) {
  PlainData data;
  PlainDataBuilder builder(data, text.size());
  json::sax_parse(text, &builder);
  return data;
}

std::string to_json_text(const PlainData& data, PlainValue value, std::size_t most) {
  Writer writer(data, most);
  return writer.write(value) ? writer.take() : std::string();
}

}  // namespace foretrace
